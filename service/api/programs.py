"""The programs of a search."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query

from service.api.dependencies import MAX_ID, SearchDep, SessionDep
from service.api.problems import RESPONSES, ApiProblem
from service.db.programs import BadCursor, Order, cursor, list_programs
from service.db.states import program_state
from service.schemas import ProgramPage

router = APIRouter(prefix="/search", tags=["search"], responses=RESPONSES)


@router.get("/{search_id}/programs", operation_id="listPrograms")
async def index(
    search: SearchDep,
    session: SessionDep,
    run: Annotated[int | None, Query(ge=1, le=MAX_ID, description="Only programs of this run")] = None,
    order: Annotated[Order, Query(description="best: by task scalar; newest: by age")] = "best",
    after: Annotated[str | None, Query(max_length=80, description="From the last page's `next`")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> ProgramPage:
    """Evaluated programs with their verdicts per test, page by page."""
    try:
        rows = await list_programs(session, search.id, order=order, after=after, limit=limit + 1, run_id=run)
    except BadCursor:
        detail = f"after: {after!r} is not a cursor of order {order!r}: follow a page's `next` instead."
        raise ApiProblem(422, "The request is not valid", detail) from None
    shown = rows[:limit]
    following = None
    if len(rows) > limit:
        parameters = {"order": order, "after": cursor(shown[-1][0], order), "limit": limit}
        following = f"/search/{search.id}/programs?" + urlencode(parameters | ({"run": run} if run else {}))
    return ProgramPage(programs=[program_state(program, of, search) for program, of in shown], next=following)
