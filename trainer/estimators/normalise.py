"""Group statistics and normalisation shared by estimators; masked rollouts take no part."""

from __future__ import annotations

import numpy as np

from trainer.estimators.config import Deviation
from trainer.estimators.groups import Booleans, Floats


def means(scores: Floats, valid: Booleans) -> Floats:
    """Mean of each group's valid rollouts, shape (P, 1), from scores (P, G); 0 where none is valid."""
    count = np.maximum(valid.sum(axis=1, keepdims=True), 1)
    return np.where(valid, scores, 0.0).sum(axis=1, keepdims=True) / count


def centred(scores: Floats, valid: Booleans) -> Floats:
    """Scores (P, G) minus the mean of their group's valid rollouts; zero where not valid."""
    return np.where(valid, scores - means(scores, valid), 0.0)


def deviations(differences: Floats, valid: Booleans, deviation: Deviation) -> Floats:
    """Standard deviation of each group's valid rollouts, shape (P, 1), from centred scores (P, G).

    ``unbiased`` divides by n - 1, ``population`` by n. A group of one rollout has deviation 0.
    """
    count = valid.sum(axis=1, keepdims=True) - (deviation == "unbiased")
    return np.sqrt((differences**2).sum(axis=1, keepdims=True) / np.maximum(count, 1))


def z_scores(scores: Floats, valid: Booleans, epsilon: float, deviation: Deviation = "unbiased") -> Floats:
    """Scores (P, G) minus their group's mean, over its deviation plus ``epsilon``; shape (P, G), zero if not valid.

    The unbiased deviation is the default of every estimator, so that none gets larger steps than another (the released
    VPO code divides by the population deviation, the released GRPO by the unbiased one: 1.07 times at G = 8).
    """
    differences = centred(scores, valid)
    scale = deviations(differences, valid, deviation) + epsilon
    return np.divide(differences, scale, out=np.zeros_like(differences), where=scale > 0)


def for_all_answers(advantages: Floats, m: int) -> Floats:
    """One advantage a rollout, (P, G), as the advantage of each of its m answers, (P, G, m)."""
    return np.repeat(advantages[:, :, None], m, axis=2)
