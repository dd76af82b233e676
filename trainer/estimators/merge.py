"""Merging components that no answer of a group tells apart.

A symmetric Dirichlet over d components, summed over blocks of n_1, n_2, ... of them, is Dirichlet(n_1 alpha, n_2 alpha,
...). ``w @ r`` with equal entries within a block depends on those sums alone, so integrating over the blocks instead of
the components changes no expectation: it only takes fewer dimensions, in which as many points err less.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trainer.estimators.groups import Floats


def blocks_of(answers: Floats) -> NDArray[np.int64]:
    """The block of each component, shape (d,), from the answers of one group, shape (N, d).

    Blocks are numbered by first appearance, from 0; components are in one block if every answer gives them the same
    reward.
    """
    numbers: dict[bytes, int] = {}
    columns = np.ascontiguousarray(answers.T)
    return np.array([numbers.setdefault(column.tobytes(), len(numbers)) for column in columns])
