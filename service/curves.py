"""The curves of one arm, from what its runs went through; the same for a database's rows and a search in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from evolve.metrics import best_at_t, pass_at_t, solved_by_t
from service.schemas import ArmCurve


@dataclass(slots=True)
class RunHistory:
    """What one run went through.

    best, evaluations, tokens: per iteration, from the seed program (0) on; best so far in [0, 1], the others spent in
    that iteration. over: nothing more will follow. solved_at: the iteration that solved it.
    """

    over: bool = False
    solved_at: int | None = None
    best: list[float] = field(default_factory=list)
    evaluations: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)


def arm_curve(name: str, runs: Sequence[RunHistory], horizon: int) -> ArmCurve:
    """pass@t, best@t and what was spent, for t = 0..horizon."""
    first_solved = [run.solved_at for run in runs]
    return ArmCurve(
        arm=name,
        runs=len(runs),
        complete_to=min((horizon if run.over else len(run.best) - 1 for run in runs), default=horizon),
        t=list(range(horizon + 1)),
        solved=solved_by_t(first_solved, horizon).tolist(),
        pass_at_t=pass_at_t(first_solved, horizon).tolist(),
        best_at_t=best_at_t([run.best for run in runs], horizon).tolist(),
        evaluations=_spent([run.evaluations for run in runs], horizon),
        tokens=_spent([run.tokens for run in runs], horizon),
    )


def _spent(per_run: Sequence[Sequence[int]], horizon: int) -> list[int]:
    """What all runs together have spent by each t."""
    total = np.zeros(horizon + 1, dtype=np.int64)
    for values in per_run:
        total[: len(values)] += np.asarray(values[: horizon + 1], dtype=np.int64)
    spent: list[int] = np.cumsum(total).tolist()
    return spent
