"""Choosing parents, mates and inspirations from an archive, on the reward vector wherever there is one.

A strategy is a :class:`Selector`: a function from a pool of members to one of them. ``STRATEGIES`` is their registry;
:class:`evolve.config.SelectionConfig` has a weight for each, and their settings. ``dirichlet`` is the scalarisation
that VPO trains for; ``elite``, ``exploit`` and ``explore`` are OpenEvolve's; lexicase is in :mod:`evolve.lexicase`.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from evolve.archive import Archive
from evolve.config import STRATEGY_NAMES, SelectionConfig
from evolve.lexicase import downsampled_lexicase, epsilon_lexicase, lexicase
from evolve.members import Pool, Rewards, rank
from evolve.program import Program
from evolve.randomness import draw


class Selector(Protocol):
    """A way to choose: a position in ``pool``, which is never empty. Every draw comes from ``rng``."""

    def __call__(self, pool: Pool, config: SelectionConfig, rng: np.random.Generator) -> int: ...


def dirichlet_best(
    rewards: Rewards, concentration: float, rng: np.random.Generator, *, alpha: float | None = None
) -> int:
    """Row of ``rewards`` (n, d) with the largest ``w @ r`` for one random w (see :func:`simplex_weights`); ties:
    uniform."""
    return _argmax(rewards @ simplex_weights(rewards.shape[1], concentration, rng, alpha=alpha), rng)


def simplex_weights(d: int, concentration: float, rng: np.random.Generator, *, alpha: float | None = None) -> Rewards:
    """One point of the simplex, shape (d,), from the symmetric Dirichlet; d >= 1.

    Its parameter is ``alpha`` or, where that is ``None``, concentration / d: that shrinks with d, so that a weighting
    favours about ``concentration`` components however many there are. Training draws from the same distribution.
    """
    weights = rng.dirichlet(np.full(d, concentration / d if alpha is None else alpha))
    if not math.isfinite(weights.sum()):  # every gamma draw underflowed (tiny alpha): the limit is a corner
        weights = np.zeros(d)
        weights[rng.integers(d)] = 1.0
    return weights


def _argmax(values: Rewards, rng: np.random.Generator) -> int:
    return draw(np.flatnonzero(values >= values.max() - 1e-12), rng)


def _weights(d: int, config: SelectionConfig, rng: np.random.Generator) -> Rewards:
    return simplex_weights(d, config.concentration, rng, alpha=config.alpha)


def _lexicase(pool: Pool, config: SelectionConfig, rng: np.random.Generator) -> int:
    return lexicase(pool.levels, rng)


def _epsilon_lexicase(pool: Pool, config: SelectionConfig, rng: np.random.Generator) -> int:
    return epsilon_lexicase(pool.rewards, config.epsilon, rng)


def _downsampled_lexicase(pool: Pool, config: SelectionConfig, rng: np.random.Generator) -> int:
    return downsampled_lexicase(pool.levels, config.downsample, rng)


def _dirichlet(pool: Pool, config: SelectionConfig, rng: np.random.Generator) -> int:
    return dirichlet_best(pool.rewards, config.concentration, rng, alpha=config.alpha)


def _complement(pool: Pool, config: SelectionConfig, rng: np.random.Generator) -> int:
    best = _argmax(pool.scalars, rng)
    union = np.maximum(pool.rewards, pool.rewards[best])
    return _argmax(union @ _weights(union.shape[1], config, rng), rng)


def _elite(pool: Pool, config: SelectionConfig, rng: np.random.Generator) -> int:
    return _argmax(pool.scalars, rng)


def _exploit(pool: Pool, config: SelectionConfig, rng: np.random.Generator) -> int:
    count = min(config.elites, len(pool))
    return draw(np.argsort(-pool.scalars, kind="stable")[:count], rng)


def _explore(pool: Pool, config: SelectionConfig, rng: np.random.Generator) -> int:
    return int(rng.integers(len(pool)))


STRATEGIES: dict[str, Selector] = {
    "lexicase": _lexicase,
    "epsilon_lexicase": _epsilon_lexicase,
    "downsampled_lexicase": _downsampled_lexicase,
    "dirichlet": _dirichlet,
    "complement": _complement,
    "elite": _elite,
    "exploit": _exploit,
    "explore": _explore,
}
assert tuple(STRATEGIES) == STRATEGY_NAMES


def select_parent(archive: Archive, config: SelectionConfig, rng: np.random.Generator) -> tuple[Program, str]:
    """A parent and the name of the strategy that chose it. The archive must not be empty."""
    weights = config.weights()
    shares = np.array(list(weights.values()))
    name = list(weights)[int(rng.choice(len(shares), p=shares / shares.sum()))]
    pool = archive.pool(config.pool, config.elites, rng)
    return pool[STRATEGIES[name](pool, config, rng)], name


def select_mate(archive: Archive, parent: Program, config: SelectionConfig, rng: np.random.Generator) -> Program | None:
    """The member that passes most of what the parent does not, under a random weighting; ``None`` if none adds
    anything."""
    pool = archive.pool(config.pool, config.elites, rng)
    own = archive.vector(parent)
    if not len(pool) or pool.rewards.shape[1] != len(own):
        return None
    gain = np.maximum(pool.rewards - own, 0.0) @ _weights(len(own), config, rng)
    gain[pool.holds(parent.digest)] = 0.0
    return pool[_argmax(gain, rng)] if gain.max() > 1e-12 else None


def select_inspirations(
    archive: Archive, parent: Program, count: int, config: SelectionConfig, rng: np.random.Generator
) -> list[Program]:
    """Up to ``count`` other members that complement the parent, best task scalar first.

    Each is the one that raises the component-wise maximum of those chosen so far (the parent included) the most under
    a random weighting. Members with the parent's source, or with no reward at all, inspire nothing.
    """
    pool = archive.pool(config.pool, config.elites, rng)
    eligible = ~pool.holds(parent.digest) & (pool.rewards @ np.ones(pool.rewards.shape[1]) > 0.0)
    covered = np.maximum(pool.rewards, archive.vector(parent)[: pool.rewards.shape[1]])  # by those chosen and each row
    chosen: list[Program] = []
    while len(chosen) < count and eligible.any():
        gain = covered @ _weights(covered.shape[1], config, rng)
        position = _argmax(np.where(eligible, gain, -1.0), rng)
        chosen.append(pool[position])
        np.maximum(covered, pool.rewards[position], out=covered)  # in place: a new matrix costs more than all else
        eligible &= ~pool.holds(chosen[-1].digest)
    return sorted(chosen, key=rank)
