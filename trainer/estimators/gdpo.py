"""GDPO (Group reward-Decoupled Normalization Policy Optimization, arXiv 2601.05242).

Each component is normalised within its group, the z-scores are summed, and the sums are whitened over the batch:
B = sum over components of (r_j - mean(r_j)) / (std(r_j) + epsilon); A = (B - mean_batch(B)) / (std_batch(B) + epsilon).

Departures:
1. The number of components may vary by prompt: the sum runs over the prompt's own.
2. With m > 1 answers the rewards are those of the first one; GDPO is meant for m = 1.
"""

from __future__ import annotations

import numpy as np

from trainer.estimators.config import GdpoConfig
from trainer.estimators.groups import Floats, Groups
from trainer.estimators.normalise import for_all_answers, z_scores


def gdpo(groups: Groups, weights: Floats, config: GdpoConfig) -> Floats:
    """Advantages (P, G, m), equal for all answers; ``weights`` is not used.

    The batch is what ``groups`` holds: with several processes, gather the rewards first.
    """
    del weights
    rewards = groups.rewards[:, :, 0]
    P, G, D = rewards.shape
    columns = rewards.transpose(0, 2, 1).reshape(P * D, G)
    valid = np.repeat(groups.valid, D, axis=0)
    scores = z_scores(columns, valid, config.epsilon, config.deviation).reshape(P, D, G).sum(axis=1)
    whitened = z_scores(scores.reshape(1, -1), groups.valid.reshape(1, -1), config.epsilon, config.deviation)
    return for_all_answers(whitened.reshape(P, G), groups.m)
