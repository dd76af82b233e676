"""Vector Policy Optimization (arXiv 2605.22817): the score of a set of answers under random scalarisations.

Departures from the released code:
1. The deviation is the unbiased one (see :mod:`trainer.estimators.normalise`).
2. Weights are drawn by a generator keyed by (seed, step, prompt), not from a global stream: a resume changes nothing.
"""

from __future__ import annotations

import numpy as np

from trainer.estimators.normalise import z_scores


def set_scores(rewards: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mean over the weights of the best answer's ``w @ r``; rewards (P, G, m, D), weights (P, K, D), result (P, G).

    With the identity as rewards of d one-hot answers its expectation under uniform weights is H_d / d.
    """
    scalarised = np.einsum("pgmd,pkd->pgmk", rewards, weights)
    return scalarised.max(axis=2).mean(axis=-1)


def vpo(rewards: np.ndarray, components: np.ndarray, weights: np.ndarray, epsilon: float) -> np.ndarray:
    """Advantages (P, G): group z-scores of the set scores."""
    del components
    return z_scores(set_scores(rewards, weights), epsilon)


def dirichlet_weights(rng: np.random.Generator, count: int, d: int, width: int, alpha: float) -> np.ndarray:
    """``count`` draws from Dirichlet(alpha) over d components, zero-padded to shape (count, width)."""
    weights = np.zeros((count, width))
    weights[:, :d] = rng.dirichlet(np.full(d, alpha), size=count)
    return weights
