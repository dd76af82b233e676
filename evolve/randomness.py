"""Random generators keyed by what the draw is for, never by global state."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray


def _words(key: tuple[int | str, ...]) -> NDArray[np.uint32]:
    """Four words, shape (4,)."""
    return np.frombuffer(hashlib.blake2b(repr(key).encode(), digest_size=16).digest(), dtype="<u4")


def generator(*key: int | str) -> np.random.Generator:
    """The generator for ``key``, for instance ``(seed, iteration, "parent")``; the same key gives the same stream."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(_words(key))))


def derived_seed(*key: int | str) -> int:
    """A seed in [0, 2**31) for ``key``, for parts that take an integer (a model server's ``seed``)."""
    return int(_words(key)[0]) >> 1


def draw(values: NDArray[np.int64], rng: np.random.Generator) -> int:
    """One of ``values``, shape (n,) with n >= 1, uniformly: what ``rng.choice`` draws, without its overhead."""
    return int(values[rng.integers(len(values))])
