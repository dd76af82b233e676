"""Lexicase selection and its relatives: filters by one component after the other, in random order.

Pure functions from a matrix, shape (n, d) with n >= 1, to a row. Ties that outlast every component are broken
uniformly.

- ``lexicase``: Spector 2012; Helmuth, Spector and Matheson 2015. Here on rewards in whole steps, so that float noise
  decides nothing.
- ``epsilon_lexicase``: La Cava, Spector and Danai 2016 (arXiv 1905.13266), the semi-dynamic variant: epsilon from all
  rows, the best value from those that are left.
- ``downsampled_lexicase``: Hernandez, Lalejini, Dolson and Ofria 2019, on a fresh random share of the components for
  each choice (the tests are run anyway: the sample only adds variety).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from evolve.randomness import draw


def lexicase(levels: NDArray[np.uint8], rng: np.random.Generator) -> int:
    """Row of ``levels`` that survives filtering by the best value of each component."""
    return _filter(levels, rng.permutation(levels.shape[1]), rng)


def downsampled_lexicase(levels: NDArray[np.uint8], share: float, rng: np.random.Generator) -> int:
    """Lexicase on ``ceil(share * d)`` components drawn at random, 0 < share <= 1."""
    d = levels.shape[1]
    return _filter(levels, rng.permutation(d)[: math.ceil(share * d)], rng)


def epsilon_lexicase(rewards: NDArray[np.float64], epsilon: float | None, rng: np.random.Generator) -> int:
    """Row of ``rewards`` that stays within ``epsilon`` of the best of each component.

    epsilon: in reward units, >= 0; ``None``: the component's median absolute deviation over all rows.
    """
    rows = np.arange(len(rewards))
    for column in rng.permutation(rewards.shape[1]):
        values = rewards[rows, column]
        margin = _deviation(rewards[:, column]) if epsilon is None else epsilon
        rows = rows[values >= values.max() - margin - 1e-12]
        if len(rows) == 1:
            break
    return draw(rows, rng)


def _filter(levels: NDArray[np.uint8], columns: NDArray[np.int64], rng: np.random.Generator) -> int:
    rows = np.arange(len(levels))
    for column in columns:
        values = levels[rows, column]
        rows = rows[values == values.max()]
        if len(rows) == 1:
            break
    return draw(rows, rng)


def _deviation(values: NDArray[np.float64]) -> float:
    """Median absolute deviation."""
    return float(np.median(np.abs(values - np.median(values))))
