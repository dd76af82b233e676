"""How far off an average over finitely many weights may be, and how that keeps noise out of advantages.

A group whose rollouts are tied has scores that differ by the integration error alone; dividing by their deviation makes
that error into full-size advantages, whatever the number of weights. So the deviation gets a floor: the estimated error
over the share of an advantage that may be noise.
"""

from __future__ import annotations

import numpy as np

from trainer.estimators.config import Deviation
from trainer.estimators.groups import Floats

BLOCKS = 8
"""Runs of consecutive weights whose scatter gives the error."""


def block_means(values: Floats) -> Floats:
    """Means of BLOCKS runs of consecutive weights, shape (..., BLOCKS), from values per weight, shape (..., K).

    Each run of 2**j Sobol points is evenly spread by itself. The last K % BLOCKS values are left out.
    """
    size = values.shape[-1] // BLOCKS
    return values[..., : size * BLOCKS].reshape(*values.shape[:-1], BLOCKS, size).mean(axis=-1)


def pooled_deviation(differences: Floats, deviation: Deviation) -> float:
    """Root mean square of a group's centred credits, shape (m, n); ``unbiased`` counts n - 1 rollouts."""
    m, n = differences.shape
    return float(np.sqrt((differences**2).sum() / (max(1, n - (deviation == "unbiased")) * m)))


def integration_error(credits: Floats, deviation: Deviation) -> float:
    """Standard error of a group's centred credits, pooled as their deviation is, from credits (m, n, BLOCKS).

    Exact in expectation for independent weights. For Sobol points it is an upper estimate, since the errors of blocks
    cancel in part.
    """
    centred = credits - credits.mean(axis=1, keepdims=True)
    errors = np.sqrt(centred.var(axis=-1, ddof=1) / credits.shape[-1])
    return pooled_deviation(errors, deviation)
