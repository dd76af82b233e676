"""A tiny base checkpoint, and configurations that train it in seconds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evolve.chain import Answer
from evolve.randomness import generator
from trainer import scoring
from trainer.config import TrainConfig
from trainer.domains.base import Judged
from trainer.domains.minicode.domain import MinicodeDomain
from trainer.loop import Training

TINY = {"hidden": 32, "layers": 1, "heads": 1, "kv_heads": 1, "head_dim": 32, "intermediate": 64, "context_length": 256}
EVALUATION = {"problems": 2, "answers": 6}

Configure = Callable[..., TrainConfig]


def warmup_document(output: Path) -> dict[str, Any]:
    train = {"kind": "warmup", "steps": 6, "batch": 4}
    watch = {"tensorboard": False}
    return {
        "name": "tiny",
        "output": output,
        "model": TINY,
        "train": train,
        "evaluation": EVALUATION,
        "watch": watch,
    }


@pytest.fixture
def warmup_config() -> Configure:
    def configure(output: Path, **changes: Any) -> TrainConfig:
        return TrainConfig.model_validate({**warmup_document(output), **changes})

    return configure


@pytest.fixture
def rl_config(base: Path) -> Configure:
    """``train`` adds to the policy-gradient settings, other keywords replace settings of the run."""

    def configure(
        output: Path, estimator: str = "vpo", m: int = 3, train: dict[str, Any] | None = None, **changes: Any
    ) -> TrainConfig:
        rl = {"kind": "rl", "steps": 4, "estimator": {"name": estimator}, "prompts": 4, "rollouts": 3, "m": m}
        document = {
            "name": f"tiny-{estimator}",
            "output": output,
            "init": base,
            "train": {**rl, **(train or {})},
            "evaluation": EVALUATION,
            "watch": {"tensorboard": False},
        }
        return TrainConfig.model_validate({**document, **changes})

    return configure


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of a tiny warm-up."""
    output = tmp_path_factory.mktemp("base")
    Training(TrainConfig.model_validate(warmup_document(output))).run()
    return output / "model"


@pytest.fixture
def rewarding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every text has m answers (its m parts), each with a reward that its characters decide: an untrained model learns.

    Without it a tiny model earns nothing, all advantages are zero and nothing is tested by training it.
    """

    def answers_of(text: str, m: int) -> list[Answer]:
        size = max(1, len(text) // m)
        return [Answer(i, text[i * size : (i + 1) * size], i * size, (i + 1) * size, str(i)) for i in range(m)]

    async def judge(self: MinicodeDomain, problem: Any, answer: str) -> Judged:
        d = len(self.components(problem))
        reward = generator("rewarding", answer).random(d) * min(1, len(set(answer)) / 8)
        return Judged(reward, float(reward.mean()))

    monkeypatch.setattr(scoring, "answers_of", answers_of)
    monkeypatch.setattr(MinicodeDomain, "judge", judge)
