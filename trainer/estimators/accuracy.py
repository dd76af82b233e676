"""How far advantages are from those of (practically) infinitely many weights."""

from __future__ import annotations

import numpy as np

from trainer.estimators.config import VpoConfig, VpoPlusConfig
from trainer.estimators.groups import Floats, Groups
from trainer.estimators.vpo import vpo
from trainer.estimators.vpo_plus import vpo_plus, vpo_plus_weights
from trainer.estimators.weights import dirichlet_weights

REFERENCE_WEIGHTS = 2**16


def advantage_error(groups: Groups, config: VpoConfig | VpoPlusConfig, *, seed: int = 0, draws: int = 4) -> float:
    """Mean absolute difference from the limit of many weights, over judged rollouts, answers and ``draws`` of weights.

    The limit is taken with 2**16 Sobol weights (``vpo_plus`` gives it for ``vpo`` too, with its other parts off); a
    noise floor is part of ``config``'s advantages but not of the limit. 0 where no rollout was judged.
    """
    limit = vpo_plus_config(config).model_copy(update={"weights": REFERENCE_WEIGHTS, "sobol": True, "noise": 0.0})
    expected = vpo_plus(groups, vpo_plus_weights(groups, limit, seed, draws), limit)
    errors = [np.abs(_advantages(groups, config, seed, step) - expected)[groups.valid] for step in range(draws)]
    return float(np.mean(errors)) if groups.valid.any() else 0.0


def vpo_plus_config(config: VpoConfig | VpoPlusConfig) -> VpoPlusConfig:
    """The settings of ``vpo_plus`` that give the same advantages from the same draws."""
    if isinstance(config, VpoPlusConfig):
        return config
    return VpoPlusConfig(
        epsilon=config.epsilon,
        deviation=config.deviation,
        weights=config.weights,
        sobol=False,
        noise=0.0,
        alpha=config.alpha,
        merge=False,
        gate=None,
        baseline=0.0,
    )


def _advantages(groups: Groups, config: VpoConfig | VpoPlusConfig, seed: int, step: int) -> Floats:
    if isinstance(config, VpoPlusConfig):
        return vpo_plus(groups, vpo_plus_weights(groups, config, seed, step), config)
    weights = dirichlet_weights(groups.components, groups.prompts, config.weights, config.alpha, seed, step)
    return vpo(groups, weights, config)
