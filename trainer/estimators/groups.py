"""What every estimator gets: the judged answers of P prompts' groups, and what must not count.

Shapes: P prompts, G rollouts each, m answers a rollout, D components (the largest d of the P prompts).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Groups:
    """The judged answers of P groups; build it with :func:`make_groups`, which checks it.

    rewards: shape (P, G, m, D), each in [0, 1]. An answer that is missing, garbage or a duplicate is a zero row, and
        so is one whose judge failed. Columns of components that a prompt does not have are zero.
    components: shape (P, D); true where the prompt has the component (d varies by prompt).
    scalars: shape (P, G, m), the task scalar of each answer, in [0, 1]; zero for zero rows.
    failed: shape (P, G, m); true where the infrastructure failed to judge the answer. What such a rollout is worth
        is unknown, so the whole rollout is masked: it has no advantage and no part in its group's statistics.
    prompts: shape (P,), each prompt's index within the whole step (all processes); random weights are keyed by it.
    """

    rewards: Floats
    components: Booleans
    scalars: Floats
    failed: Booleans
    prompts: NDArray[np.int64]

    @property
    def valid(self) -> Booleans:
        """Rollouts that were judged completely, shape (P, G)."""
        return ~self.failed.any(axis=2)

    @property
    def m(self) -> int:
        return self.rewards.shape[2]


def make_groups(
    rewards: ArrayLike,
    *,
    components: ArrayLike | None = None,
    scalars: ArrayLike | None = None,
    failed: ArrayLike | None = None,
    prompts: ArrayLike | None = None,
) -> Groups:
    """Checked groups. Defaults: every prompt has all components, the scalar is their mean, nothing failed.

    Values that do not count (absent components, failed answers) are set to zero, whatever was given for them. Raises
    ``ValueError`` naming the argument where a shape or a range is wrong or a prompt has no component.
    """
    table = np.array(rewards, dtype=np.float64)
    if table.ndim != 4 or not table.size:
        raise ValueError(f"rewards must have the shape (P, G, m, D), none of them zero, not {table.shape}")
    prompt_count, group, m, width = table.shape
    mask = _shaped("components", components, (prompt_count, width), np.bool_, True)
    lost = _shaped("failed", failed, (prompt_count, group, m), np.bool_, False)
    if not mask.any(axis=1).all():
        raise ValueError(f"components: prompt {int(mask.any(axis=1).argmin())} has none; give each at least one")
    table[lost] = 0.0
    table *= mask[:, None, None]
    means = table.sum(axis=-1) / mask.sum(axis=1)[:, None, None]
    scalar = means if scalars is None else _shaped("scalars", scalars, (prompt_count, group, m), np.float64, 0.0)
    scalar = np.where(lost, 0.0, scalar)
    indices = np.arange(prompt_count) if prompts is None else _shaped("prompts", prompts, (prompt_count,), np.int64, 0)
    for name, values in (("rewards", table), ("scalars", scalar)):
        if not ((values >= 0) & (values <= 1 + 1e-9)).all():
            raise ValueError(f"{name} must lie in [0, 1]; found {values.min()} to {values.max()}")
    return Groups(table, mask, scalar, lost, indices)


def _shaped(name: str, given: ArrayLike | None, shape: tuple[int, ...], dtype: type, default: float) -> np.ndarray:
    if given is None:
        return np.full(shape, default, dtype=dtype)
    table = np.array(given, dtype=dtype)
    if table.shape != shape:
        raise ValueError(f"{name} must have the shape {shape} to fit rewards, not {table.shape}")
    return table
