"""One policy-gradient step: prompts, rollouts, judgements, advantages, update."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast

from trainer.config import RLConfig, TrainConfig
from trainer.credit import spread, token_places
from trainer.domains.base import Domain, Judged, Prompt
from trainer.engine import Engine
from trainer.estimators import ESTIMATORS
from trainer.estimators.groups import Groups, make_groups
from trainer.metrics import rollout_metrics, step_metrics
from trainer.prompts import Item, choose_items, make_problem, next_pool
from trainer.rollout.base import Key, Rollouts, Sampler
from trainer.rollout.store import RolloutStore
from trainer.scoring import Scores, collect_scores, judge_texts
from trainer.update import Batch, update


@dataclass(frozen=True, slots=True)
class Step:
    """What a step did, for whoever watches. rollouts: this process's; scores, advantages (P, G, m): of all."""

    prompts: list[Prompt]
    rollouts: Rollouts
    scores: Scores
    advantages: np.ndarray
    row: dict[str, Any]


class PolicySteps:
    """Takes the steps of a run. ``pool`` (parents to mutate) and ``tokens`` (generated so far) are its state."""

    def __init__(
        self,
        config: TrainConfig,
        domain: Domain,
        tokenizer: PreTrainedTokenizerFast,
        engine: Engine,
        sampler: Sampler,
        runner: asyncio.Runner,
        store: RolloutStore | None = None,
    ) -> None:
        assert isinstance(config.train, RLConfig)
        self._config, self._rl = config, config.train
        self._domain, self._tokenizer, self._engine, self._sampler = domain, tokenizer, engine, sampler
        self._runner, self._store = runner, store
        self._estimator = ESTIMATORS[config.train.estimator.name]
        self._max_tokens = config.train.max_tokens or domain.prompt_format(config.train.m).max_tokens
        self._mine = engine.world.share(config.train.prompts)
        self.pool: list[Item] = []
        self.tokens = 0

    def __call__(self, step: int) -> Step:
        """Take step ``step``; it depends on (configuration, step, weights, pool) alone."""
        started = time.perf_counter()
        share = self._rl.mutation_share if self._domain.mutates else 0.0
        items = choose_items(step, self._rl.prompts, share, self.pool)
        problems = [make_problem(self._domain, self._config.seed, item) for item in items]
        prompts = self._ask(problems, items, step)
        rollouts, judged = self._rollouts(step, [prompts[p] for p in self._mine], [problems[p] for p in self._mine])
        sampled = time.perf_counter()
        scores, parts = self._gather(problems, rollouts, judged)
        groups = make_groups(scores.rewards, components=scores.components, scalars=scores.scalars, failed=~scores.valid)
        before = time.process_time()
        weights = self._estimator.draw(groups, self._rl.estimator, self._config.seed, step)
        advantages = self._estimator.advantages(groups, weights, self._rl.estimator)
        estimator_s = time.process_time() - before
        row = update(
            self._engine, self._batch(rollouts, scores, groups, advantages), self._rl, (self._config.seed, step)
        )
        self.pool = next_pool(items, scores, (self._config.seed, step)) if share else []
        tokens = sum(int(part.mask.sum()) for part in parts)
        self.tokens += tokens
        return Step(
            prompts,
            rollouts,
            scores,
            advantages,
            {
                **step_metrics(scores, advantages, self._config.seed),
                **rollout_metrics(parts),
                **row,
                "mutation_prompts": sum(item.parent is not None for item in items),
                "tokens": self.tokens,
                "estimator_s": estimator_s,
                "sampling_s": sampled - started,
                "tokens_per_s": tokens / (time.perf_counter() - started),
            },
        )

    def _ask(self, problems: Sequence[Any], items: Sequence[Item], step: int) -> list[Prompt]:
        goals: Sequence[np.ndarray | None] = [None] * len(problems)
        if self._estimator.goals is not None:
            goals = self._goals(problems, step)

        async def ask() -> list[Prompt]:
            m = self._rl.m
            asked = zip(problems, items, goals, strict=True)
            return list(
                await asyncio.gather(*(self._domain.ask(q, m, parent=i.parent, goal=goal) for q, i, goal in asked))
            )

        return self._runner.run(ask())

    def _goals(self, problems: Sequence[Any], step: int) -> list[np.ndarray]:
        assert self._estimator.goals is not None
        sizes = np.array([len(self._domain.components(problem)) for problem in problems])
        components = np.arange(sizes.max())[None] < sizes[:, None]
        indices = np.arange(len(problems))
        table = self._estimator.goals(components, indices, self._rl.estimator, self._config.seed, step)
        return [row[:d] for row, d in zip(table, sizes, strict=True)]

    def _rollouts(self, step: int, prompts: list[Prompt], problems: list[Any]) -> tuple[Rollouts, list[list[Judged]]]:
        """This process's rollouts and their judgements: stored ones of an earlier try, or new ones."""
        if self._store is not None and (stored := self._store.load(step)) is not None:
            return stored
        self._sampler.sync(self._engine.sampling_model(), step)
        seed = self._config.seed
        keys: list[list[Key]] = [[(seed, step, p, g) for g in range(self._rl.rollouts)] for p in self._mine]
        rollouts = self._sampler.sample(prompts, keys, max_tokens=self._max_tokens, temperature=self._rl.temperature)
        judged = self._runner.run(judge_texts(self._domain, problems, rollouts.texts, self._rl.m))
        if self._store is not None:
            self._store.save(step, rollouts, judged)
        return rollouts, judged

    def _gather(
        self, problems: Sequence[Any], rollouts: Rollouts, judged: list[list[Judged]]
    ) -> tuple[Scores, list[Rollouts]]:
        """The judgements of all processes as scores, and all their rollouts."""
        parts = self._engine.world.gather((rollouts, judged))
        texts = [text for part, _ in parts for text in part.texts]
        verdicts = [row for _, rows in parts for row in rows]
        return collect_scores(self._domain, problems, texts, verdicts, self._rl.m), [part for part, _ in parts]

    def _batch(self, rollouts: Rollouts, scores: Scores, groups: Groups, advantages: np.ndarray) -> Batch:
        group = self._rl.rollouts
        rows = slice(self._mine.start * group, self._mine.stop * group)
        prompts = slice(self._mine.start, self._mine.stop)
        places = token_places(rollouts, scores.answers[rows], self._rl.m, self._tokenizer)
        judged = torch.from_numpy(groups.valid[prompts].reshape(-1))
        return Batch(rollouts, spread(advantages[prompts], places), rollouts.mask & judged[:, None], group)
