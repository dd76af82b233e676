"""Bandits: which of a few named arms to use next, from how often each brought something and what it cost.

- ``fixed``: drawn by weight; learns nothing.
- ``ucb``: UCB1, Auer, Cesa-Bianchi and Fischer 2002: untried arms first, then the largest mean + c sqrt(2 ln N / n).
- ``thompson``: Thompson sampling for Bernoulli gains with Beta(1, 1) priors, Chapelle and Li 2011.

Departures: gains may be fractions; observations are discounted, since what helps early in a search may not help late
(discounted UCB, Garivier and Moulines 2008); an arm's value is divided by its relative mean cost to the power
``cost_weight``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from evolve.config import BanditConfig

_MOST_RELATIVE = 1_000.0  # costs further apart count as this far


class Bandit:
    """weights: arms with a positive weight take part; only ``fixed`` looks at how large it is."""

    def __init__(self, weights: Mapping[str, float], config: BanditConfig) -> None:
        self.weights = {name: weight for name, weight in weights.items() if weight > 0}
        self._config = config
        self._tries = dict.fromkeys(self.weights, 0.0)
        self._gains = dict.fromkeys(self.weights, 0.0)
        self._costs = dict.fromkeys(self.weights, 0.0)

    def observe(self, name: str, gain: float, cost: float) -> None:
        """Note one use of an arm. gain in [0, 1]; cost >= 0 in any one unit. Unknown names do not count."""
        if name not in self.weights:
            return
        for table in (self._tries, self._gains, self._costs):
            for arm in table:
                table[arm] *= self._config.discount
        self._tries[name] += 1.0
        self._gains[name] += gain
        self._costs[name] += cost

    def choose(self, rng: np.random.Generator, *, among: tuple[str, ...] | None = None) -> str:
        """The arm to use next, one of ``among`` if that is given. Raises ``ValueError`` where none takes part."""
        names = [name for name in self.weights if among is None or name in among]
        if not names:
            raise ValueError(f"none of {among} takes part: the arms are {', '.join(self.weights) or 'none'}")
        if len(names) == 1:
            return names[0]
        if self._config.policy == "fixed":
            shares = np.array([self.weights[name] for name in names])
            return names[int(rng.choice(len(names), p=shares / shares.sum()))]
        values = self._upper_bounds(names) if self._config.policy == "ucb" else self._draws(names, rng)
        worth = [value / self._relative_cost(name) for name, value in zip(names, values, strict=True)]
        return names[worth.index(max(worth))]

    def _upper_bounds(self, names: list[str]) -> list[float]:
        total = math.log(max(sum(self._tries.values()), 1.0))
        return [
            self._gains[name] / self._tries[name]
            + self._config.exploration * math.sqrt(2.0 * total / self._tries[name])
            if self._tries[name] > 0
            else math.inf
            for name in names
        ]

    def _draws(self, names: list[str], rng: np.random.Generator) -> list[float]:
        lost = {name: max(0.0, self._tries[name] - self._gains[name]) for name in names}
        return [float(rng.beta(1.0 + self._gains[name], 1.0 + lost[name])) for name in names]

    def _relative_cost(self, name: str) -> float:
        total, tries = sum(self._costs.values()), sum(self._tries.values())
        if not self._config.cost_weight or not total or not self._tries[name] or not self._costs[name]:
            return 1.0
        relative = (self._costs[name] / self._tries[name]) / (total / tries)
        return float(min(max(relative, 1 / _MOST_RELATIVE), _MOST_RELATIVE) ** self._config.cost_weight)
