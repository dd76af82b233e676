"""Slow and obvious versions of the estimators' formulas, one group at a time, in plain loops."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from evolve.randomness import generator
from trainer.estimators.groups import Groups, make_groups


def z_scores(values: Sequence[float], epsilon: float, *, population: bool = False) -> list[float]:
    mean = statistics.fmean(values)
    count = len(values) if population else len(values) - 1
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / count)
    return [(value - mean) / (deviation + epsilon) for value in values]


def set_score(answers: np.ndarray, weights: np.ndarray) -> float:
    """answers (m, d), weights (K, d)."""
    return statistics.fmean(max(float(w @ r) for r in answers) for w in weights)


def subset_maxima(values: Sequence[float], k: int) -> list[float]:
    subsets = list(itertools.combinations(range(len(values)), k))
    return [
        sum(max(values[j] for j in subset) for subset in subsets if i in subset) / len(subsets)
        for i in range(len(values))
    ]


def random_groups(seed: int, P: int, G: int, m: int, D: int, *, fail: float = 0.0) -> Groups:
    """Groups with variable d, coarse rewards (so that ties and duplicates happen), zero rows and failures."""
    rng = generator(seed, "groups")
    rewards = rng.integers(0, 5, (P, G, m, D)) / 4
    rewards[rng.random((P, G, m)) < 0.2] = 0
    sizes = rng.integers(1, D + 1, P)
    components = rng.permuted(np.arange(D)[None] < sizes[:, None], axis=1)
    return make_groups(rewards, components=components, failed=rng.random((P, G, m)) < fail)


shapes = st.tuples(st.integers(0, 10**6), st.integers(1, 3), st.integers(2, 6), st.integers(1, 4), st.integers(1, 6))
"""seed, P, G, m, D"""
