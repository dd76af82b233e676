"""GRPO (DeepSeekMath, arXiv 2402.03300, section 4.1): group-normalised task scalar.

Departures: the deviation is the unbiased one (see :mod:`trainer.estimators.normalise`). With m > 1 answers the scalar
is that of the first answer; GRPO is meant for m = 1.
"""

from __future__ import annotations

import numpy as np

from trainer.estimators.normalise import z_scores


def grpo(rewards: np.ndarray, components: np.ndarray, weights: np.ndarray, epsilon: float) -> np.ndarray:
    """Advantages (P, G) from the mean over each prompt's components; ``weights`` is not used."""
    del weights
    scalars = (rewards[:, :, 0] * components[:, None]).sum(axis=-1) / components.sum(axis=-1)[:, None]
    return z_scores(scalars, epsilon)
