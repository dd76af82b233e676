"""Creating, listing, reading and cancelling searches."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Response
from sqlalchemy.ext.asyncio import AsyncSession

from service.api.dependencies import SearchDep, ServicesDep, SessionDep
from service.api.problems import RESPONSES, ApiProblem
from service.db.curve import search_curve
from service.db.models import SearchRow
from service.db.searches import arm_totals, cancel_search, create_search, list_runs, list_searches, resume_search
from service.db.states import search_detail, search_summary
from service.schemas import Curve, RunStatus, SearchDetail, SearchPage
from service.services import Services
from service.spec import SearchSpec

router = APIRouter(prefix="/search", tags=["search"], responses=RESPONSES)


@router.post("", status_code=202, operation_id="createSearch")
async def create(spec: SearchSpec, services: ServicesDep, session: SessionDep, response: Response) -> SearchDetail:
    """Start a search: tasks x arms x seeds, one run each. It is queued when this answers."""
    search = await create_search(session, spec)
    await session.commit()
    response.headers["Location"] = f"/search/{search.id}"
    return await _detail(session, search)


@router.get("", operation_id="listSearches")
async def index(
    session: SessionDep,
    before: Annotated[int | None, Query(ge=1, description="Only searches older than this one")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> SearchPage:
    """Searches, newest first."""
    rows = await list_searches(session, before=before, limit=limit + 1)
    shown = rows[:limit]
    totals = await arm_totals(session, [row.id for row in shown])
    following = f"/search?before={shown[-1].id}&limit={limit}" if len(rows) > limit else None
    return SearchPage(searches=[search_summary(row, totals[row.id]) for row in shown], next=following)


@router.get("/{search_id}", operation_id="getSearch")
async def show(search: SearchDep, session: SessionDep) -> SearchDetail:
    """One search: its arms, tasks and runs."""
    return await _detail(session, search)


@router.post("/{search_id}/cancel", status_code=202, operation_id="cancelSearch")
async def cancel(search: SearchDep, services: ServicesDep, session: SessionDep) -> SearchDetail:
    """Stop a search. What it has found stays; cancelling it again changes nothing."""
    status = RunStatus(search.status)
    if status in (RunStatus.DONE, RunStatus.FAILED):
        detail = f"Search {search.id} is {status} already; only one that is not over can be cancelled."
        raise ApiProblem(409, "The search is over", detail)
    if status is not RunStatus.CANCELLED:
        job_ids, events = await cancel_search(session, search)
        await session.commit()
        await services.hub.publish(events)
        await _stop_jobs(services, job_ids)
    return await _detail(session, search)


@router.post("/{search_id}/resume", status_code=202, operation_id="resumeSearch")
async def resume(search: SearchDep, services: ServicesDep, session: SessionDep) -> SearchDetail:
    """Let the runs of a cancelled or failed search go on from what they have; nothing that is stored is asked again.

    Resuming one that is under way changes nothing.
    """
    status = RunStatus(search.status)
    if status is RunStatus.DONE:
        raise ApiProblem(409, "The search is done", f"Search {search.id} is done: there is nothing to go on with.")
    if status.over:
        events = await resume_search(session, search)
        await session.commit()
        await services.hub.publish(events)
    return await _detail(session, search)


@router.get("/{search_id}/curve", operation_id="getCurve")
async def curve(search: SearchDep, session: SessionDep) -> Curve:
    """pass@t and best@t per arm, with what was spent by then."""
    return await search_curve(session, search)


async def _detail(session: AsyncSession, search: SearchRow) -> SearchDetail:
    totals = await arm_totals(session, [search.id])
    return search_detail(search, totals[search.id], await list_runs(session, search.id))


async def _stop_jobs(services: Services, job_ids: list[int]) -> None:
    """Take queued jobs out of the queue, and have running ones stopped."""
    gate = asyncio.Semaphore(4)

    async def stop(job_id: int) -> None:
        async with gate:
            await services.jobs.job_manager.cancel_job_by_id_async(job_id, abort=True)

    await asyncio.gather(*(stop(job_id) for job_id in job_ids))
