"""What can be watched: metrics by their definitions, files that a resume mends, a terminal and none."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from rich.console import Console
from tensorboardX.proto.event_pb2 import Event

from evolve.chain import Answer
from trainer.config import TrainConfig, WatchConfig
from trainer.estimators.gate import component_correlation
from trainer.loop import Training
from trainer.metrics import step_metrics
from trainer.scoring import Scores
from trainer.watch import Journal, Terminal

Configure = Callable[..., TrainConfig]


def scalars(folder: Path) -> dict[str, dict[int, float]]:
    """The scalars of all event files of a folder, in the order they were written: records of length, CRC, data, CRC."""
    found: dict[str, dict[int, float]] = {}
    for path in sorted(folder.iterdir()):
        data, position = path.read_bytes(), 0
        while position < len(data):
            (length,) = struct.unpack_from("<Q", data, position)
            event = Event.FromString(data[position + 12 : position + 12 + length])
            position += length + 16
            for value in event.summary.value:
                found.setdefault(value.tag, {})[event.step] = value.simple_value
    return found


def scores(rewards: np.ndarray, valid: np.ndarray | None = None) -> Scores:
    """Scores of rewards (P, G, m, D); a zero row is an answer that was not given."""
    P, G, m, D = rewards.shape
    given = rewards.any(axis=-1).reshape(P * G, m)
    answers = [[Answer(i, str(i), 0, 0, str(i)) for i in range(m) if row[i]] for row in given]
    ok = np.ones((P, G, m), dtype=bool) if valid is None else valid
    return Scores(rewards, rewards.mean(-1), np.ones((P, D), bool), ok, answers)


def test_step_metrics_are_what_they_say() -> None:
    rewards = np.zeros((2, 2, 2, 2))
    rewards[0, 0] = [[1, 0], [0, 1]]  # two specialists
    rewards[0, 1, 0] = [1, 1]
    advantages = np.zeros((2, 2, 2))
    advantages[0] = [[1, 1], [-1, -1]]
    row = step_metrics(scores(rewards), advantages, seed=0)
    assert row["set_score"] == pytest.approx((0.75 + 1 + 0 + 0) / 4, abs=0.03)
    assert row["task_scalar"] == pytest.approx((0.5 + 1) / 4)
    assert row["best_of_group"] == row["solved_share"] == 0.5
    assert row["flat_groups"] == 0.5
    assert row["answers_per_rollout"] == 0.75
    assert row["chain_completeness"] == 0.375
    assert row["diversity"] == pytest.approx((2 + 1 + 1) / 3 / 2)
    assert row["unjudged"] == 0


def test_component_correlation() -> None:
    together = np.array([[0.0, 0.0, 1.0], [1.0, 0.5, 1.0], [0.5, 0.25, 1.0]])
    assert component_correlation(together) == pytest.approx(1)
    assert component_correlation(np.array([[0.0, 1.0], [1.0, 0.0]])) == pytest.approx(-1)
    assert component_correlation(together[:, 2:]) == component_correlation(together[:1]) == 0


def test_a_journal_forgets_the_steps_that_are_taken_again(tmp_path: Path) -> None:
    for start in (0, 2):
        journal = Journal(tmp_path, WatchConfig(), lambda row: None)
        journal.go_on_after(start)
        for step in (start + 1, start + 2, start + 3):
            journal.write({"step": step, "kl": step / 3, "evaluation": {"m=1": {"best@1": 0.5}}})
        journal.close()
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 6, "half')  # a crash in the middle of a line
    journal = Journal(tmp_path, WatchConfig(tensorboard=False), lambda row: None)
    journal.go_on_after(5)
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5]
    assert rows[0]["kl"] == 0.33333
    values = scalars(tmp_path / "tensorboard")
    assert values["train/kl"][5] == pytest.approx(5 / 3, abs=1e-4)
    assert values["evaluation/m_1/best_1"][1] == 0.5


def test_a_run_leaves_rollouts_to_read(rl_config: Configure, tmp_path: Path) -> None:
    watch = {"tensorboard": True, "rollouts_every": 2, "rollout_prompts": 1}
    Training(rl_config(tmp_path, train={"steps": 2}, watch=watch)).run()
    table = pyarrow.parquet.read_table(tmp_path / "rollouts" / "step-00000002.parquet").to_pylist()
    assert [row["rollout"] for row in table] == [0, 1, 2]
    assert all(len(row["advantages"]) == len(row["scalars"]) == 3 for row in table)
    assert {"train/kl", "train/diversity", "train/clipped", "train/tokens_per_s"} <= scalars(
        tmp_path / "tensorboard"
    ).keys()


def test_without_a_terminal_progress_is_plain_lines() -> None:
    text = io.StringIO()
    with Terminal(Console(file=text), "name", 25, every=10) as terminal:
        for step in range(1, 26):
            terminal({"step": step, "kl": 0.5})
        terminal({"step": 25, "evaluation": {"best@1": 0.25}})
    assert text.getvalue().splitlines() == [
        "step 10/25: kl 0.5",
        "step 20/25: kl 0.5",
        "step 25/25: kl 0.5",
        'step 25: {"best@1": 0.25}',
    ]


def test_on_a_terminal_progress_is_a_bar() -> None:
    text = io.StringIO()
    with Terminal(Console(file=text, force_terminal=True, width=100), "run name", 2) as terminal:
        terminal({"step": 2, "kl": 0.5})
    assert "run name" in text.getvalue()
    assert "2/2" in text.getvalue()
