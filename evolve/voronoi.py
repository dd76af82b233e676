"""Centroids of a centroidal Voronoi tessellation: niches for feature spaces with more dimensions than a grid bears.

CVT-MAP-Elites, Vassiliades, Chatzilygeroudis and Mouret 2018 (arXiv 1610.05729), algorithm 1: k-means over points
drawn from the space. Departures: the centroids of a space are fixed (the same for every run), and the space of reward
vectors is sampled as pass patterns, each with its own pass rate, since uniform points would all lie near its middle.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evolve.randomness import generator

Floats = NDArray[np.float64]

_POINTS_PER_CENTROID = 8
_ROUNDS = 12


@lru_cache(maxsize=16)
def centroids(count: int, dimensions: int, space: Literal["features", "rewards"]) -> Floats:
    """``count`` centroids in [0, 1]^dimensions, shape (count, dimensions). Treat as read-only: it is shared."""
    rng = generator("voronoi", count, dimensions, space)
    shape = (count * _POINTS_PER_CENTROID, dimensions)
    points = rng.random(shape)
    if space == "rewards":
        points = (points < rng.random((len(points), 1))).astype(float)
    middle = points[rng.choice(len(points), size=count, replace=False)]
    for _ in range(_ROUNDS):
        owner = _nearest(points, middle)
        sums = np.zeros_like(middle)
        np.add.at(sums, owner, points)
        sizes = np.bincount(owner, minlength=count)[:, None]
        middle = np.where(sizes > 0, sums / np.maximum(sizes, 1), middle)
    middle.setflags(write=False)
    return middle


def cell(point: Floats, middle: Floats) -> int:
    """The nearest centroid of a point, shape (dimensions,); the first of equals."""
    return int(np.argmin(((middle - point) ** 2).sum(axis=1)))


def _nearest(points: Floats, middle: Floats) -> NDArray[np.int64]:
    distances = (middle**2).sum(axis=1) - 2.0 * points @ middle.T  # less the points' own norms, which change no order
    return np.asarray(distances.argmin(axis=1))
