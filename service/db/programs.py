"""Reading programs: the best or the newest first, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sqlalchemy import Select, and_, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from service.db.models import ProgramRow, RunRow

Order = Literal["best", "newest"]


class BadCursor(ValueError):  # noqa: N818 (what it is)
    """A cursor that no page has given out."""


async def list_programs(
    session: AsyncSession, search_id: int, *, order: Order, after: str | None, limit: int, run_id: int | None = None
) -> Sequence[tuple[ProgramRow, RunRow]]:
    """Programs of a search (or one run of it), copies made by migration left out. Raises :class:`BadCursor`.

    best: by task scalar, the earliest of equals first. after: :func:`cursor` of the last program seen.
    """
    query = (
        select(ProgramRow, RunRow)
        .join(RunRow, RunRow.id == ProgramRow.run_id)
        .where(ProgramRow.search_id == search_id, ProgramRow.operator != "migrant")
        .limit(limit)
    )
    if run_id is not None:
        query = query.where(ProgramRow.run_id == run_id)
    query = _best_first(query, after) if order == "best" else _newest_first(query, after)
    return (await session.execute(query)).all()


def cursor(program: ProgramRow, order: Order) -> str:
    """Where a page ends that ends with ``program``."""
    return f"{program.scalar!r}_{program.id}" if order == "best" else str(program.id)


def _newest_first(query: Select[ProgramRow, RunRow], after: str | None) -> Select[ProgramRow, RunRow]:
    if after is not None:
        query = query.where(ProgramRow.id < _identity(after))
    return query.order_by(ProgramRow.id.desc())


def _best_first(query: Select[ProgramRow, RunRow], after: str | None) -> Select[ProgramRow, RunRow]:
    if after is not None:
        scalar_text, _, identity_text = after.partition("_")
        try:
            scalar, identity = float(scalar_text), _identity(identity_text)
        except ValueError:
            raise BadCursor(after) from None
        same = and_(ProgramRow.scalar == scalar, ProgramRow.id > identity)
        query = query.where(ProgramRow.scalar <= scalar, or_(ProgramRow.scalar < scalar, same))
    return query.order_by(ProgramRow.scalar.desc(), ProgramRow.id)


def _identity(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise BadCursor(text)
    return int(text)
