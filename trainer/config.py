"""Training configurations: frozen, typed, from YAML, with ``--set a.b=c`` overrides; unknown keys are errors."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from evolve.strict import StrictModel, explain
from trainer.estimators.config import EstimatorConfig


class ConfigError(ValueError):
    """A training configuration is wrong; the message names the field, the value and the fix."""


Positive = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]
GroupSize = Annotated[int, Field(ge=2)]
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
    warmup: Natural = 0
    schedule: Literal["constant", "cosine"] = "constant"
    grad_clip: Rate = 1.0


class WarmupConfig(StrictModel):
    """Supervised steps. ``chain_share``: share of the examples that are chains, the rest are single answers.

    micro_batch: examples in one forward pass (0: the whole batch); it changes memory and speed, not the loss.
    """

    kind: Literal["warmup"] = "warmup"
    steps: Positive
    batch: Positive = 96
    chain_share: Share = 0.5
    micro_batch: Natural = 0
    optimizer: OptimizerConfig = OptimizerConfig()


class TorchSamplerConfig(StrictModel):
    """Sampling by the trained model itself. ``batch``: rollouts decoded at once (0: all of a step)."""

    kind: Literal["torch"] = "torch"
    batch: Natural = 0


class VllmSamplerConfig(StrictModel):
    """Sampling by a vLLM server that somebody started.

    endpoint: its ``/v1`` address. model: the name it serves. sync: how new weights get there, through the folder
    ``weights`` that trainer and server both see: ``lora`` loads an adapter under a new name; ``reload`` rewrites the
    served checkpoint and asks the development endpoints to read it again. cap: of the truncated importance weights.
    tolerance: largest mean difference (nats a token) between the server's and the trainer's log-probabilities of a
    probe after a swap; beyond it the weights are not the ones that were sent. concurrency: requests in flight.
    """

    kind: Literal["vllm"] = "vllm"
    endpoint: str
    model: str
    sync: Literal["lora", "reload"] = "lora"
    weights: Path
    cap: Rate = 2.0
    tolerance: Rate = 0.05
    concurrency: Positive = 64
    timeout_s: Rate = 600.0


class StepConfig(StrictModel):
    """The part of a policy-gradient step that the arms of a comparison share.

    prompts: P prompts a step. mutation_share: share of them that show a parent. kl: weight of the k3 KL estimate to the
    frozen initial model. clip: PPO's ratio range. epochs, minibatches: passes over a step's rollouts, and optimizer
    steps in each. micro_batch: rollouts in one forward pass (0: all at once); it changes memory and speed, not the
    loss.
    """

    prompts: Positive = 24
    mutation_share: Share = 0.5
    kl: Annotated[float, Field(ge=0)] = 0.02
    clip: Rate = 0.2
    epochs: Positive = 1
    minibatches: Positive = 1
    micro_batch: Natural = 0
    optimizer: OptimizerConfig = OptimizerConfig(lr=2e-4)

    @model_validator(mode="after")
    def _minibatches_fit(self) -> Self:
        if self.prompts % self.minibatches:
            raise ValueError(f"`minibatches` ({self.minibatches}) must divide `prompts` ({self.prompts})")
        return self


class RLConfig(StepConfig):
    """Policy-gradient steps from an initial checkpoint.

    rollouts: G generations for each prompt. m: answers in one generation. clip_high: PPO's ratio range above 1, where
    it is not ``clip``. max_tokens: of a generation (default: what the domain asks for). tokens: stop after the step
    that brings the generated tokens to so many, even before ``steps``.
    """

    kind: Literal["rl"] = "rl"
    steps: Positive
    estimator: EstimatorConfig
    rollouts: GroupSize = 8
    m: Positive = 3
    temperature: Rate = 1.0
    clip_high: Rate | None = None
    max_tokens: Positive | None = None
    tokens: Positive | None = None
    sampler: Annotated[TorchSamplerConfig | VllmSamplerConfig, Field(discriminator="kind")] = TorchSamplerConfig()


class LoraConfig(StrictModel):
    """Low-rank adapters on every linear layer whose name ends in one of ``targets``; the rest is frozen."""

    rank: Positive = 16
    alpha: Rate = 32.0
    targets: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class HardwareConfig(StrictModel):
    """Where and how numbers are computed.

    device: ``auto`` takes a GPU where there is one. precision: of the forward and backward pass; with ``bfloat16`` the
    trained parameters stay in float32 (under LoRA the frozen ones are kept in bfloat16). checkpointing: recompute
    activations in the backward pass. shard: split parameters, gradients and optimizer over torchrun's processes
    (FSDP2); without it they are replicated.
    """

    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["float32", "bfloat16"] = "float32"
    checkpointing: bool = False
    shard: bool = False


class EvalConfig(StrictModel):
    """Held-out evaluation: problems, answers per problem (k at most), every so many steps (0: only at the end)."""

    problems: Positive = 256
    answers: Positive = 30
    every: Natural = 0
    seed: int = 1000


class WatchConfig(StrictModel):
    """What a run leaves to look at besides ``metrics.jsonl``.

    tensorboard: event files in ``tensorboard/``. rollouts_every: steps between samples in ``rollouts/*.parquet`` (0:
    none), with the generations of the step's first ``rollout_prompts`` prompts.
    """

    tensorboard: bool = True
    rollouts_every: Natural = 0
    rollout_prompts: Positive = 4


class TrainConfig(StrictModel):
    """One training run. Exactly one of ``model`` (from scratch) and ``init`` (a checkpoint folder) is given.

    domain, options: a name of :data:`trainer.domains.DOMAINS` and its options. save_every: steps between saved states.
    keep: the newest so many states stay, and the one with the best evaluation. threads: of torch.
    """

    name: str
    seed: int = 0
    domain: str = "minicode"
    options: dict[str, Any] = Field(default_factory=dict)
    output: Path
    model: ModelConfig | None = None
    init: Path | None = None
    lora: LoraConfig | None = None
    hardware: HardwareConfig = HardwareConfig()
    train: Annotated[WarmupConfig | RLConfig, Field(discriminator="kind")]
    evaluation: EvalConfig = EvalConfig()
    watch: WatchConfig = WatchConfig()
    save_every: Positive = 50
    keep: Positive = 2
    threads: Positive = 1

    @model_validator(mode="after")
    def _one_start(self) -> TrainConfig:
        if (self.model is None) == (self.init is None):
            raise ValueError("give exactly one of `model` (sizes, from scratch) and `init` (a checkpoint folder)")
        if self.train.kind == "rl" and self.init is None:
            raise ValueError("`train.kind: rl` needs `init`: the checkpoint folder that it starts from")
        if self.lora is not None and self.init is None:
            raise ValueError("`lora` needs `init`: adapters of a random model are of no use")
        if self.lora is not None and self.hardware.shard:
            raise ValueError("`hardware.shard` is for full fine-tuning: leave it out with `lora`")
        if self.train.kind == "rl" and self.train.sampler.kind == "vllm":
            if (self.train.sampler.sync == "lora") != (self.lora is not None):
                raise ValueError("`train.sampler.sync` must be `lora` with `lora`, and `reload` with full fine-tuning")
            if (
                self.lora is None
                and self.init is not None
                and self.train.sampler.weights.resolve() == self.init.resolve()
            ):
                raise ValueError("`train.sampler.weights` must be a copy of `init`, since it is overwritten")
            if self.train.temperature != 1.0:
                raise ValueError("`train.temperature` must be 1 with vLLM, which reports log-probabilities at 1")
        return self


def load_config(path: Path, overrides: Iterable[str] = ()) -> TrainConfig:
    """Read a YAML file and apply ``a.b=c`` overrides (values are YAML). Raises :class:`ConfigError`."""
    document = read_document(path, overrides)
    try:
        return TrainConfig.model_validate(document)
    except ValidationError as error:
        raise ConfigError(f"{path}:\n{explain(error)}") from None


def read_document(path: Path, overrides: Iterable[str] = ()) -> dict[str, Any]:
    """The mapping of a YAML file with overrides applied. Raises :class:`ConfigError`."""
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
    return document


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
