"""Max@K: Pass@K Policy Optimization (Walder & Karkhanis, arXiv 2505.15201), as the VPO paper uses it as a baseline.

From n independent rollouts with scalars g, s_i = sum over the k-subsets I that contain i of max(g_j, j in I) / C(n, k):
the weights that make sum_i s_i grad log p(x_i) an unbiased gradient of the expected maximum of k rollouts. Then
A = (s - mean(s)) / (std(s) + epsilon).

Departures:
1. As in the VPO paper's baseline, a z-score takes the place of PKPO's leave-one-out baselines (its equations 29, 33).
2. n counts the judged rollouts of the group; k = max(2, n // 2) unless set, and never more than n.
3. With m > 1 answers the scalar is that of the first one; Max@K is meant for m = 1.
"""

from __future__ import annotations

from math import comb

import numpy as np

from trainer.estimators.config import MaxAtKConfig
from trainer.estimators.groups import Floats, Groups
from trainer.estimators.normalise import for_all_answers, z_scores


def max_at_k(groups: Groups, weights: Floats, config: MaxAtKConfig) -> Floats:
    """Advantages (P, G, m), equal for all answers; ``weights`` is not used."""
    del weights
    scores = np.zeros(groups.scalars.shape[:2])
    for p, valid in enumerate(groups.valid):
        n = int(valid.sum())
        if n >= 2:
            k = min(n, max(2, n // 2) if config.k is None else config.k)
            scores[p, valid] = subset_maxima(groups.scalars[p, valid, 0], k)
    return for_all_answers(z_scores(scores, groups.valid, config.epsilon, config.deviation), groups.m)


def subset_maxima(values: Floats, k: int) -> Floats:
    """s_i of each of n values: the sum of maxima over the k-subsets that contain i, over C(n, k); shape (n,).

    In ascending order, value i is the maximum of C(i, k - 1) subsets, and j > i is the maximum of the C(j - 1, k - 2)
    subsets that contain i, j and others below j (ranks from 0). O(n log n).
    """
    n = len(values)
    if not 1 <= k <= n:
        raise ValueError(f"k must be between 1 and the {n} values, not {k}")
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    own = _chances(np.arange(n), k - 1, n, k)
    above = ascending * (_chances(np.arange(n) - 1, k - 2, n, k) if k > 1 else 0.0)
    later = np.append(np.cumsum(above[::-1])[::-1][1:], 0.0)
    scores = np.empty(n)
    scores[order] = own * ascending + later
    return scores


def _chances(available: np.ndarray, chosen: int, n: int, k: int) -> Floats:
    """C(available, chosen) / C(n, k) for each entry, zero where there are too few."""
    total = comb(n, k)
    return np.array([comb(int(count), chosen) / total if count >= chosen else 0.0 for count in available])
