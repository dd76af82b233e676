"""Group normalisation shared by estimators."""

from __future__ import annotations

import numpy as np


def z_scores(scores: np.ndarray, epsilon: float) -> np.ndarray:
    """Scores (P, G) minus their group's mean, over its unbiased standard deviation plus ``epsilon``; shape (P, G).

    The unbiased deviation is used for every estimator, so that none gets larger steps than another (the released VPO
    code divides by the population deviation, the released GRPO by the unbiased one: 1.07 times at G = 8).
    """
    centred = scores - scores.mean(axis=1, keepdims=True)
    return centred / (scores.std(axis=1, ddof=1, keepdims=True) + epsilon)
