"""Selection by dominance, crowding and novelty, among a few members drawn at random: so the cost is bounded.

Pure functions from reward vectors, shape (n, d) with n >= 1, to a row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evolve.members import Rewards
from evolve.randomness import draw

_REFERENCES = 256


def undominated(rewards: Rewards) -> NDArray[np.bool_]:
    """Which rows no other row dominates (at least as good everywhere, better somewhere), shape (n,). O(n^2 d)."""
    weakly = (rewards[:, None, :] >= rewards[None, :, :]).all(axis=2)  # [i, j]: i is nowhere worse than j
    return np.asarray(~(weakly & ~weakly.T).any(axis=0))


def crowding_distance(rewards: Rewards) -> Rewards:
    """How lonely each row is, shape (n,): Deb et al. 2002 (NSGA-II), section III-B.

    The sum over components of the normalised distance between its neighbours; infinite at a component's ends. Where
    several rows share an end, each counts: the order among equals must not decide.
    """
    n, d = rewards.shape
    distance = np.zeros(n)
    for column in range(d):
        values = rewards[:, column]
        low, high = values.min(), values.max()
        if high <= low:
            continue
        ordered = np.sort(values)
        below = ordered[np.maximum(np.searchsorted(ordered, values, side="left") - 1, 0)]
        above = ordered[np.minimum(np.searchsorted(ordered, values, side="right"), n - 1)]
        gap = (above - below) / (high - low)
        distance += np.where((values == low) | (values == high), np.inf, gap)
    return distance


def pareto(rewards: Rewards, tournament: int, rng: np.random.Generator) -> int:
    """The least crowded of the undominated among ``tournament`` rows drawn at random; ties: uniform."""
    rows = _draw(len(rewards), tournament, rng)
    front = rows[undominated(rewards[rows])]
    distance = crowding_distance(rewards[front])
    return draw(front[distance == distance.max()], rng)


def novelty(rewards: Rewards, tournament: int, neighbours: int, rng: np.random.Generator) -> int:
    """The row, of ``tournament`` drawn at random, with the largest mean L1 distance to its nearest ``neighbours``.

    Lehman and Stanley 2011, on reward vectors as behaviour; neighbours are sought among at most 256 rows drawn at
    random. Ties: uniform.
    """
    rows = _draw(len(rewards), tournament, rng)
    references = _draw(len(rewards), _REFERENCES, rng)
    distance = np.abs(rewards[rows][:, None, :] - rewards[references][None, :, :]).sum(axis=2)
    distance[rows[:, None] == references[None, :]] = np.inf  # no row is its own neighbour
    count = min(neighbours, len(references) - 1)
    if count < 1:
        return draw(rows, rng)
    nearest = np.partition(distance, count - 1, axis=1)[:, :count].mean(axis=1)
    return draw(rows[nearest >= nearest.max() - 1e-12], rng)


def _draw(n: int, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Up to ``count`` different rows of n, in order."""
    return np.arange(n) if n <= count else np.unique(rng.integers(n, size=count))
