"""Comparisons: equal terms are enforced, runs are resumed or skipped, the report says what was measured."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import yaml
from rich.console import Console

from trainer import comparison
from trainer.compare_run import evaluate_base, main
from trainer.comparison import load_comparison, run_all, runs_of, training_config
from trainer.comparison_report import comparison_table, figure_names, summarise, two_level_interval, write_report
from trainer.config import ConfigError
from trainer.files import FolderInUseError, held, write_text


@pytest.fixture
def write(base: Path, tmp_path: Path) -> Callable[..., Path]:
    """Write a comparison of two arms; returns the file."""

    def write(**changes: Any) -> Path:
        arms = {
            "grpo": {"estimator": {"name": "grpo"}, "rollouts": 6, "m": 1},
            "vpo": {"estimator": {"name": "vpo"}, "rollouts": 2, "m": 3},
        }
        document = {
            "name": "compared",
            "output": str(tmp_path / "out"),
            "init": str(base),
            "seeds": [0, 1],
            "common": {"tokens": 1500, "prompts": 2},
            "arms": arms,
            "evaluation": {"problems": 3, "answers": 6},
        }
        path = tmp_path / "compare.yaml"
        path.write_text(yaml.safe_dump({**document, **changes}))
        return path

    return write


def test_unequal_terms_are_refused(write: Callable[..., Path]) -> None:
    arms = {"a": {"estimator": {"name": "grpo"}, "rollouts": 6, "m": 1}}
    unequal = {**arms, "b": {"estimator": {"name": "vpo"}, "rollouts": 3, "m": 3}}
    with pytest.raises(ConfigError, match="equally many answers a prompt"):
        load_comparison(write(arms=unequal))
    with pytest.raises(ConfigError, match="either `init`"):
        load_comparison(write(init=None))
    with pytest.raises(ConfigError, match="`seeds` is empty"):
        load_comparison(write(seeds=[]))


def test_what_training_would_refuse_is_refused_before_any_run(write: Callable[..., Path]) -> None:
    with pytest.raises(ConfigError, match=r"common\.kl"):
        load_comparison(write(common={"tokens": 1500, "kl": -1}))
    with pytest.raises(ConfigError, match="must divide `prompts`"):
        load_comparison(write(common={"tokens": 1500, "prompts": 2, "minibatches": 3}))
    with pytest.raises(ConfigError, match=r"arms\.a\.rollouts"):
        load_comparison(write(arms={"a": {"estimator": {"name": "grpo"}, "rollouts": 1, "m": 1}}))


def test_every_arm_has_the_same_start_and_budget(write: Callable[..., Path], base: Path) -> None:
    config = load_comparison(write())
    runs = runs_of(config)
    assert [(run.arm, run.seed) for run in runs] == [("grpo", 0), ("vpo", 0), ("grpo", 1), ("vpo", 1)]
    for run in runs:
        training = training_config(config, run)
        assert (training.init, training.train.tokens, training.train.prompts) == (base, 1500, 2)  # type: ignore[union-attr]


def in_this_process(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run what a comparison would start as processes here, one after the other; the names of those started."""
    started = []

    class Finished:
        def poll(self) -> int:
            return 0

        def wait(self) -> int:
            return 0

    def start(config: Any, say: Callable[[str], None]) -> tuple[str, Any]:
        config.output.mkdir(parents=True, exist_ok=True)
        write_text(config.output / "run.yaml", yaml.safe_dump(config.model_dump(mode="json")))
        started.append(config.name)
        main(config.output / "run.yaml")
        return config.name, Finished()

    monkeypatch.setattr(comparison, "_start", start)
    monkeypatch.setattr(comparison, "_POLL_S", 0)
    return started


def test_a_comparison_trains_evaluates_and_reports(write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    started = in_this_process(monkeypatch)
    config = load_comparison(write())
    runs = run_all(config, lambda text: None)
    assert len(started) == 4
    (config.output / "runs" / "vpo-seed-1" / "evaluation.json").unlink()  # as if killed before its evaluation
    runs = run_all(config, lambda text: None)
    assert started[4:] == ["compared-vpo-1"]
    summary = summarise(config, runs, evaluate_base(config))
    assert list(summary["arms"]) == ["start (m=1)", "start (m=3)", "grpo", "vpo"]
    for name in ("grpo", "vpo"):
        assert summary["arms"][name]["seeds"] == 2
        assert summary["arms"][name]["tokens"] >= 1500
    assert summary["matched"] == (summary["token_spread"] <= 0.05)
    for path in write_report(config, summary):
        assert path.stat().st_size > 100
    assert json.loads((config.output / "comparison.json").read_text()) == summary
    console = Console(width=160, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(comparison_table(summary))
    console.file.close()
    assert "E_w[best@6]" in console.export_text()


def test_a_share_of_passes_is_shown_where_there_are_any() -> None:
    def summary(passed: float) -> dict[str, Any]:
        means = {"best@1": 0.1, "best@3": 0.2, "E_w[best@3]": 0.3, "pass@3": passed, "diversity": 0.4}
        return {"answers": 3, "arms": {"a": {"figures": {name: {"mean": mean} for name, mean in means.items()}}}}

    assert figure_names(summary(0.0)) == ["best@1", "best@3", "E_w[best@3]", "diversity"]
    assert figure_names(summary(0.5)) == ["best@1", "best@3", "E_w[best@3]", "pass@3", "diversity"]


@pytest.mark.soak
def test_a_comparison_by_processes(write: Callable[..., Path]) -> None:
    config = load_comparison(write(workers=2))
    said: list[str] = []
    runs = run_all(config, said.append)
    assert all(run.result is not None for run in runs)
    run_all(config, said.append)
    assert said[-1] == "4 of 4 runs are there already"


def test_a_failed_run_is_named(write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison.sys, "executable", "/bin/false")
    config = load_comparison(write())
    with pytest.raises(RuntimeError, match=r"compared-grpo-0 ended with status 1; see its log\.txt"):
        run_all(config, lambda text: None)


def test_one_process_at_a_time_makes_a_comparison(write: Callable[..., Path]) -> None:
    config = load_comparison(write())
    with held(config.output), pytest.raises(FolderInUseError, match="is being written by another process"):
        run_all(config, lambda text: None)


def test_a_run_ends_with_the_comparison_that_started_it() -> None:
    child = "import sys, time; from trainer.compare_run import die_with_parent; die_with_parent(int(sys.argv[1])); "
    child += "print('bound', flush=True); time.sleep(600)"
    parent = (
        "import os, subprocess, sys, time\n"
        "start = lambda pid: subprocess.Popen([sys.executable, '-c', sys.argv[1], str(pid)]).pid\n"
        "print(start(os.getpid()), start(1), flush=True)\n"
        "time.sleep(600)\n"
    )
    command = [sys.executable, "-c", parent, child]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        bound, foreign = (psutil.Process(int(pid)) for pid in process.stdout.readline().split())
        assert process.stdout.readline() == "bound\n"
        assert process.stderr.readline() == "the comparison that started this run is gone\n"
        process.kill()
        assert psutil.wait_procs([bound, foreign], timeout=60)[1] == []


def test_the_interval_covers_seeds_and_problems() -> None:
    rng = np.random.default_rng(0)
    by_seed = two_level_interval(np.repeat([[0.1], [0.5], [0.9]], 200, axis=1))
    by_problem = two_level_interval(np.repeat(rng.random((1, 200)), 3, axis=0))
    assert by_seed["high"] - by_seed["low"] > 0.4
    assert 0.05 < by_problem["high"] - by_problem["low"] < 0.12
