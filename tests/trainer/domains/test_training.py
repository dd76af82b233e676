"""Every domain goes through the training loop: warm-up, policy-gradient steps and evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evolve.manifest import Manifest, write_manifest
from tests.trainer.domains.test_openevolve import write_task
from trainer.config import ModelConfig, TrainConfig
from trainer.domains.vocabulary import word_tokenizer
from trainer.loop import Training
from trainer.model import new_model

SIZES = {"hidden": 32, "layers": 1, "heads": 1, "kv_heads": 1, "head_dim": 32, "intermediate": 64}
TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"


def train(output: Path, domain: str, options: dict[str, Any], step: dict[str, Any], **start: Any) -> dict[str, Any]:
    config = {
        "name": domain,
        "output": output,
        "domain": domain,
        "options": options,
        "train": step,
        "evaluation": {"problems": 2, "answers": 3},
        "watch": {"tensorboard": False},
        **start,
    }
    rows: list[dict[str, Any]] = []
    Training(TrainConfig.model_validate(config), rows.append).run()
    return rows[0]


@pytest.mark.parametrize(
    ("domain", "options"),
    [
        ("maze", {"size": 5}),
        ("collinear", {"form": "compact"}),
        ("musique", {"form": "compact"}),
        ("eureqa", {"form": "compact"}),
        ("toolrl", {"form": "compact"}),
    ],
)
def test_compact_domains_train_from_scratch(tmp_path: Path, domain: str, options: dict[str, Any]) -> None:
    warmup = {"kind": "warmup", "steps": 2, "batch": 4}
    first = train(tmp_path / "base", domain, options, warmup, model={**SIZES, "context_length": 512})
    assert first["loss"] > 0
    for estimator, m in (("vpo", 3), ("goal_conditioned", 1)):
        rl = {"kind": "rl", "steps": 1, "estimator": {"name": estimator}, "prompts": 2, "rollouts": 2, "m": m}
        row = train(tmp_path / estimator, domain, options, rl, init=tmp_path / "base" / "model")
        assert row["mutation_prompts"] == 0
        assert 0 <= row["task_scalar"] <= 1


@pytest.mark.parametrize("domain", ["code", "openevolve", "musique"])
def test_chat_domains_train_from_a_pretrained_model(tmp_path: Path, domain: str) -> None:
    tokenizer = word_tokenizer(["def", "return", "answer"])
    tokenizer.chat_template = TEMPLATE
    base = tmp_path / "base"
    new_model(ModelConfig(**SIZES, context_length=16_384), tokenizer, 0).save_pretrained(base)
    tokenizer.save_pretrained(base)
    write_manifest(base, Manifest(name="b", domain="any", estimator="none", seed=0, context_length=16_384))
    options = {"tasks": str(write_task(tmp_path / "task"))} if domain == "openevolve" else {}
    rl = {"kind": "rl", "steps": 1, "estimator": {"name": "vpo"}, "prompts": 1, "rollouts": 2, "m": 2, "max_tokens": 8}
    row = train(tmp_path / "run", domain, options, rl, init=base)
    assert row["answers_per_rollout"] == 0
