"""What a run went through, from its stored records: the raw material of curves and figures."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from evolve.adaptation import well_formed
from evolve.archive import make_archive
from evolve.config import ArchiveConfig, ModelConfig
from evolve.ledger import Spent
from evolve.metrics import (
    AXES,
    Curve,
    Floats,
    Interval,
    coverage,
    curve_over,
    mean_interval,
    qd_score,
    reward_diversity,
)
from evolve.program import IterationRecord, Program


@dataclass(frozen=True, kw_only=True, slots=True)
class RunTrace:
    """One run, point by point: t = 0 is the seed program.

    best: best task scalar so far, shape (T + 1,), in [0, 1]. spent: by axis (:data:`evolve.metrics.AXES`), what had
    been spent by then, shape (T + 1,), non-decreasing. solved_at: the iteration that solved the task, ``None``: never.
    rewards: of all judged programs, shape (n, d). cells, scalars: their cells in feature space and task scalars.
    edit_success: per iteration with a reply, the share of answers that could be read as programs.
    """

    best: Floats
    spent: dict[str, Floats]
    solved_at: int | None
    rewards: Floats
    cells: tuple[Hashable, ...] = ()
    scalars: Floats = field(default_factory=lambda: np.zeros(0))
    edit_success: tuple[float, ...] = ()

    @property
    def figures(self) -> dict[str, float]:
        """best, solved (0 or 1), coverage, diversity, qd_score and edit_success of the whole run."""
        return {
            "best": float(self.best[-1]),
            "solved": float(self.solved_at is not None),
            "coverage": coverage(self.rewards),
            "diversity": reward_diversity(self.rewards),
            "qd_score": qd_score(self.cells, self.scalars),
            "edit_success": float(np.mean(self.edit_success)) if self.edit_success else 0.0,
        }


def trace(
    seed: Program,
    records: Sequence[IterationRecord],
    *,
    models: tuple[ModelConfig, ...] = (),
    archive: ArchiveConfig | None = None,
) -> RunTrace:
    """A run's trace from its seed program and its records, iterations 1, 2, ... in order.

    models: for the axis ``cost``. archive: whose cells the QD-score counts (default: the default grid).
    """
    cells = make_archive(archive or ArchiveConfig())
    points = [Spent()]
    for record in records:
        points.append(points[-1].plus(record, models))
    programs = [seed, *(program for record in records for program in record.programs[: record.evaluations])]
    solved = [0] if seed.evaluation.solved else [record.iteration for record in records if record.solved]
    return RunTrace(
        best=np.array([seed.evaluation.scalar, *(record.best_scalar for record in records)]),
        spent={axis: np.array([float(getattr(point, axis)) for point in points]) for axis in AXES},
        solved_at=solved[0] if solved else None,
        rewards=_matrix(programs),
        cells=tuple(cells.cell(program) for program in programs),
        scalars=np.array([program.evaluation.scalar for program in programs]),
        edit_success=tuple(well_formed(record) for record in records if record.reply is not None),
    )


def best_curve(traces: Sequence[RunTrace], axis: str, *, points: int = 101, level: float = 0.95) -> Curve:
    """best@x of several runs, with bootstrap intervals over them. axis: one of :data:`evolve.metrics.AXES`."""
    return curve_over([run.best for run in traces], [run.spent[axis] for run in traces], points=points, level=level)


def pass_curve(traces: Sequence[RunTrace], axis: str, *, points: int = 101, level: float = 0.95) -> Curve:
    """pass@x of several runs, with bootstrap intervals over them."""
    solved = []
    for run in traces:
        steps = np.arange(len(run.best))
        solved.append((steps >= run.solved_at).astype(float) if run.solved_at is not None else np.zeros(len(steps)))
    return curve_over(solved, [run.spent[axis] for run in traces], points=points, level=level)


def run_figures(traces: Sequence[RunTrace], *, level: float = 0.95) -> Mapping[str, Interval]:
    """The figures of :class:`RunTrace`, each as a mean over runs with its bootstrap interval."""
    rows = [run.figures for run in traces]
    if not rows:
        raise ValueError("figures need at least one run")
    return {name: mean_interval([row[name] for row in rows], level=level) for name in rows[0]}


def _matrix(programs: Sequence[Program]) -> Floats:
    """Reward vectors of programs, shape (n, d), by the components of all of them; what one lacks is 0."""
    columns: dict[str, int] = {}
    for program in programs:
        for name in program.evaluation.components:
            columns.setdefault(name, len(columns))
    table = np.zeros((len(programs), len(columns)))
    for row, program in enumerate(programs):
        table[row, [columns[name] for name in program.evaluation.components]] = program.evaluation.reward
    return table
