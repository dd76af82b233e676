"""The prompts of a policy-gradient step: new problems from scratch, and mutations of the model's own answers.

A search asks for mutations of a parent most of the time, so a share of the prompts shows a parent: an unsolved answer
that the current model gave to the same problem in an earlier step, chosen as the search would choose it (best under a
random scalarisation). Problems are recreated from their keys, so the state is small and can be checkpointed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evolve.randomness import generator
from trainer.config import RLConfig
from trainer.domains.base import Domain

_ROUNDS = 3
"""A problem is asked at most so many times: from scratch, then as mutations."""


@dataclass(frozen=True, slots=True)
class Item:
    """One prompt of a step. key: (step, index) that created the problem. rounds: times asked before."""

    key: tuple[int, int]
    parent: str | None = None
    rounds: int = 0


def choose_items(step: int, config: RLConfig, pool: Sequence[Item]) -> list[Item]:
    """The step's prompts: mutations from the pool (as many as it has, up to the share), then new problems."""
    mutations = list(pool)[: round(config.mutation_share * config.prompts)]
    return mutations + [Item((step, index)) for index in range(config.prompts - len(mutations))]


def make_problem(domain: Domain, seed: int, item: Item) -> Any:
    """The problem of an item; it depends on (seed, key) alone."""
    return domain.problem(generator(seed, "problem", *item.key), heldout=False)


def next_pool(
    items: Sequence[Item],
    rewards: np.ndarray,
    answers: Sequence[Sequence[str]],
    components: np.ndarray,
    key: Sequence[int],
) -> list[Item]:
    """Parents for the next step. rewards (P, G, m, D) with one row per answer, answers of length P * G."""
    group = rewards.shape[1]
    pool = []
    for p, item in enumerate(items):
        if item.rounds + 1 >= _ROUNDS:
            continue
        candidates: dict[str, np.ndarray] = {}
        for g in range(group):
            for slot, source in enumerate(answers[p * group + g]):
                vector = rewards[p, g, slot][components[p]]
                if 0 < vector.mean() < 1:
                    candidates[source] = vector
        if candidates:
            rng = generator(*key, "parent", p)
            weights = rng.dirichlet(np.ones(int(components[p].sum())))
            parent = max(candidates, key=lambda source: float(candidates[source] @ weights))
            pool.append(Item(item.key, parent, item.rounds + 1))
    generator(*key, "pool").shuffle(pool)
    return pool
