"""Saved states: whole or passed over; ``kill -9`` at any moment costs steps, never the result."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from evolve.randomness import generator
from trainer.checkpoint import State, StateStore
from trainer.config import TrainConfig
from trainer.files import DIGESTS, is_whole
from trainer.loop import Training

Configure = Callable[..., TrainConfig]
TIMES = {"cpu_s", "estimator_s", "sampling_s", "tokens_per_s"}


def state(step: int, score: float | None = None) -> State:
    return State(step, {"model": {"w": torch.full((3,), float(step))}, "optimizer": {}}, {"tokens": step}, score)


def test_the_last_states_and_the_best_are_kept(tmp_path: Path) -> None:
    store = StateStore(tmp_path, keep=2)
    for step, score in [(1, 0.5), (2, 0.9), (3, None), (4, 0.7), (5, None)]:
        store.save(state(step, score))
    assert store.steps() == [2, 4, 5]
    newest, best = store.newest(), store.best()
    assert newest is not None
    assert best is not None
    assert (newest.step, best.step, best.score) == (5, 2, 0.9)
    assert torch.equal(best.tensors["model"]["w"], torch.full((3,), 2.0))
    assert store.at(3) is None


def damage_nothing_written(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def damage_half_written(folder: Path) -> None:
    path = folder / "tensors.pt"
    path.write_bytes(path.read_bytes()[:100])


def damage_one_bit(folder: Path) -> None:
    path = folder / "tensors.pt"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def damage_no_digests(folder: Path) -> None:
    (folder / DIGESTS).unlink()


def damage_garbage_digests(folder: Path) -> None:
    (folder / DIGESTS).write_text("[1, 2")


def damage_lost_file(folder: Path) -> None:
    (folder / "state.json").unlink()


DAMAGES = [
    damage_nothing_written,
    damage_half_written,
    damage_one_bit,
    damage_no_digests,
    damage_garbage_digests,
    damage_lost_file,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_state_is_passed_over(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    store = StateStore(tmp_path, keep=3)
    store.save(state(1, 0.5))
    store.save(state(2, 0.9))
    damage(tmp_path / "step-00000002")
    found, best = store.newest(), store.best()
    assert found is not None
    assert best is not None
    assert (found.step, best.step) == (1, 1)
    damage(tmp_path / "step-00000001")
    assert store.newest() is None


def test_what_a_crash_left_half_written_goes_with_the_next_state(tmp_path: Path) -> None:
    plant_half_written(tmp_path)
    store = StateStore(tmp_path, keep=1)
    assert store.newest() is None
    store.save(state(1))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000001"]
    assert is_whole(tmp_path / "step-00000001")


def plant_half_written(folder: Path) -> None:
    """What crashes may leave: a temporary folder, and (with a lying disk) a newest state without its contents."""
    for name in (".step-00000099.writing", "step-00000099"):
        target = folder / name
        target.mkdir(parents=True, exist_ok=True)
        (target / "tensors.pt").write_bytes(b"half")
        (target / DIGESTS).write_text(json.dumps({"tensors.pt": "0" * 64, "state.json": "0" * 64}))


def run_in_a_process(config: TrainConfig) -> int:
    """Fork a process that runs the training; its id."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            Training(config).run()
            status = 0
        finally:
            os._exit(status)
    return pid


def kill_after(config: TrainConfig, seconds: float) -> None:
    """``kill -9`` after so many seconds, however far the run is by then."""
    pid = run_in_a_process(config)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def kill_while_saving(config: TrainConfig) -> None:
    """``kill -9`` as soon as a state is being written."""
    pid = run_in_a_process(config)
    while not list((config.output / "states").glob(".*.writing")):
        assert os.waitpid(pid, os.WNOHANG) == (0, 0), "the run ended before it saved a state"
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def results(output: Path) -> tuple[dict[str, torch.Tensor], list[dict[str, Any]]]:
    lines = (output / "metrics.jsonl").read_text().splitlines()
    rows = [{key: value for key, value in json.loads(line).items() if key not in TIMES} for line in lines]
    return load_file(output / "model" / "model.safetensors"), rows


def check_killed_run(configure: Configure, folder: Path, kills: int, seed: int) -> None:
    settings: dict[str, Any] = {
        "train": {"steps": 10, "optimizer": {"lr": 0.01}},
        "save_every": 1,
        "evaluation": {"problems": 2, "answers": 6, "every": 4},
    }
    started = time.monotonic()
    Training(configure(folder / "whole", **settings)).run()
    took = time.monotonic() - started
    config = configure(folder / "killed", **settings)
    rng = generator(seed, "kills")
    for index in range(kills):
        if index % 3 == 2:
            kill_while_saving(configure(folder / "killed", **settings))
        else:
            kill_after(config, float(rng.uniform(0.1, 0.6 * took)))
        plant_half_written(config.output / "states")
        if (config.output / "model").exists():
            break
    Training(config).run()
    (a, rows), (b, killed_rows) = results(folder / "whole"), results(folder / "killed")
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert rows == killed_rows
    assert any(row.get("mean_abs_advantage", 0) > 0.1 for row in rows)


@pytest.mark.usefixtures("rewarding")
def test_killed_at_three_moments_a_run_ends_bit_identical(rl_config: Configure, tmp_path: Path) -> None:
    check_killed_run(rl_config, tmp_path, kills=3, seed=0)


@pytest.mark.soak
@pytest.mark.usefixtures("rewarding")
@pytest.mark.parametrize("seed", range(7))
def test_killed_at_twenty_moments_runs_end_bit_identical(rl_config: Configure, tmp_path: Path, seed: int) -> None:
    check_killed_run(rl_config, tmp_path, kills=3, seed=seed + 1)
