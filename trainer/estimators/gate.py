"""A gate towards the task scalar, for groups whose components rise and fall together.

Where every answer that is better in one component is better in all, the best of a set is the best by the task scalar
whatever the weights, and a set score says nothing about the other answers of the chain: with a mean correlation of .95
VPO was measured to lose to GRPO. There each answer is better judged by its own task scalar, as GRPO does. The gate
closes linearly between two mean correlations. It looks at the group itself, so the objective behind a half-open gate is
not fixed (as with every normalisation by the group).
"""

from __future__ import annotations

import numpy as np

from trainer.estimators.groups import Floats


def mean_correlation(answers: Floats) -> float:
    """:func:`component_correlation` of answers of shape (N, d).

    Zero rows (missing, repeated and worthless answers) are left out, since they are never the best under any weights.
    """
    return component_correlation(answers[answers.any(axis=1)])


def component_correlation(rows: Floats) -> float:
    """Mean Pearson correlation over all pairs of components, from reward vectors of shape (n, d); in [-1, 1].

    1 where they rise together (then a vector says no more than a scalar). Components that do not vary are left out; 0
    where fewer than two components or rows are left.
    """
    if len(rows) < 2:
        return 0.0
    differences = rows - rows.mean(axis=0)
    scales = np.sqrt((differences**2).sum(axis=0))
    varying = scales > 1e-9
    count = int(varying.sum())
    if count < 2:
        return 0.0
    unit = differences[:, varying] / scales[varying]
    return float(((unit.sum(axis=1) ** 2).sum() - count) / (count * (count - 1)))


def closedness(correlation: float, gate: tuple[float, float] | None) -> float:
    """How far the gate is closed, in [0, 1]: 0 up to the first correlation of ``gate``, 1 from the second on."""
    if gate is None:
        return 0.0
    opened, closed = gate
    return float(np.clip((correlation - opened) / (closed - opened), 0.0, 1.0))
