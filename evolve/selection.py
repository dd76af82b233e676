"""Choosing parents and inspirations from an archive, on the reward vector wherever there is one.

The strategies are pure functions from arrays to a row; ``STRATEGIES`` is their registry. ``lexicase`` follows Spector
(2012) on rewards in whole steps, so that float noise decides nothing; ``dirichlet`` is the scalarisation that VPO
trains for; ``elite``, ``exploit`` and ``explore`` are OpenEvolve's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evolve.archive import Archive
from evolve.config import SelectionConfig
from evolve.program import Program

Rewards = NDArray[np.float64]


def lexicase(levels: NDArray[np.uint8], rng: np.random.Generator) -> int:
    """Row of ``levels`` (n, d) that survives filtering by the best value of each component, in random order.

    Ties that outlast every component are broken uniformly. n must be at least 1.
    """
    rows = np.arange(len(levels))
    for column in rng.permutation(levels.shape[1]):
        values = levels[rows, column]
        rows = rows[values == values.max()]
        if len(rows) == 1:
            break
    return int(rng.choice(rows))


def dirichlet_best(rewards: Rewards, concentration: float, rng: np.random.Generator) -> int:
    """Row of ``rewards`` (n, d) with the largest ``w @ r`` for one w ~ Dirichlet(concentration / d); ties: uniform."""
    return _argmax(rewards @ simplex_weights(rewards.shape[1], concentration, rng), rng)


def simplex_weights(d: int, concentration: float, rng: np.random.Generator) -> Rewards:
    """One point of the simplex, shape (d,), from the symmetric Dirichlet with alpha = concentration / d (d >= 1).

    alpha shrinks with d, so that a weighting favours about ``concentration`` components however many there are.
    """
    weights = rng.dirichlet(np.full(d, concentration / d))
    if not np.isfinite(weights).all():  # every gamma draw underflowed (tiny alpha): the limit is a corner
        weights = np.zeros(d)
        weights[rng.integers(d)] = 1.0
    return weights


def _argmax(values: Rewards, rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(values >= values.max() - 1e-12)))


def _lexicase(archive: Archive, config: SelectionConfig, rng: np.random.Generator) -> int:
    return lexicase(archive.levels, rng)


def _dirichlet(archive: Archive, config: SelectionConfig, rng: np.random.Generator) -> int:
    return dirichlet_best(archive.rewards, config.concentration, rng)


def _elite(archive: Archive, config: SelectionConfig, rng: np.random.Generator) -> int:
    return _argmax(archive.scalars, rng)


def _exploit(archive: Archive, config: SelectionConfig, rng: np.random.Generator) -> int:
    scalars = archive.scalars
    count = min(config.elites, len(scalars))
    return int(rng.choice(np.argsort(-scalars, kind="stable")[:count]))


def _explore(archive: Archive, config: SelectionConfig, rng: np.random.Generator) -> int:
    return int(rng.integers(len(archive)))


STRATEGIES: dict[str, Callable[[Archive, SelectionConfig, np.random.Generator], int]] = {
    "lexicase": _lexicase,
    "dirichlet": _dirichlet,
    "elite": _elite,
    "exploit": _exploit,
    "explore": _explore,
}


def select_parent(archive: Archive, config: SelectionConfig, rng: np.random.Generator) -> tuple[Program, str]:
    """A parent and the name of the strategy that chose it. The archive must not be empty."""
    weights = config.weights()
    shares = np.array(list(weights.values()))
    name = list(weights)[int(rng.choice(len(shares), p=shares / shares.sum()))]
    return archive.members[STRATEGIES[name](archive, config, rng)], name


def select_inspirations(
    archive: Archive, parent: Program, count: int, config: SelectionConfig, rng: np.random.Generator
) -> list[Program]:
    """Up to ``count`` other members that complement the parent, best task scalar first.

    Each is the one that raises the component-wise maximum of those chosen so far (the parent included) the most under
    a random weighting. Members with the parent's source, or with no reward at all, inspire nothing.
    """
    own = archive.holds(parent.digest)
    eligible = ~own & archive.rewards.any(axis=1)
    covered = archive.rewards[own].max(axis=0, initial=0.0)
    chosen: list[Program] = []
    while len(chosen) < count and eligible.any():
        weights = simplex_weights(len(covered), config.concentration, rng)
        union = np.maximum(archive.rewards, covered) @ weights
        row = _argmax(np.where(eligible, union, -1.0), rng)
        chosen.append(archive.members[row])
        covered = np.maximum(covered, archive.rewards[row])
        eligible &= ~archive.holds(archive.members[row].digest)
    return sorted(chosen, key=lambda program: (-program.evaluation.scalar, len(program.source), program.number))
