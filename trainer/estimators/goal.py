"""Two baselines of the VPO paper (arXiv 2605.22817) that train under one random scalarisation per prompt.

``random_weight`` hides w from the model; ``goal_conditioned`` states it in the prompt. Otherwise they are the same:
s = w @ r of the answer, A = (s - mean(s)) / (std(s) + epsilon). w ~ Dirichlet(alpha) is drawn anew for each prompt of
each step and shared by the prompt's group (its rollouts answer the same prompt).

The prompt of ``goal_conditioned`` is written before anything is sampled, so w depends on (seed, step, prompt) and the
prompt's components alone: the loop asks :func:`goals` for it, and gets the same w again as ``weights`` afterwards.

Departures:
1. With m > 1 answers the scalar is that of the best one under w (a set score with a single weight).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trainer.estimators.config import GoalConditionedConfig, RandomWeightConfig
from trainer.estimators.groups import Booleans, Floats, Groups
from trainer.estimators.normalise import for_all_answers, z_scores
from trainer.estimators.vpo import set_scores
from trainer.estimators.weights import dirichlet_weights


def goals(
    components: Booleans,
    prompts: NDArray[np.int64],
    config: GoalConditionedConfig | RandomWeightConfig,
    seed: int,
    step: int,
) -> Floats:
    """One weight vector per prompt, shape (P, D), from components (P, D) and the prompts' indices in the step (P,)."""
    return dirichlet_weights(components, prompts, 1, config.alpha, seed, step)[:, 0]


def single_weight(groups: Groups, weights: Floats, config: GoalConditionedConfig | RandomWeightConfig) -> Floats:
    """Advantages (P, G, m), equal for all answers; weights (P, 1, D)."""
    scores = set_scores(groups.rewards, weights)
    return for_all_answers(z_scores(scores, groups.valid, config.epsilon, config.deviation), groups.m)
