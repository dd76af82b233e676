"""The command line: each command does its work, and wrong input is explained with exit code 2."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from evolve.manifest import read_manifest
from trainer.__main__ import app
from trainer.checkpoint import StateStore
from trainer.config import TrainConfig, load_config
from trainer.loop import Training

Configure = Callable[..., TrainConfig]
CONFIGS = Path(__file__).parents[2] / "configs"


def invoke(*arguments: object, status: int = 0) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == status, result.output + repr(result.exception)
    return result.output


@pytest.fixture
def run(rl_config: Configure, tmp_path: Path) -> Path:
    evaluation = {"problems": 2, "answers": 6, "every": 2}
    Training(rl_config(tmp_path / "run", train={"steps": 3}, evaluation=evaluation)).run()
    return tmp_path / "run"


def test_train_reads_a_file_and_overrides(base: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    train = {"kind": "rl", "steps": 9, "estimator": {"name": "max_at_k"}, "prompts": 2, "rollouts": 4, "m": 1}
    document = {"name": "cli", "output": str(tmp_path / "run"), "init": str(base), "train": train}
    path.write_text(yaml.safe_dump({**document, "evaluation": {"problems": 1, "answers": 2}}))
    output = invoke("train", path, "--set", "train.steps=2")
    assert "step 2/2" in output
    assert read_manifest(tmp_path / "run" / "model").estimator == "max_at_k"
    assert "unknown key 'stepps'" in invoke("train", path, "--set", "train.stepps=2", status=2)


def test_eval_reports_intervals_and_places(base: Path, tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    output = invoke("eval", base, "--problems", 3, "--answers", 6, "--json", path)
    assert "E_w[best@k]" in output
    result = json.loads(path.read_text())
    assert (result["problems"], result["m"]) == (3, 3)
    assert [row["place"] for row in result["positions"]] == [1, 2, 3]
    assert {"pass@1", "pass@3", "pass@6", "best@6", "E_w[best@6]", "diversity"} <= result["figures"].keys()
    for figure in result["figures"].values():
        assert figure["low"] <= figure["mean"] <= figure["high"]
    assert "vpo.json" in invoke("eval", tmp_path, status=2)


def test_export_writes_a_state_as_a_checkpoint(run: Path, tmp_path: Path) -> None:
    store = StateStore(run / "states", keep=2)
    best = store.best()
    assert best is not None
    assert f"after {best.step} steps" in invoke("export", run, tmp_path / "best", "--state", "best")
    assert read_manifest(tmp_path / "best").metrics == {"best@6": best.score}
    invoke("export", run, tmp_path / "newest")
    a, b = (path / "model.safetensors" for path in (tmp_path / "newest", run / "model"))
    assert a.read_bytes() == b.read_bytes()
    assert "no whole state '7'" in invoke("export", run, tmp_path / "x", "--state", "7", status=2)
    assert "use newest, best" in invoke("export", run, tmp_path / "x", "--state", "last", status=2)
    assert "config.json" in invoke("export", tmp_path, tmp_path / "x", status=2)


def test_doctor_says_what_is_wrong(base: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    train = {"kind": "rl", "steps": 2, "estimator": {"name": "vpo"}}
    path.write_text(yaml.safe_dump({"name": "a", "output": str(tmp_path), "init": str(base), "train": train}))
    assert "bad" not in invoke("doctor", path)
    assert "lower `train.max_tokens`" in invoke("doctor", path, "--set", "train.max_tokens=4000", status=1)
    assert "no checkpoint folder" in invoke("doctor", path, "--set", "init=/nowhere", status=1)
    assert "unknown key 'maize'" in invoke("doctor", path, "--set", "domain=maize", status=1)
    server = "train.sampler={kind: vllm, endpoint: 'http://127.0.0.1:9/v1', model: a, sync: reload, weights: w}"
    assert "sampler: ConnectError" in invoke("doctor", path, "--set", server, status=1)


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_configuration_is_valid(path: Path) -> None:
    document = yaml.safe_load(path.read_text())
    if "arms" not in document:
        assert load_config(path).name == path.stem
