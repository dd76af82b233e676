"""Multi-RLVR, a baseline of the VPO paper (arXiv 2605.22817): chains rewarded by the sum of their answers' scalars.

A = (s - mean(s)) / (std(s) + epsilon) with s the sum over the m answers of the task scalar. Duplicates and missing
answers are zero rows, so repeating one good answer earns nothing, but nothing asks answers to differ in their rewards.

Departures: none known.
"""

from __future__ import annotations

from trainer.estimators.config import MultiRlvrConfig
from trainer.estimators.groups import Floats, Groups
from trainer.estimators.normalise import for_all_answers, z_scores


def multi_rlvr(groups: Groups, weights: Floats, config: MultiRlvrConfig) -> Floats:
    """Advantages (P, G, m), equal for all answers; ``weights`` is not used."""
    del weights
    sums = groups.scalars.sum(axis=2)
    return for_all_answers(z_scores(sums, groups.valid, config.epsilon, config.deviation), groups.m)
