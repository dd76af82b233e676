"""Curves over iterations and figures over pools of answers: pure functions from numbers to numbers.

Curves have one point per iteration t = 0..horizon (t = 0 is the seed program). Figures at k are exact expectations
over which k of the n drawn answers one would have had, not simulations.

Answers of one chain depend on each other, so for chain models (``chain_*``) whole chains are drawn: k answers are
k // m chains and, where k is no multiple of m, the first k % m answers of one more chain; best@1 is the expected first
answer. Independent samples use the unbiased combinatorial formula (Chen et al. 2021, equation 1, and its analogue for
maxima).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolve.randomness import generator

Floats = NDArray[np.float64]

AXES = ("iterations", "evaluations", "tests", "calls", "tokens", "cost", "seconds")
"""What curves may be drawn over: fields of :class:`evolve.ledger.Spent`."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and the bootstrap interval around it."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Curve:
    """Means over runs and their bootstrap intervals at the points ``x``; all of one shape, (points,)."""

    x: Floats
    mean: Floats
    low: Floats
    high: Floats


def solved_by_t(first_solved: Sequence[int | None], horizon: int) -> NDArray[np.int64]:
    """Number of runs solved by each iteration, shape (horizon + 1,), non-decreasing.

    first_solved: per run, the iteration that solved it (0: the seed program), ``None`` for never.
    """
    solved = np.array([t for t in first_solved if t is not None and t <= horizon], dtype=np.int64)
    if len(solved) and solved.min() < 0:
        raise ValueError(f"first_solved must not be negative, not {solved.min()}")
    return np.cumsum(np.bincount(solved, minlength=horizon + 1)).astype(np.int64)


def pass_at_t(first_solved: Sequence[int | None], horizon: int) -> Floats:
    """pass@t: the fraction of runs solved by each iteration, shape (horizon + 1,), in [0, 1]. Zeros without runs."""
    return solved_by_t(first_solved, horizon) / max(1, len(first_solved))


def running_best(scalars: Sequence[Sequence[float]], horizon: int) -> Floats:
    """The best task scalar so far of each run at each iteration, shape (runs, horizon + 1), in [0, 1].

    scalars: per run, the best task scalar of iteration 0, 1, ...; a run that ended early keeps its last best, one
    without any value has 0.
    """
    best = np.zeros((len(scalars), horizon + 1))
    for row, values in enumerate(scalars):
        reached = np.maximum.accumulate(np.asarray(values, dtype=float)[: horizon + 1])
        if len(reached):
            best[row, : len(reached)] = reached
            best[row, len(reached) :] = reached[-1]
    return best


def best_at_t(scalars: Sequence[Sequence[float]], horizon: int) -> Floats:
    """best@t: the mean of :func:`running_best` over runs, shape (horizon + 1,). Zeros without runs."""
    return running_best(scalars, horizon).mean(axis=0) if len(scalars) else np.zeros(horizon + 1)


def pass_at_k(n: int, correct: int, k: int) -> float:
    """pass@k of n independent samples of which ``correct`` are right: 1 - C(n - correct, k) / C(n, k).

    Unbiased for the chance that k fresh samples contain a right one. Raises ``ValueError`` unless
    0 <= correct <= n and 1 <= k <= n.
    """
    if not 0 <= correct <= n:
        raise ValueError(f"correct must be between 0 and n = {n}, not {correct}")
    _check_k(k, n)
    return float(1.0 - _chance_all_within(np.array([n - correct]), n, k)[0])


def best_at_k(values: ArrayLike, k: int) -> float:
    """best@k of independent samples: the mean maximum over all k-subsets of ``values``, shape (n,), 1 <= k <= n."""
    ordered = np.sort(np.asarray(values, dtype=float))
    _check_k(k, len(ordered))
    return float(ordered @ _chance_of_maximum(len(ordered), k))


def chain_best_at_k(values: ArrayLike, k: int) -> float:
    """best@k of a chain model: values of shape (chains, m), answers in the order given, missing ones 0.

    The mean over all choices of k // m whole chains and, for the rest, the first k % m answers of another chain.
    Raises ``ValueError`` unless 1 <= k <= chains * m.
    """
    table = np.asarray(values, dtype=float)
    if table.ndim != 2 or not table.size:
        raise ValueError(f"chains must have the shape (chains, m) with both positive, not {table.shape}")
    chains, m = table.shape
    _check_k(k, chains * m)
    whole, rest = divmod(k, m)
    maxima = table.max(axis=1)
    if not rest:
        return best_at_k(maxima, whole)
    prefixes = table[:, :rest].max(axis=1)
    if not whole:
        return float(prefixes.mean())
    order = np.argsort(maxima, kind="stable")
    chances = _chance_of_maximum(chains - 1, whole)
    means = [np.maximum(prefix, maxima[order[order != last]]) @ chances for last, prefix in enumerate(prefixes)]
    return float(np.mean(means))


def chain_pass_at_k(solved: ArrayLike, k: int) -> float:
    """pass@k of a chain model: ``solved`` of shape (chains, m), true where the answer passes every test."""
    return chain_best_at_k(np.asarray(solved, dtype=bool), k)


def expected_best_at_k(rewards: ArrayLike, k: int, *, alpha: float = 1.0, weights: int = 256, seed: int = 0) -> float:
    """E_w[best@k]: best@k of ``w @ r``, averaged over w ~ Dirichlet(alpha, ..., alpha).

    rewards: shape (n, d) for independent samples, (chains, m, d) for chains; each in [0, 1].
    weights: draws of w; the same seed gives the same draws, so that pools can be compared.
    """
    table = np.asarray(rewards, dtype=float)
    if table.ndim not in (2, 3):
        raise ValueError(f"rewards must have the shape (n, d) or (chains, m, d), not {table.shape}")
    figure = best_at_k if table.ndim == 2 else chain_best_at_k
    draws = generator(seed, "expected_best_at_k").dirichlet(np.full(table.shape[-1], alpha), size=weights)
    return float(np.mean([figure(table @ draw, k) for draw in draws]))


def reward_diversity(rewards: ArrayLike) -> float:
    """Mean L1 distance between the reward vectors of two different answers of a pool, shape (n, d); in [0, d].

    0 where there are fewer than two. Sorting each component makes it O(n log n), not O(n^2).
    """
    table = np.sort(np.asarray(rewards, dtype=float), axis=0)
    n = len(table)
    if n < 2:
        return 0.0
    signs = 2.0 * np.arange(n) - (n - 1)  # how often each rank is added minus how often subtracted over all pairs
    return max(0.0, float((signs @ table).sum() / (n * (n - 1) / 2)))


def coverage(rewards: ArrayLike) -> float:
    """Share of the components that some answer of a pool fulfils (reward 1), shape (n, d); in [0, 1], 0 if empty."""
    table = np.asarray(rewards, dtype=float)
    return float((table.max(axis=0) >= 1.0 - 1e-9).mean()) if table.size else 0.0


def qd_score(cells: Sequence[Hashable], scalars: ArrayLike) -> float:
    """QD-score: the sum over cells of the best task scalar in each; Pugh, Soros and Stanley 2016, section 4.

    cells: of each answer, any hashable labels. scalars: shape (n,), in [0, 1]. In [0, number of cells].
    """
    best: dict[Hashable, float] = {}
    for cell, scalar in zip(cells, np.asarray(scalars, dtype=float).tolist(), strict=True):
        best[cell] = max(scalar, best.get(cell, 0.0))
    return sum(best.values())


def value_at(values: ArrayLike, spent: ArrayLike, x: ArrayLike) -> Floats:
    """A run's step curve at other points: the last value whose ``spent`` is at most x (the first before any).

    values, spent: shape (T + 1,), ``spent`` non-decreasing. A run that ended keeps its last value.
    """
    table, reached = np.asarray(values, dtype=float), np.asarray(spent, dtype=float)
    index = np.searchsorted(reached, np.asarray(x, dtype=float) + 1e-9, side="right") - 1
    return np.asarray(table[np.maximum(index, 0)])


def curve_over(
    values: Sequence[ArrayLike], spent: Sequence[ArrayLike], *, points: int = 101, level: float = 0.95, seed: int = 0
) -> Curve:
    """The mean of several runs' step curves over what they have spent, with bootstrap intervals over the runs.

    values, spent: one array per run (see :func:`value_at`). x runs from 0 to the largest that any run has spent, in
    whole steps where that is fewer than ``points``. Raises ``ValueError`` without runs.
    """
    if not values or len(values) != len(spent):
        raise ValueError(f"a curve needs runs, and what each has spent, not {len(values)} and {len(spent)}")
    most = max(float(np.asarray(reached)[-1]) for reached in spent)
    whole = most.is_integer() and most < points
    x: Floats = np.linspace(0.0, most, int(most) + 1 if whole else points)
    table = np.array([value_at(run, reached, x) for run, reached in zip(values, spent, strict=True)])
    low, high = bootstrap_interval(table, level=level, seed=seed)
    return Curve(x, table.mean(axis=0), low, high)


def mean_interval(values: ArrayLike, *, level: float = 0.95, resamples: int = 1000, seed: int = 0) -> Interval:
    """The mean of a figure over runs (or tasks), shape (n,), with its bootstrap interval.

    For any figure here: ``mean_interval([best_at_k(pool, 10) for pool in pools])``. Raises ``ValueError`` if empty.
    """
    table = np.asarray(values, dtype=float)
    low, high = bootstrap_interval(table, level=level, resamples=resamples, seed=seed)
    return Interval(float(table.mean()), float(low), float(high))


def bootstrap_interval(
    values: ArrayLike, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> tuple[Floats, Floats]:
    """Percentile bootstrap interval of the mean over the first axis: (low, high), each of shape ``values.shape[1:]``.

    values: one row per run (or task), resampled as a whole. Deterministic for a seed. Raises ``ValueError`` if empty.
    """
    table = np.asarray(values, dtype=float)
    if not len(table) or not 0.0 < level < 1.0:
        raise ValueError("a bootstrap interval needs at least one row and a level between 0 and 1")
    runs = len(table)
    counts = generator(seed, "bootstrap").multinomial(runs, np.full(runs, 1.0 / runs), size=resamples)
    means = np.tensordot(counts / runs, table, axes=1)
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(means, [tail, 1.0 - tail], axis=0)
    return np.asarray(low), np.asarray(high)


def _check_k(k: int, n: int) -> None:
    if not 1 <= k <= n:
        raise ValueError(f"k must be between 1 and the {n} answers drawn, not {k}")


def _chance_all_within(count: NDArray[np.int64], n: int, k: int) -> Floats:
    """C(count, k) / C(n, k) for each count: the chance that a k-subset of n lies within ``count`` of them."""
    factors = (count[:, None] - np.arange(k)) / (n - np.arange(k))
    return np.where(count >= k, np.clip(factors, 0.0, 1.0).prod(axis=1), 0.0)


def _chance_of_maximum(n: int, k: int) -> Floats:
    """Chance that each rank (ascending, shape (n,)) is the largest of a k-subset: C(rank, k - 1) / C(n, k)."""
    within = _chance_all_within(np.arange(n + 1), n, k)
    return np.diff(within)
