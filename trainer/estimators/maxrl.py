"""MaxRL (Maximum Likelihood Reinforcement Learning, arXiv 2602.02710): A = (s - mean(s)) / (mean(s) + epsilon).

For pass/fail scalars its expected gradient is that of a truncated log-likelihood of success: hard prompts weigh more.

Departures:
1. s is the task scalar in [0, 1], not only pass or fail.
2. With m > 1 answers the scalar is that of the first one; MaxRL is meant for m = 1.
"""

from __future__ import annotations

from trainer.estimators.config import MaxrlConfig
from trainer.estimators.groups import Floats, Groups
from trainer.estimators.normalise import centred, for_all_answers, means


def maxrl(groups: Groups, weights: Floats, config: MaxrlConfig) -> Floats:
    """Advantages (P, G, m), equal for all answers, at least -1; ``weights`` is not used."""
    del weights
    valid, scores = groups.valid, groups.scalars[:, :, 0]
    return for_all_answers(centred(scores, valid) / (means(scores, valid) + config.epsilon), groups.m)
