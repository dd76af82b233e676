"""Reading iterations: what the model answered, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import undefer

from service.db.models import IterationRow, RunRow


async def list_iterations(
    session: AsyncSession, search_id: int, *, after: tuple[int, int], limit: int, run_id: int | None, replies: bool
) -> Sequence[IterationRow]:
    """Finished iterations of a search (or one run of it), by run and number, behind ``after`` (run, number)."""
    key = tuple_(IterationRow.run_id, IterationRow.iteration)
    query = (
        select(IterationRow)
        .join(RunRow, RunRow.id == IterationRow.run_id)
        .where(RunRow.search_id == search_id, IterationRow.finished_at.is_not(None), key > after)
        .order_by(IterationRow.run_id, IterationRow.iteration)
        .limit(limit)
    )
    if run_id is not None:
        query = query.where(IterationRow.run_id == run_id)
    if replies:
        query = query.options(undefer(IterationRow.reply))
    return (await session.scalars(query)).all()
