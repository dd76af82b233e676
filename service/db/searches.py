"""Searches: creating them with their runs, reading, cancelling, and keeping their status true."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import and_, case, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from service.db.events import Event, append_event
from service.db.models import RunRow, SearchRow
from service.db.states import run_state
from service.jobs import enqueue_runs
from service.schemas import OVER, RunEvent, RunStatus, SearchEvent
from service.spec import SearchSpec

_MAX_STATEMENT = 4_000


async def create_search(session: AsyncSession, spec: SearchSpec) -> SearchRow:
    """Add a search, its runs and one job per run, all in the session's transaction."""
    search = SearchRow(
        name=spec.name,
        status=RunStatus.QUEUED,
        iterations=spec.iterations,
        seeds=list(spec.seeds),
        tasks=[task.model_dump(mode="json") for task in spec.tasks],
        task_summaries=[_task_summary(task) for task in spec.tasks],
        arms=[arm.model_dump(mode="json", exclude_unset=True) for arm in spec.arms],
        arm_summaries=_arm_summaries(spec),
        config=spec.search.model_dump(mode="json", exclude_unset=True),
    )
    session.add(search)
    await session.flush()
    rows = [
        {"search_id": search.id, "arm": arm, "task": task, "seed": seed}
        for seed in spec.seeds
        for task in range(len(spec.tasks))
        for arm in range(len(spec.arms))
    ]
    inserted = await session.execute(insert(RunRow).returning(RunRow.id, sort_by_parameter_order=True), rows)
    await enqueue_runs(session, list(inserted.scalars()))
    await append_event(session, search.id, SearchEvent(search=str(search.id), status=RunStatus.QUEUED))
    await session.refresh(search, ["events", "started_at", "finished_at"])
    return search


async def get_search(session: AsyncSession, search_id: int) -> SearchRow | None:
    return await session.get(SearchRow, search_id)


async def list_searches(session: AsyncSession, *, before: int | None, limit: int) -> Sequence[SearchRow]:
    """Newest first; ``before``: only searches with a smaller id."""
    query = select(SearchRow).order_by(SearchRow.id.desc()).limit(limit)
    if before is not None:
        query = query.where(SearchRow.id < before)
    return (await session.scalars(query)).all()


async def list_runs(session: AsyncSession, search_id: int) -> Sequence[RunRow]:
    return (await session.scalars(select(RunRow).where(RunRow.search_id == search_id).order_by(RunRow.id))).all()


async def arm_totals(session: AsyncSession, search_ids: Iterable[int]) -> dict[int, dict[int, dict[str, Any]]]:
    """Per search and arm position, totals over its runs as :data:`service.db.states.ArmTotals` wants them."""
    over = RunRow.status.in_([str(status) for status in OVER])
    query = (
        select(
            RunRow.search_id,
            RunRow.arm,
            func.count().label("runs"),
            func.count().filter(over).label("finished"),
            func.count(RunRow.solved_at).label("solved"),
            case((func.count(RunRow.best) > 0, func.avg(func.coalesce(RunRow.best, 0.0)))).label("best"),
            func.sum(RunRow.evaluations).label("evaluations"),
            func.sum(RunRow.prompt_tokens + RunRow.completion_tokens).label("tokens"),
            func.sum(RunRow.cost).label("cost"),
            func.sum(case((over, SearchRow.iterations), else_=RunRow.iteration)).label("iterations"),
        )
        .join(SearchRow, SearchRow.id == RunRow.search_id)
        .where(RunRow.search_id.in_(list(search_ids)))
        .group_by(RunRow.search_id, RunRow.arm)
    )
    totals: dict[int, dict[int, dict[str, Any]]] = defaultdict(dict)
    for row in (await session.execute(query)).mappings():
        fields = dict(row)
        totals[fields.pop("search_id")][fields.pop("arm")] = fields
    return totals


async def cancel_search(session: AsyncSession, search: SearchRow) -> tuple[list[int], list[Event]]:
    """End a search's unfinished runs. What they have stays; from here on they can store nothing more.

    Returns the jobs to stop and the events to publish, after the commit.
    """
    active = and_(RunRow.search_id == search.id, RunRow.status.not_in([str(status) for status in OVER]))
    end = {"status": str(RunStatus.CANCELLED), "finished_at": func.now()}
    query = update(RunRow).where(active).values(end).returning(RunRow)
    runs = (await session.scalars(query)).all()
    contents = [RunEvent(search=str(search.id), run=run_state(run, search)) for run in runs]
    events = [await append_event(session, search.id, content) for content in contents]
    await session.execute(update(SearchRow).where(SearchRow.id == search.id).values(end))
    status = SearchEvent(search=str(search.id), status=RunStatus.CANCELLED)
    events.append(await append_event(session, search.id, status))
    await session.refresh(search)
    return [run.job_id for run in runs if run.job_id is not None], events


async def resume_search(session: AsyncSession, search: SearchRow) -> list[Event]:
    """Put a search's cancelled and failed runs back into the queue: each goes on from what it has stored.

    Returns the events to publish, after the commit.
    """
    ended = and_(RunRow.search_id == search.id, RunRow.status.in_([str(RunStatus.CANCELLED), str(RunStatus.FAILED)]))
    values = {"status": str(RunStatus.QUEUED), "message": None, "failures": 0, "worker": None, "finished_at": None}
    runs = (await session.scalars(update(RunRow).where(ended).values(values).returning(RunRow))).all()
    await enqueue_runs(session, [run.id for run in runs])
    contents = [RunEvent(search=str(search.id), run=run_state(run, search)) for run in runs]
    events = [await append_event(session, search.id, content) for content in contents]
    again = {"status": str(RunStatus.QUEUED), "finished_at": None}
    await session.execute(update(SearchRow).where(SearchRow.id == search.id).values(again))
    status = SearchEvent(search=str(search.id), status=RunStatus.QUEUED)
    events.append(await append_event(session, search.id, status))
    await session.refresh(search)
    return events


async def refresh_status(session: AsyncSession, search_id: int) -> Event | None:
    """Make the search's status follow from its runs'; the event of the change, if there is one."""
    # Not a full FOR UPDATE: that would wait for the key-share locks of inserts which wait for this row: a deadlock.
    lock = {"key_share": True}
    search = await session.get_one(SearchRow, search_id, with_for_update=lock, populate_existing=True)
    query = select(RunRow.status, func.count()).where(RunRow.search_id == search_id).group_by(RunRow.status)
    counts = {RunStatus(status): count for status, count in await session.execute(query)}
    status = _status_of(counts)
    if RunStatus(search.status) in (status, RunStatus.CANCELLED):
        return None
    search.status = status
    if search.started_at is None and status is not RunStatus.QUEUED:
        search.started_at = func.now()
    search.finished_at = func.now() if status.over else None
    await session.flush()
    return await append_event(session, search_id, SearchEvent(search=str(search_id), status=status))


def _status_of(counts: dict[RunStatus, int]) -> RunStatus:
    if all(status.over for status in counts):
        for status in (RunStatus.FAILED, RunStatus.CANCELLED):
            if status in counts:
                return status
        return RunStatus.DONE
    if RunStatus.RUNNING in counts:
        return RunStatus.RUNNING
    if RunStatus.WAITING in counts:
        return RunStatus.WAITING
    return RunStatus.QUEUED if set(counts) == {RunStatus.QUEUED} else RunStatus.RUNNING


def _task_summary(task: Any) -> dict[str, Any]:
    statement = task.statement if len(task.statement) <= _MAX_STATEMENT else task.statement[:_MAX_STATEMENT] + "…"
    return {"name": task.name, "format": task.format, "statement": statement, "components": list(task.components)}


def _arm_summaries(spec: SearchSpec) -> list[dict[str, Any]]:
    return [
        {
            "name": arm.name,
            "model": arm.shown_model,
            "endpoint": arm.shown_endpoint,
            "estimator": arm.manifest.estimator if arm.manifest else None,
            "evaluations_per_iteration": arm.evaluations_per_iteration(arm.config(spec.search, spec.tasks[0])),
        }
        for arm in spec.arms
    ]
