"""Random weights on the simplex, keyed by (seed, step, prompt): a resumed run draws what it would have drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evolve.randomness import generator
from trainer.estimators.groups import Booleans, Floats


def dirichlet_weights(
    components: Booleans, prompts: NDArray[np.int64], count: int, alpha: float, seed: int, step: int
) -> Floats:
    """``count`` draws from Dirichlet(alpha) over each prompt's components; shape (P, count, D), zero elsewhere.

    components: shape (P, D). prompts: each prompt's index in the step, shape (P,).
    """
    weights = np.zeros((len(components), count, components.shape[1]))
    for p, (row, prompt) in enumerate(zip(components, prompts, strict=True)):
        rng = generator(seed, step, int(prompt), "weights")
        weights[p][:, row] = rng.dirichlet(np.full(int(row.sum()), alpha), size=count)
    return weights
