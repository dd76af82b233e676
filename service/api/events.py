"""Server-sent events of a search."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Header, HTTPException, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent

from service.api.dependencies import MAX_ID, SearchDep, ServicesDep, SessionDep
from service.api.problems import RESPONSES
from service.schemas import RunStatus

router = APIRouter(prefix="/search", tags=["search"], responses=RESPONSES)


async def starting_point(
    search: SearchDep,
    session: SessionDep,
    last_event_id: Annotated[str | None, Header(description="Id of the last event seen; browsers send it")] = None,
    after: Annotated[int, Query(ge=0, le=MAX_ID, description="Start behind this event")] = 0,
) -> int:
    """The event to start behind. 204 where nothing will follow: it tells browsers not to connect again."""
    given = last_event_id or ""
    start = int(given) if given.isascii() and given.isdigit() and len(given) < 19 else after
    over = RunStatus(search.status).over and start >= search.events
    await session.close()  # a stream lasts; the connection is for others
    if over:
        raise HTTPException(204)
    return start


@router.get("/{search_id}/events", response_class=EventSourceResponse, operation_id="followSearch")
async def follow(
    search: SearchDep, services: ServicesDep, start: Annotated[int, Depends(starting_point)]
) -> AsyncIterator[ServerSentEvent]:
    """What happens to a search, from its beginning or from where you left off, until it is over.

    Events: `iteration` (IterationEvent), `run` (RunEvent), `search` (SearchEvent). Ids count 1, 2, ... per search.
    """
    async for event in services.hub.follow(search.id, after=start):
        if event is None:
            yield ServerSentEvent(comment="nothing new")
            continue
        yield ServerSentEvent(event=event.type, id=str(event.id), raw_data=event.data)
        if event.type == "search" and RunStatus(_status(event.data)).over:
            return


def _status(data: str) -> str:
    return str(json.loads(data)["status"])
