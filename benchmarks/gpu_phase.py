"""One way to train a random model, by steps: sampling, update, saved state, and the same steps again after a resume.

What stands for a domain's judgement is drawn from each text, so that a random model has advantages to learn from.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from evolve.chain import ChainFormat
from evolve.manifest import Manifest
from evolve.randomness import generator
from trainer.checkpoint import State, StateStore, save_model
from trainer.config import ModelConfig, RLConfig, TrainConfig
from trainer.distributed import start_world
from trainer.domains.minicode.domain import MinicodeDomain
from trainer.engine import Engine
from trainer.estimators import ESTIMATORS
from trainer.estimators.groups import make_groups
from trainer.model import load_model, load_tokenizer, new_model
from trainer.prompts import Item, make_problem
from trainer.rollout.base import Rollouts
from trainer.rollout.make import make_sampler
from trainer.rollout.store import RolloutStore
from trainer.update import Batch, update

M, COMPONENTS = 3, 8
NAME = "random"
Report = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """Sizes. steps: of which the second half is taken again after a resume."""

    model: ModelConfig
    prompts: int
    rollouts: int
    max_tokens: int
    micro_batch: int
    precision: str
    checkpointing: bool
    steps: int = 4


PRESETS = {
    "1b": Preset(
        model=ModelConfig(
            hidden=2048, layers=20, heads=16, kv_heads=8, head_dim=128, intermediate=6144, context_length=1024
        ),
        prompts=16,
        rollouts=8,
        max_tokens=512,
        micro_batch=32,
        precision="bfloat16",
        checkpointing=True,
    ),
    "tiny": Preset(
        model=ModelConfig(hidden=32, layers=1, heads=1, kv_heads=1, head_dim=32, intermediate=64, context_length=256),
        prompts=2,
        rollouts=4,
        max_tokens=24,
        micro_batch=0,
        precision="float32",
        checkpointing=False,
    ),
}


def write_checkpoint(folder: Path, preset: Preset) -> int:
    """Write a random model as a checkpoint that can be trained and served; returns its number of parameters."""
    domain = MinicodeDomain()
    tokenizer = domain.build_tokenizer()
    model = new_model(preset.model, tokenizer, seed=0)
    manifest = Manifest(
        name=NAME,
        domain=domain.name,
        estimator="none",
        seed=0,
        chain=ChainFormat(m=M),
        prompt=domain.prompt_format(M),
        context_length=preset.model.context_length,
    )
    save_model(folder, model, model.state_dict(), tokenizer, manifest)
    return sum(parameter.numel() for parameter in model.parameters())


def phase_config(
    preset: Preset, checkpoint: Path, output: Path, device: str, *, lora: bool, server: tuple[str, Path] | None
) -> TrainConfig:
    """The configuration of a way to train; server: a vLLM server's endpoint and the folder by which it gets weights,
    ``None``: the torch sampler.
    """
    sampler: dict[str, Any] = {"kind": "torch"}
    if server is not None:
        way = {"sync": "lora" if lora else "reload", "weights": server[1]}
        sampler = {"kind": "vllm", "endpoint": server[0], "model": NAME, **way}
    train = {
        "kind": "rl",
        "steps": preset.steps,
        "estimator": {"name": "vpo_plus"},
        "prompts": preset.prompts,
        "rollouts": preset.rollouts,
        "m": M,
        "kl": 1e-3,
        "max_tokens": preset.max_tokens,
        "micro_batch": preset.micro_batch,
        "optimizer": {"lr": 1e-4},
        "sampler": sampler,
    }
    hardware = {"device": device, "precision": preset.precision, "checkpointing": preset.checkpointing}
    document = {"name": NAME, "output": output, "init": checkpoint, "train": train, "hardware": hardware}
    return TrainConfig.model_validate({**document, "lora": {"rank": 16} if lora else None})


@dataclass(slots=True)
class Clock:
    """Seconds by what they went into; waits for the device."""

    device: torch.device
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        started = self._now()
        yield
        self.seconds[name] = self._now() - started

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.monotonic()


class Steps:
    """The model, its sampler, and steps that depend on their number and the weights alone."""

    def __init__(self, config: TrainConfig) -> None:
        assert isinstance(config.train, RLConfig)
        assert config.init is not None
        self.config, self.rl = config, config.train
        self.domain, self.tokenizer = MinicodeDomain(), load_tokenizer(config.init)
        self.engine = Engine(load_model(config.init), config, start_world(config.hardware), reference=True)
        self.sampler = make_sampler(self.rl.sampler, self.engine, self.tokenizer, config)
        self.store = RolloutStore(config.output / "pending") if self.rl.sampler.kind == "vllm" else None

    def take(self, step: int) -> dict[str, float]:
        """One step: numbers of tokens, seconds."""
        clock = Clock(self.engine.world.device)
        rollouts = self._rollouts(step, clock)
        advantages = self._advantages(rollouts.texts, step)
        batch = Batch(rollouts, advantages[:, None].expand(rollouts.ids.shape), rollouts.mask, self.rl.rollouts)
        with clock("update"):
            row = update(self.engine, batch, self.rl, (self.config.seed, step))
        prompts = rollouts.prompt_mask.sum(dim=1)
        counts = {
            "rows": float(len(rollouts)),
            "completion_tokens": float(rollouts.mask.sum()),
            "prompt_tokens": float(prompts.sum()),
            "prompt_tokens_of_rows": float(prompts[rollouts.owner].sum()),
        }
        return {**counts, **clock.seconds, "grad_norm": row["grad_norm"], "mismatch": row["mismatch"]}

    def _rollouts(self, step: int, clock: Clock) -> Rollouts:
        if self.store is not None and (stored := self.store.load(step)) is not None:
            return stored[0]
        problems = [make_problem(self.domain, 0, Item((step, p))) for p in range(self.rl.prompts)]
        prompts = [self.domain.prompt(problem, M, None) for problem in problems]
        keys = [[(0, step, p, g) for g in range(self.rl.rollouts)] for p in range(self.rl.prompts)]
        assert self.rl.max_tokens is not None
        with clock("sync"):
            self.sampler.sync(self.engine.sampling_model(), step)
        with clock("sample"):
            rollouts = self.sampler.sample(prompts, keys, max_tokens=self.rl.max_tokens)
        if self.store is not None:
            self.store.save(step, rollouts, [])
        return rollouts

    def _advantages(self, texts: list[str], step: int) -> torch.Tensor:
        """One for each rollout, from rewards that its text decides."""
        rewards = np.stack([generator("reward", text).random((M, COMPONENTS)) for text in texts])
        groups = make_groups(rewards.reshape(self.rl.prompts, self.rl.rollouts, M, COMPONENTS))
        estimator = ESTIMATORS[self.rl.estimator.name]
        weights = estimator.draw(groups, self.rl.estimator, self.config.seed, step)
        found = estimator.advantages(groups, weights, self.rl.estimator)[:, :, 0]
        return torch.from_numpy(found.reshape(-1).copy()).float()


def run_phase(config: TrainConfig, deadline: float, report: Report) -> None:
    """Take the steps, save a state half-way, and take the second half again from it; ends early near ``deadline``.

    deadline: by ``time.monotonic``. Reports a row for each step, then ``{"save": s}`` and ``{"identical": bool}``.
    """
    steps, states = Steps(config), StateStore(config.output / "states", keep=1)
    total, half = config.train.steps, config.train.steps // 2
    report(_facts(steps.engine, config))
    for step in range(total):
        started = time.monotonic()
        report({"step": step, **steps.take(step)})
        if step + 1 == half:
            before = time.monotonic()
            states.save(State(half, steps.engine.tensors(), {}))
            report({"save": time.monotonic() - before})
        if time.monotonic() + (time.monotonic() - started) > deadline:
            return
    expected = steps.engine.tensors()
    report({"peak_bytes": _peak(steps.engine)})
    del steps
    state = states.newest()
    assert state is not None
    resumed = Steps(config)
    resumed.engine.load(state.tensors)
    for step in range(half, total):
        resumed.take(step)
    report({"identical": _equal(resumed.engine.tensors(), expected)})


def _equal(found: dict[str, dict[str, torch.Tensor]], expected: dict[str, dict[str, torch.Tensor]]) -> bool:
    return all(torch.equal(found[part][name], expected[part][name]) for part in expected for name in expected[part])


def _facts(engine: Engine, config: TrainConfig) -> dict[str, Any]:
    """What utilisation is computed from. multiplied: parameters without embeddings and adapters. shared_prompts:
    whether training computes each prompt once for all of its rows, as sampling and the reference do."""
    device, size = engine.world.device, engine.model.config
    embeddings = engine.model.get_input_embeddings().weight.numel()
    kept = sum(p.numel() for name, p in engine.model.named_parameters() if ".lora_" not in name)
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "multiplied": kept - embeddings,
        "shared_prompts": not config.hardware.checkpointing,
        "attention": size.num_hidden_layers * size.num_attention_heads * size.head_dim,
    }


def _peak(engine: Engine) -> int:
    return torch.cuda.max_memory_allocated(engine.world.device) if engine.world.device.type == "cuda" else 0
