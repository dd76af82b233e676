"""Vector Policy Optimization (arXiv 2605.22817): the score of a set of answers under random scalarisations.

R(S) = mean over K weights w ~ Dirichlet(alpha), shared by the group, of max over the answers of w @ r;
A = (R - mean(R)) / (std(R) + epsilon) for every token of the rollout. Paper: K = 100, alpha = 1.

Departures from the released code:
1. The deviation is the unbiased one, as for every estimator; ``deviation: population`` restores the released one.
2. Weights are drawn by a generator keyed by (seed, step, prompt), not from a global stream: a resume changes nothing.
"""

from __future__ import annotations

from trainer.estimators.config import VpoConfig
from trainer.estimators.groups import Floats, Groups
from trainer.estimators.normalise import for_all_answers, z_scores


def set_scores(rewards: Floats, weights: Floats) -> Floats:
    """Mean over the weights of the best answer's ``w @ r``; rewards (P, G, m, D), weights (P, K, D), result (P, G).

    With the identity as rewards of d one-hot answers its expectation under uniform weights is H_d / d.
    """
    P, G, m, D = rewards.shape
    scalarised = weights @ rewards.reshape(P, G * m, D).transpose(0, 2, 1)
    return scalarised.reshape(P, -1, G, m).max(axis=3).mean(axis=1)


def vpo(groups: Groups, weights: Floats, config: VpoConfig) -> Floats:
    """Advantages (P, G, m): group z-scores of the set scores, equal for all answers."""
    scores = set_scores(groups.rewards, weights)
    return for_all_answers(z_scores(scores, groups.valid, config.epsilon, config.deviation), groups.m)
