"""A training run: warm-up or policy-gradient steps, evaluation, resumable states, the resulting model.

Layout of an output folder: ``states/`` (resume), ``metrics.jsonl``, ``tensorboard/``, ``rollouts/`` (samples to read),
``pending/`` (a server's rollouts that no saved state contains yet), ``model/`` (the result).
"""

from __future__ import annotations

import asyncio
import time
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from evolve.chain import ChainFormat
from evolve.manifest import Manifest, ManifestError, read_manifest
from trainer.checkpoint import State, StateStore, save_model
from trainer.config import RLConfig, TrainConfig, WarmupConfig
from trainer.distributed import World, start_world
from trainer.domains import make_domain
from trainer.engine import Engine
from trainer.estimators import ESTIMATORS
from trainer.evaluate import evaluate, means
from trainer.files import held, write_text
from trainer.model import load_model, load_tokenizer, new_model
from trainer.policy import PolicySteps, Step
from trainer.prompts import Item
from trainer.rollout.base import Sampler
from trainer.rollout.make import make_sampler
from trainer.rollout.store import RolloutStore
from trainer.rollout.torch_sampler import TorchSampler
from trainer.warmup import WarmupBatches, WarmupSteps
from trainer.watch import Journal, Report, write_rollouts

CONFIG_NAME = "config.json"
"""A run's configuration in its output folder, as it was last started."""


class Training:
    """One run of a configuration; ``run`` goes on from the newest whole state."""

    def __init__(self, config: TrainConfig, report: Report = lambda row: None, *, world: World | None = None) -> None:
        torch.set_num_threads(config.threads)
        self.config = config
        self.world = start_world(config.hardware) if world is None else world
        self.domain = make_domain(config.domain, config.options)
        rl = config.train if isinstance(config.train, RLConfig) else None
        if config.init is None:
            assert config.model is not None  # the configuration's validator saw to it
            self.tokenizer = self.domain.build_tokenizer()
            model = new_model(config.model, self.tokenizer, config.seed)
        else:
            self.tokenizer, model = load_tokenizer(config.init), load_model(config.init)
        self.engine = Engine(model, config, self.world, reference=rl is not None and rl.kl > 0)
        self.states = StateStore(config.output / "states", keep=config.keep)
        self.journal = Journal(config.output, config.watch, report)
        self.step = 0
        self._runner = asyncio.Runner()
        self._pending: RolloutStore | None = None
        self.sampler: Sampler = TorchSampler(self.engine.sampling_model(), self.tokenizer)
        self._steps: PolicySteps | WarmupSteps = self._warmup_steps() if rl is None else self._policy_steps(rl)

    def _policy_steps(self, rl: RLConfig) -> PolicySteps:
        self.sampler = make_sampler(rl.sampler, self.engine, self.tokenizer, self.config)
        if rl.sampler.kind == "vllm":
            self._pending = RolloutStore(self.config.output / "pending", self.world.rank)
        parts = (self.config, self.domain, self.tokenizer, self.engine, self.sampler, self._runner, self._pending)
        return PolicySteps(*parts)

    def _warmup_steps(self) -> WarmupSteps:
        config = self.config.train
        assert isinstance(config, WarmupConfig)
        return WarmupSteps(WarmupBatches(self.domain, self.tokenizer, config, self.config.seed), config, self.engine)

    def __enter__(self) -> Training:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the domain (its sandbox) and the event files."""
        self._runner.run(self.domain.close())
        self._runner.close()
        self.journal.close()

    def run(self) -> dict[str, Any]:
        """Train to the end, evaluate, write ``model/``; returns the final metrics.

        Raises :class:`trainer.files.FolderError` where another process trains in the output folder, or it cannot be
        written.
        """
        try:
            with held(self.config.output) if self.world.main else nullcontext():
                return self._run()
        finally:
            self.close()

    def _run(self) -> dict[str, Any]:
        self._resume()
        while not self._done():
            self._log(self._take_step())
            if self._done():
                break
            every = self.config.evaluation.every
            metrics = self._evaluate() if every and self.step % every == 0 else None
            if metrics is not None:
                self._log({"step": self.step, "evaluation": metrics})
            if metrics is not None or self.step % self.config.save_every == 0:
                self._save_state(metrics)
        metrics = self._evaluate()
        self._log({"step": self.step, "evaluation": metrics})
        self._save_model(metrics)
        self._save_state(metrics)
        return metrics

    def _done(self) -> bool:
        limit = self.config.train.tokens if isinstance(self.config.train, RLConfig) else None
        return self.step >= self.config.train.steps or (limit is not None and self._steps.tokens >= limit)

    def _take_step(self) -> dict[str, Any]:
        started = time.process_time()
        taken = self._steps(self.step)
        self.step += 1
        every = self.config.watch.rollouts_every
        if isinstance(taken, Step) and every and self.step % every == 0 and self.world.main:
            write_rollouts(self.config.output, self.step, taken, self.config.watch.rollout_prompts)
        row = taken.row if isinstance(taken, Step) else taken
        return {"step": self.step, **row, "cpu_s": time.process_time() - started}

    @property
    def m(self) -> int:
        """Answers in one generation of the resulting model."""
        return self.config.train.m if isinstance(self.config.train, RLConfig) else self.domain.chain_length

    def _evaluate(self) -> dict[str, Any]:
        """At the trained number of answers; a warm-up is evaluated for chains and for single answers."""
        if isinstance(self.config.train, RLConfig):
            return self._evaluate_at(self.m)
        return {f"m={m}": self._evaluate_at(m) for m in sorted({1, self.domain.chain_length})}

    def _evaluate_at(self, m: int) -> dict[str, float]:
        train, config = self.config.train, self.config.evaluation
        goals = isinstance(train, RLConfig) and ESTIMATORS[train.estimator.name].goals is not None
        self.sampler.sync(self.engine.sampling_model(), self.step)
        width = -(-config.problems // self.world.size)
        share = range(
            min(self.world.rank * width, config.problems), min((self.world.rank + 1) * width, config.problems)
        )
        rows = evaluate(self.sampler, self.domain, m, config, self._runner, goals=goals, share=share)
        return means([row for part in self.world.gather(rows) for row in part])

    def _score(self, metrics: dict[str, Any] | None) -> float | None:
        """What states are ranked by: best@k, of chains where there are several kinds of prompts."""
        if metrics is None:
            return None
        figures = metrics if isinstance(self.config.train, RLConfig) else metrics[f"m={self.m}"]
        return figures[f"best@{self.config.evaluation.answers}"]

    def _manifest(self, metrics: dict[str, Any]) -> Manifest:
        train = self.config.train
        return Manifest(
            name=self.config.name,
            domain=self.config.domain,
            estimator=train.estimator.name if isinstance(train, RLConfig) else "warmup",
            seed=self.config.seed,
            chain=ChainFormat(m=self.m),
            prompt=self.domain.prompt_format(self.m),
            context_length=self.engine.model.config.max_position_embeddings,
            metrics=metrics,
            training={
                "config": train.model_dump(mode="json"),
                "options": self.config.options,
                "tokens": self._steps.tokens,
                "after": [] if self.config.init is None else _history(self.config.init),
            },
        )

    def _save_model(self, metrics: dict[str, Any], folder: Path | None = None) -> None:
        weights = self.engine.weights()
        if self.world.main:
            target = self.config.output / "model" if folder is None else folder
            save_model(target, self.engine.model, weights, self.tokenizer, self._manifest(metrics))
        self.world.wait()

    def export(self, folder: Path, state: State, metrics: dict[str, Any]) -> None:
        """Write the model of a saved state as a checkpoint folder."""
        self._restore(state)
        self._save_model(metrics, folder)

    def _log(self, row: dict[str, Any]) -> None:
        if self.world.main:
            self.journal.write(row)

    def _save_state(self, metrics: dict[str, Any] | None) -> None:
        pool = self._steps.pool if isinstance(self._steps, PolicySteps) else []
        extra = {"pool": [asdict(item) for item in pool], "tokens": self._steps.tokens}
        tensors = self.engine.tensors()
        if self.world.main:
            self.states.save(State(self.step, tensors, extra, self._score(metrics)))
        self.world.wait()
        if self._pending is not None:
            self._pending.forget_before(self.step)

    def _resume(self) -> None:
        if self.world.main:
            self.config.output.mkdir(parents=True, exist_ok=True)
            write_text(self.config.output / CONFIG_NAME, self.config.model_dump_json(indent=2) + "\n")
        self.world.wait()
        state = self.states.newest()
        if state is not None:
            self._restore(state)
        if self.world.main:
            self.journal.go_on_after(self.step)

    def _restore(self, state: State) -> None:
        self.engine.load(state.tensors)
        self.step, self._steps.tokens = state.step, state.extra["tokens"]
        if isinstance(self._steps, PolicySteps):
            self._steps.pool = [Item(tuple(one["key"]), one["parent"], one["rounds"]) for one in state.extra["pool"]]


def _history(init: Path) -> list[str]:
    """Names of the runs that led to a checkpoint; a pretrained model of others is named by its folder."""
    try:
        manifest = read_manifest(init)
    except ManifestError:
        return [init.name]
    return [*manifest.training.get("after", []), manifest.name]
