"""Training configurations: frozen, typed, from YAML, with ``--set a.b=c`` overrides; unknown keys are errors."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from evolve.strict import StrictModel, explain
from trainer.estimators.config import EstimatorConfig


class ConfigError(ValueError):
    """A training configuration is wrong; the message names the field, the value and the fix."""


Positive = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]


class ModelConfig(StrictModel):
    """A Qwen3-architecture model made from scratch (untied embeddings). Sizes are numbers of units."""

    hidden: Positive = 128
    layers: Positive = 4
    heads: Positive = 4
    kv_heads: Positive = 2
    head_dim: Positive = 32
    intermediate: Positive = 384
    context_length: Positive = 256


class OptimizerConfig(StrictModel):
    """AdamW. ``schedule: cosine`` decays to a tenth of ``lr``; ``warmup`` counts steps of linear increase."""

    lr: Rate = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    warmup: Annotated[int, Field(ge=0)] = 0
    schedule: Literal["constant", "cosine"] = "constant"
    grad_clip: Rate = 1.0


class WarmupConfig(StrictModel):
    """Supervised steps. ``chain_share``: share of the examples that are chains, the rest are single answers."""

    kind: Literal["warmup"] = "warmup"
    steps: Positive
    batch: Positive = 96
    chain_share: Share = 0.5
    optimizer: OptimizerConfig = OptimizerConfig()


class RLConfig(StrictModel):
    """Policy-gradient steps from an initial checkpoint.

    prompts, rollouts: P prompts a step, G generations each. m: answers in one generation. mutation_share: share of the
    prompts that show a parent. kl: weight of the k3 KL estimate to the frozen initial model. clip: PPO's ratio range.
    """

    kind: Literal["rl"] = "rl"
    steps: Positive
    estimator: EstimatorConfig
    prompts: Positive = 24
    rollouts: Annotated[int, Field(ge=2)] = 8
    m: Positive = 3
    mutation_share: Share = 0.5
    temperature: Rate = 1.0
    kl: Annotated[float, Field(ge=0)] = 0.02
    clip: Rate = 0.2
    optimizer: OptimizerConfig = OptimizerConfig(lr=2e-4)


class EvalConfig(StrictModel):
    """Held-out evaluation: problems, answers per problem (k at most), every so many steps (0: only at the end)."""

    problems: Positive = 256
    answers: Positive = 30
    every: Annotated[int, Field(ge=0)] = 0
    seed: int = 1000


class TrainConfig(StrictModel):
    """One training run. Exactly one of ``model`` (from scratch) and ``init`` (a checkpoint folder) is given."""

    name: str
    seed: int = 0
    domain: Literal["minicode"] = "minicode"
    output: Path
    model: ModelConfig | None = None
    init: Path | None = None
    train: Annotated[WarmupConfig | RLConfig, Field(discriminator="kind")]
    evaluation: EvalConfig = EvalConfig()
    save_every: Positive = 50
    threads: Positive = 1

    @model_validator(mode="after")
    def _one_start(self) -> TrainConfig:
        if (self.model is None) == (self.init is None):
            raise ValueError("give exactly one of `model` (sizes, from scratch) and `init` (a checkpoint folder)")
        if self.train.kind == "rl" and self.init is None:
            raise ValueError("`train.kind: rl` needs `init`: the checkpoint folder that it starts from")
        return self


def load_config(path: Path, overrides: Iterable[str] = ()) -> TrainConfig:
    """Read a YAML file and apply ``a.b=c`` overrides (values are YAML). Raises :class:`ConfigError`."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from None
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: expected a mapping of settings, found {type(document).__name__}")
    for override in overrides:
        _apply(document, override)
    try:
        return TrainConfig.model_validate(document)
    except ValidationError as error:
        raise ConfigError(f"{path}:\n{explain(error)}") from None


def _apply(document: dict[str, Any], override: str) -> None:
    key, separator, value = override.partition("=")
    if not separator:
        raise ConfigError(f"--set {override}: write it as a.b=value")
    *parents, last = key.strip().split(".")
    section = document
    for parent in parents:
        section = section.setdefault(parent, {})
        if not isinstance(section, dict):
            raise ConfigError(f"--set {override}: {parent} is not a section")
    section[last] = yaml.safe_load(value)
