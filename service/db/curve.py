"""The curves of a search, from its iterations' running values; no program is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Function, func, select
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from evolve.metrics import best_at_t, pass_at_t, solved_by_t
from service.db.models import IterationRow, ProgramRow, RunRow, SearchRow
from service.schemas import OVER, ArmCurve, Curve, RunStatus


@dataclass(frozen=True, slots=True)
class _Run:
    """best, evaluations, tokens: per iteration, from the seed program (0) on."""

    arm: int
    over: bool
    solved_at: int | None
    best: list[float]
    evaluations: list[int]
    tokens: list[int]


async def search_curve(session: AsyncSession, search: SearchRow) -> Curve:
    """pass@t, best@t, evaluations and tokens of every arm, up to the furthest iteration of any run."""
    runs = await _load(session, search.id)
    horizon = max((len(run.best) - 1 for run in runs), default=0)
    if RunStatus(search.status) is RunStatus.DONE:
        horizon = search.iterations
    arms = [
        _arm_curve(summary["name"], [run for run in runs if run.arm == i], horizon)
        for i, summary in enumerate(search.arm_summaries)
    ]
    return Curve(search=str(search.id), status=RunStatus(search.status), iterations=search.iterations, arms=arms)


def _arm_curve(name: str, runs: Sequence[_Run], horizon: int) -> ArmCurve:
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
    return [int(value) for value in np.cumsum(total)]


async def _load(session: AsyncSession, search_id: int) -> list[_Run]:
    def in_order(column: InstrumentedAttribute[Any]) -> Function[Any]:
        return func.array_agg(aggregate_order_by(column, IterationRow.iteration))

    finished = (
        select(
            IterationRow.run_id,
            in_order(IterationRow.best_scalar).label("best"),
            in_order(IterationRow.evaluations).label("evaluations"),
            in_order(IterationRow.tokens).label("tokens"),
        )
        .join(RunRow, RunRow.id == IterationRow.run_id)
        .where(RunRow.search_id == search_id, IterationRow.finished_at.is_not(None))
        .group_by(IterationRow.run_id)
        .subquery()
    )
    query = (
        select(
            RunRow.arm,
            RunRow.status,
            RunRow.solved_at,
            ProgramRow.scalar,
            finished.c.best,
            finished.c.evaluations,
            finished.c.tokens,
        )
        .outerjoin(finished, finished.c.run_id == RunRow.id)
        .outerjoin(
            ProgramRow,
            (ProgramRow.run_id == RunRow.id) & (ProgramRow.number == 0) & (ProgramRow.iteration == 0),
        )
        .where(RunRow.search_id == search_id)
        .order_by(RunRow.id)
    )
    return [
        _Run(
            arm=row.arm,
            over=RunStatus(row.status) in OVER,
            solved_at=row.solved_at,
            best=[row.scalar or 0.0, *(row.best or [])],
            evaluations=[0, *(row.evaluations or [])],
            tokens=[0, *(row.tokens or [])],
        )
        for row in await session.execute(query)
    ]
