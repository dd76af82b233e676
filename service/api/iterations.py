"""The iterations of a search: every reply accounted for."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query

from service.api.dependencies import MAX_ID, SearchDep, SessionDep
from service.api.problems import RESPONSES, ApiProblem
from service.db.iterations import list_iterations
from service.db.states import iteration_state
from service.schemas import IterationPage

router = APIRouter(prefix="/search", tags=["search"], responses=RESPONSES)

_CURSOR = re.compile(r"([0-9]{1,18})_([0-9]{1,9})")


@router.get("/{search_id}/iterations", operation_id="listIterations")
async def index(
    search: SearchDep,
    session: SessionDep,
    run: Annotated[int | None, Query(ge=1, le=MAX_ID, description="Only iterations of this run")] = None,
    replies: Annotated[bool, Query(description="Whether to send the model's texts, too")] = False,
    after: Annotated[str | None, Query(max_length=40, description="From the last page's `next`")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> IterationPage:
    """Finished iterations with the fate of every answer: judged, or rejected and why."""
    rows = await list_iterations(
        session, search.id, after=_position(after), limit=limit + 1, run_id=run, replies=replies
    )
    shown = rows[:limit]
    following = None
    if len(rows) > limit:
        parameters = {"after": f"{shown[-1].run_id}_{shown[-1].iteration}", "limit": limit}
        parameters |= ({"run": run} if run else {}) | ({"replies": "true"} if replies else {})
        following = f"/search/{search.id}/iterations?" + urlencode(parameters)
    return IterationPage(iterations=[iteration_state(row, replies=replies) for row in shown], next=following)


def _position(after: str | None) -> tuple[int, int]:
    if after is None:
        return 0, 0
    match = _CURSOR.fullmatch(after)
    if match is None:
        detail = f"after: {after!r} is no place between iterations: follow a page's `next` instead."
        raise ApiProblem(422, "The request is not valid", detail)
    return int(match[1]), int(match[2])
