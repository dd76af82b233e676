"""The training loop: warm-up or policy-gradient steps, metrics, evaluation, resumable checkpoints.

Layout of an output folder: ``state/`` (resume), ``metrics.jsonl`` (one object a step), ``model/`` (the result).
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from evolve.chain import ChainFormat
from evolve.manifest import Manifest, read_manifest
from trainer.checkpoint import load_state, save_model, save_state
from trainer.config import RLConfig, TrainConfig, WarmupConfig
from trainer.domains import make_domain
from trainer.estimators import ESTIMATORS
from trainer.estimators.groups import make_groups
from trainer.estimators.vpo import set_scores
from trainer.estimators.weights import dirichlet_weights
from trainer.evaluate import evaluate
from trainer.loss import k3, log_probabilities, masked_mean, policy_loss
from trainer.model import load_model, load_tokenizer, new_model
from trainer.optimizer import apply_gradients, make_optimizer
from trainer.prompts import Item, choose_items, make_problem, next_pool
from trainer.rollout.torch_sampler import sample
from trainer.scoring import reward_tensor
from trainer.warmup import WarmupBatches, warmup_loss

Report = Callable[[dict[str, Any]], None]


class Training:
    """One run of a configuration; ``run`` goes on from the newest saved state."""

    def __init__(self, config: TrainConfig, report: Report) -> None:
        torch.set_num_threads(config.threads)
        self.config, self.report = config, report
        self.domain = make_domain(config.domain)
        if config.init is None:
            assert config.model is not None  # the configuration's validator saw to it
            self.tokenizer = self.domain.build_tokenizer()
            self.model = new_model(config.model, self.tokenizer, config.seed)
        else:
            self.tokenizer = load_tokenizer(config.init)
            self.model = load_model(config.init)
        self.optimizer = make_optimizer(self.model, config.train.optimizer)
        self.step, self.tokens = 0, 0
        self.pool: list[Item] = []

    def run(self) -> dict[str, Any]:
        """Train to the end, evaluate, write ``model/``; returns the final metrics."""
        take_step = self._warmup() if isinstance(self.config.train, WarmupConfig) else self._rl()
        self._resume()
        while self.step < self.config.train.steps:
            started = time.process_time()
            row = take_step(self.step)
            self.step += 1
            self._log({"step": self.step, **row, "cpu_s": round(time.process_time() - started, 3)})
            if self.step % self.config.save_every == 0 and self.step < self.config.train.steps:
                self._save_state()
            every = self.config.evaluation.every
            if every and self.step % every == 0 and self.step < self.config.train.steps:
                self._log({"step": self.step, "evaluation": self._evaluate()})
        metrics = self._evaluate()
        self._log({"step": self.step, "evaluation": metrics})
        save_model(self.config.output / "model", self.model, self.tokenizer, self._manifest(metrics))
        self._save_state()
        return metrics

    def _warmup(self) -> Callable[[int], dict[str, Any]]:
        config = self.config.train
        assert isinstance(config, WarmupConfig)
        batches = WarmupBatches(self.domain, self.tokenizer, config, self.config.seed)

        def take_step(step: int) -> dict[str, Any]:
            ids, labels = batches(step)
            loss = warmup_loss(self.model, ids, labels)
            loss.backward()
            norm = apply_gradients(self.model, self.optimizer, config.optimizer, step, config.steps)
            self.tokens += int((labels != -100).sum())
            return {"loss": round(loss.item(), 4), "grad_norm": round(norm, 4), "tokens": self.tokens}

        return take_step

    def _rl(self) -> Callable[[int], dict[str, Any]]:
        config = self.config.train
        assert isinstance(config, RLConfig)
        reference = copy.deepcopy(self.model).requires_grad_(False)
        estimator = ESTIMATORS[config.estimator.name]
        max_tokens = self.domain.prompt_format(config.m).max_tokens
        seed = self.config.seed

        def take_step(step: int) -> dict[str, Any]:
            items = choose_items(step, config, self.pool)
            problems = [make_problem(self.domain, seed, item) for item in items]
            prompts = [self.domain.prompt(q, config.m, i.parent) for q, i in zip(problems, items, strict=True)]
            keys = [[(seed, step, p, g) for g in range(config.rollouts)] for p in range(len(items))]
            rollouts = sample(
                self.model, self.tokenizer, prompts, keys, max_tokens=max_tokens, temperature=config.temperature
            )
            rewards, components, answers = reward_tensor(self.domain, problems, rollouts.texts, config.m)
            groups = make_groups(rewards, components=components)
            drawn = estimator.draw(groups, config.estimator, seed, step)
            advantages = estimator.advantages(groups, drawn, config.estimator)[:, :, 0]
            weights = dirichlet_weights(groups.components, groups.prompts, 100, 1.0, seed, step)
            row = self._update(config, reference, rollouts, advantages, step)
            self.pool = next_pool(items, rewards, answers, components, (seed, step))
            self.tokens += int(rollouts.mask.sum())
            scalars = rewards.sum(axis=-1) / components.sum(axis=-1)[:, None, None]
            return {
                "set_score": round(float(set_scores(rewards, weights).mean()), 4),
                "task_scalar": round(float(scalars[:, :, 0].mean()), 4),
                "best_of_group": round(float(scalars.max(axis=(1, 2)).mean()), 4),
                "solved_share": round(float((scalars == 1).any(axis=(1, 2)).mean()), 4),
                "flat_groups": round(float((np.abs(advantages).max(axis=1) < 1e-3).mean()), 4),
                "answers_per_rollout": round(float(np.mean([len(found) for found in answers])), 3),
                "mutation_prompts": sum(item.parent is not None for item in items),
                "tokens": self.tokens,
                **row,
            }

        return take_step

    def _update(
        self, config: RLConfig, reference: torch.nn.Module, rollouts: Any, advantages: np.ndarray, step: int
    ) -> dict[str, float]:
        """One optimizer step on the batch; sampling was by the same weights, so the old policy is this one."""
        with torch.no_grad():
            log_reference, _ = log_probabilities(reference, rollouts)
        log_policy, entropy = log_probabilities(self.model, rollouts)
        flat = torch.from_numpy(advantages.reshape(-1)).to(log_policy.dtype)
        kl = masked_mean(k3(log_policy, log_reference), rollouts.mask)
        loss = policy_loss(log_policy, log_policy.detach(), flat, rollouts.mask, config.clip) + config.kl * kl
        loss.backward()
        norm = apply_gradients(self.model, self.optimizer, config.optimizer, step, config.steps)
        return {
            "kl": round(kl.item(), 5),
            "entropy": round(masked_mean(entropy.detach(), rollouts.mask).item(), 4),
            "grad_norm": round(norm, 4),
            "length": round(float(rollouts.mask.sum(dim=1).float().mean()), 2),
            "finished": round(float(np.mean(rollouts.finished)), 4),
        }

    @property
    def _m(self) -> int:
        return self.config.train.m if isinstance(self.config.train, RLConfig) else self.domain.chain_length

    def _evaluate(self) -> dict[str, Any]:
        """At the trained number of answers; a warm-up is evaluated for chains and for single answers."""
        if isinstance(self.config.train, RLConfig):
            return evaluate(self.model, self.tokenizer, self.domain, self._m, self.config.evaluation)
        return {
            f"m={m}": evaluate(self.model, self.tokenizer, self.domain, m, self.config.evaluation)
            for m in (1, self.domain.chain_length)
        }

    def _manifest(self, metrics: dict[str, Any]) -> Manifest:
        train = self.config.train
        history = [] if self.config.init is None else _history(self.config.init)
        return Manifest(
            name=self.config.name,
            domain=self.config.domain,
            estimator=train.estimator.name if isinstance(train, RLConfig) else "warmup",
            seed=self.config.seed,
            chain=ChainFormat(m=self._m),
            prompt=self.domain.prompt_format(self._m),
            context_length=self.model.config.max_position_embeddings,
            metrics=metrics,
            training={"config": train.model_dump(mode="json"), "tokens": self.tokens, "after": history},
        )

    def _log(self, row: dict[str, Any]) -> None:
        with (self.config.output / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        self.report(row)

    def _save_state(self) -> None:
        extra = {"pool": [asdict(item) for item in self.pool], "tokens": self.tokens}
        save_state(self.config.output / "state", self.model, self.optimizer, self.step, extra)

    def _resume(self) -> None:
        self.config.output.mkdir(parents=True, exist_ok=True)
        state = load_state(self.config.output / "state", self.model, self.optimizer)
        if state is None:
            (self.config.output / "metrics.jsonl").unlink(missing_ok=True)
            return
        self.step, self.tokens = state.step, state.extra["tokens"]
        self.pool = [Item(tuple(item["key"]), item["parent"], item["rounds"]) for item in state.extra["pool"]]
        _drop_rows_after(self.config.output / "metrics.jsonl", self.step)


def _history(init: Path) -> list[str]:
    manifest = read_manifest(init)
    return [*manifest.training.get("after", []), manifest.name]


def _drop_rows_after(path: Path, step: int) -> None:
    """Forget the metrics of steps that a resumed run takes again."""
    if path.exists():
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step]
        path.write_text("".join(kept), encoding="utf-8")
