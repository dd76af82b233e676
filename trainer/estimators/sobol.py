"""Scrambled Sobol points, as the stratum of each coordinate.

The first K = 2**k points of a Sobol sequence have one point in each of the K strata of every coordinate, and fill boxes
of several coordinates evenly too. Nested uniform (Owen) scrambling keeps that and makes each point uniform, so averages
are unbiased, and the scatter between scramblings measures their error. Source: Owen 1995 ("Randomly permuted
(t,m,s)-nets"); scrambling by hashing: Laine & Karras 2011, Burley 2020 (JCGT 9(4), "Practical hash-based Owen
scrambling"); direction numbers: torch.quasirandom (Joe & Kuo 2010).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

Words = NDArray[np.uint32]

_BITS = 30
"""Resolution of torch's Sobol points."""
_WIDTH, _COUNT = 16, 2**12
"""Unscrambled points are kept for multiples of so many coordinates, and at least so many of them."""


def scrambled_strata(rng: np.random.Generator, dimensions: int, count: int) -> NDArray[np.uint32]:
    """The stratum in [0, count) of each coordinate of each point, shape (dimensions, count); count is a power of two.

    Every row holds each stratum once. A stratum s stands for coordinates in [s / count, (s + 1) / count).
    """
    bits = count.bit_length() - 1
    if count != 1 << bits or bits > _BITS:
        raise ValueError(f"the number of Sobol points must be a power of two up to 2**{_BITS}, not {count}")
    seeds = rng.integers(0, 2**32, (dimensions, 1), dtype=np.uint32)
    width = -(-dimensions // _WIDTH) * _WIDTH  # a table's first coordinates and points are those of smaller tables
    points = _reversed_points(width, max(count, _COUNT))[:dimensions, :count]
    scrambled = _reversed_bits(_hash(points, seeds))
    return scrambled >> np.uint32(32 - bits) if bits else np.zeros_like(scrambled)


@lru_cache(maxsize=32)
def _reversed_points(dimensions: int, count: int) -> Words:
    """The unscrambled points as 32-bit fractions with their bits in reverse, shape (dimensions, count)."""
    points = torch.quasirandom.SobolEngine(dimensions).draw(count, dtype=torch.float64).numpy().T
    words = (points * 2**_BITS).astype(np.uint32) << np.uint32(32 - _BITS)
    return _reversed_bits(np.ascontiguousarray(words))


def _hash(words: Words, seeds: Words) -> Words:
    """The Laine-Karras permutation: each bit changes by lower bits only, which are the higher ones of the fraction."""
    words = words + seeds
    product = np.empty_like(words)
    for factor in (0x6C50B47C, 0xB82F1E52, 0xC7AFE638, 0x8D22F6E6):
        np.multiply(words, np.uint32(factor), out=product)
        words ^= product
    return words


def _reversed_bits(words: Words) -> Words:
    for shift, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F)):
        kept, by = np.uint32(mask), np.uint32(shift)
        low = words & kept
        low <<= by
        words = words >> by
        words &= kept
        words |= low
    return words.byteswap()
