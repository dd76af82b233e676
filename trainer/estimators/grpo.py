"""GRPO (DeepSeekMath, arXiv 2402.03300, section 4.1): A = (s - mean(s)) / (std(s) + epsilon), s the task scalar.

Departures:
1. With m > 1 answers the scalar is that of the first one; GRPO is meant for m = 1.
"""

from __future__ import annotations

from trainer.estimators.config import GrpoConfig
from trainer.estimators.groups import Floats, Groups
from trainer.estimators.normalise import for_all_answers, z_scores


def grpo(groups: Groups, weights: Floats, config: GrpoConfig) -> Floats:
    """Advantages (P, G, m), equal for all answers; ``weights`` is not used."""
    del weights
    return for_all_answers(z_scores(groups.scalars[:, :, 0], groups.valid, config.epsilon, config.deviation), groups.m)
