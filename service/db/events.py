"""Events of a search, written in the transaction of what they tell and numbered in the order of the commits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncSession

from service.db.models import EventRow, SearchRow
from service.schemas import IterationEvent, RunEvent, SearchEvent

Content = IterationEvent | RunEvent | SearchEvent
_TYPES = {IterationEvent: "iteration", RunEvent: "run", SearchEvent: "search"}


@dataclass(frozen=True, slots=True)
class Event:
    """One event. id: 1, 2, ... within its search. data: JSON text."""

    search_id: int
    id: int
    type: str
    data: str


async def append_event(session: AsyncSession, search_id: int, content: Content) -> Event:
    """Add an event. Locks the search's row until the commit, so call it last."""
    query = update(SearchRow).where(SearchRow.id == search_id).values(events=SearchRow.events + 1)
    number = await session.scalar(query.returning(SearchRow.events), execution_options={"synchronize_session": False})
    assert number is not None  # the caller has the search
    event = Event(search_id, number, _TYPES[type(content)], content.model_dump_json())
    data = json.loads(event.data)
    session.add(EventRow(search_id=search_id, id=number, type=event.type, data=data))
    await session.flush()
    return event


async def read_events(session: AsyncSession, search_id: int, *, after: int, limit: int = 500) -> Sequence[Event]:
    """Events with an id above ``after``, in order."""
    query = (
        select(EventRow).where(EventRow.search_id == search_id, EventRow.id > after).order_by(EventRow.id).limit(limit)
    )
    return [
        Event(row.search_id, row.id, row.type, json.dumps(row.data, separators=(",", ":"), ensure_ascii=False))
        for row in await session.scalars(query)
    ]
