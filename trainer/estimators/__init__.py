"""Estimators: pure functions from a group's reward vectors to advantages; one file each, one registry.

Common signature: ``rewards`` shape (P, G, m, D) in [0, 1], zero rows for missing or duplicate answers; ``components``
shape (P, D), true where a component exists (d varies by prompt); ``weights`` shape (P, K, D), points of each prompt's
simplex, zero outside of its components. Result: advantages, shape (P, G), for every token of a rollout.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trainer.estimators.grpo import grpo
from trainer.estimators.vpo import vpo

Estimator = Callable[[np.ndarray, np.ndarray, np.ndarray, float], np.ndarray]

ESTIMATORS: dict[str, Estimator] = {"grpo": grpo, "vpo": vpo}
