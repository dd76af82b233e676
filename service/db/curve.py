"""The curves of a search, from its iterations' running values; no program is read."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Function, func, select
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from service.curves import RunHistory, arm_curve
from service.db.models import IterationRow, ProgramRow, RunRow, SearchRow
from service.schemas import OVER, Curve, RunStatus


async def search_curve(session: AsyncSession, search: SearchRow) -> Curve:
    """pass@t, best@t, evaluations and tokens of every arm, up to the furthest iteration of any run."""
    runs = await _load(session, search.id)
    horizon = max((len(run.best) - 1 for _, run in runs), default=0)
    if RunStatus(search.status) is RunStatus.DONE:
        horizon = search.iterations
    arms = [
        arm_curve(summary["name"], [run for arm, run in runs if arm == i], horizon)
        for i, summary in enumerate(search.arm_summaries)
    ]
    return Curve(search=str(search.id), status=RunStatus(search.status), iterations=search.iterations, arms=arms)


async def _load(session: AsyncSession, search_id: int) -> list[tuple[int, RunHistory]]:
    """Arm and history of every run."""

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
        (
            row.arm,
            RunHistory(
                over=RunStatus(row.status) in OVER,
                solved_at=row.solved_at,
                best=[row.scalar or 0.0, *(row.best or [])],
                evaluations=[0, *(row.evaluations or [])],
                tokens=[0, *(row.tokens or [])],
            ),
        )
        for row in await session.execute(query)
    ]
