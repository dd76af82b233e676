"""VPO as its authors released it (DESIGN.md section 6): one global stream of weights, population deviation."""

from __future__ import annotations

import numpy as np


class PublishedVpo:
    """Stateful, as published: the weights depend on everything that was drawn before."""

    def __init__(self, seed: int, *, weights: int = 100, alpha: float = 1.0, epsilon: float = 1e-6) -> None:
        self.stream = np.random.RandomState(seed)
        self.weights, self.alpha, self.epsilon = weights, alpha, epsilon

    def scores(self, group: np.ndarray) -> np.ndarray:
        """Set scores (G,) of one group's rewards (G, m, d)."""
        weights = self.stream.dirichlet(np.full(group.shape[-1], self.alpha), size=self.weights)
        return (group @ weights.T).max(axis=1).mean(axis=1)

    def advantages(self, group: np.ndarray) -> np.ndarray:
        """Advantages (G,) of every token of each rollout."""
        scores = self.scores(group)
        return (scores - scores.mean()) / (scores.std() + self.epsilon)
