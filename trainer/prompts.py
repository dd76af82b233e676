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
from trainer.domains.base import Domain
from trainer.scoring import Scores

_ROUNDS = 3
"""A problem is asked at most so many times: from scratch, then as mutations."""


@dataclass(frozen=True, slots=True)
class Item:
    """One prompt of a step. key: (step, index) that created the problem. rounds: times asked before."""

    key: tuple[int, int]
    parent: str | None = None
    rounds: int = 0


def choose_items(step: int, prompts: int, mutation_share: float, pool: Sequence[Item]) -> list[Item]:
    """The step's prompts: mutations from the pool (as many as it has, up to the share), then new problems."""
    mutations = list(pool)[: round(mutation_share * prompts)]
    return mutations + [Item((step, index)) for index in range(prompts - len(mutations))]


def make_problem(domain: Domain, seed: int, item: Item) -> Any:
    """The problem of an item; it depends on (seed, key) alone."""
    return domain.problem(generator(seed, "problem", *item.key), heldout=False)


def next_pool(items: Sequence[Item], scores: Scores, key: Sequence[int]) -> list[Item]:
    """Parents for the next step, from the judgements of this one's rollouts; ``key`` = (seed, step)."""
    pool = []
    for p, item in enumerate(items):
        candidates = _unsolved(scores, p) if item.rounds + 1 < _ROUNDS else {}
        if candidates:
            rng = generator(*key, "parent", p)
            weights = rng.dirichlet(np.ones(int(scores.components[p].sum())))
            parent = max(candidates, key=lambda source: float(candidates[source] @ weights))
            pool.append(Item(item.key, parent, item.rounds + 1))
    generator(*key, "pool").shuffle(pool)
    return pool


def _unsolved(scores: Scores, p: int) -> dict[str, np.ndarray]:
    """Reward vectors of the answers to prompt p that earned something but not everything, by their text."""
    group = scores.rewards.shape[1]
    found = {}
    for g in range(group):
        for answer in scores.answers[p * group + g]:
            place = (p, g, answer.index)
            vector = scores.rewards[place][scores.components[p]]
            if vector.any() and not scores.solved[place]:
                found[answer.text] = vector
    return found
