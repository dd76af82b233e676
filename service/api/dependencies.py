"""What routes ask for: the process's services, a session, and the search that the path names."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Path, Request
from sqlalchemy.ext.asyncio import AsyncSession

from service.api.problems import ApiProblem
from service.db.models import SearchRow
from service.db.searches import get_search
from service.services import Services

MAX_ID = 2**63 - 1


def services(request: Request) -> Services:
    """The services of this process, which the application's lifespan opened."""
    found: Services = request.app.state.services
    return found


ServicesDep = Annotated[Services, Depends(services)]


async def session(found: ServicesDep) -> AsyncIterator[AsyncSession]:
    """A session; what was changed is committed by the route itself."""
    async with found.sessions() as opened:
        yield opened


SessionDep = Annotated[AsyncSession, Depends(session)]


async def search(opened: SessionDep, search_id: Annotated[str, Path(description="Id of the search")]) -> SearchRow:
    """The search of the path, or a 404 problem."""
    number = int(search_id) if search_id.isascii() and search_id.isdigit() else 0
    found = await get_search(opened, number) if 0 < number <= MAX_ID else None
    if found is None:
        raise ApiProblem(404, "No such search", f"There is no search {search_id!r}: GET /search lists them.")
    return found


SearchDep = Annotated[SearchRow, Depends(search)]
