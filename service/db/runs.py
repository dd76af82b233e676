"""The life of a run: claimed by a worker, waiting, done, failed. Every change is one transaction with its events.

A claim gives a lease, a number that only grows. All later writes name it: a worker that lost its run to another one
(because it seemed dead) can store nothing any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from service.db.engine import Sessions
from service.db.events import Event, append_event
from service.db.leases import is_alive
from service.db.models import LEASES, RunRow, SearchRow
from service.db.searches import refresh_status
from service.db.states import run_state
from service.schemas import OVER, RunEvent, RunStatus


class LeaseLost(RuntimeError):  # noqa: N818 (a state)
    """The run was cancelled, or another worker has it; nothing more can be stored under this lease."""


class RunBusy(RuntimeError):  # noqa: N818 (a state)
    """Another living worker has the run."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A run that this worker may work on. search: without its tasks and arms (deferred columns), for names only."""

    run_id: int
    lease: int
    search: SearchRow
    seed: int
    failures: int
    task: dict[str, Any]
    arm: dict[str, Any]


async def claim_run(sessions: Sessions, run_id: int, worker: int) -> tuple[Claim | None, list[Event]]:
    """Take a run over for ``worker``; ``None`` where it is over already. Raises :class:`RunBusy`."""
    async with sessions.begin() as session:
        run = await session.get(RunRow, run_id, with_for_update=True)
        if run is None or RunStatus(run.status) in OVER:
            return None, []
        if run.worker not in (None, worker) and await is_alive(session, run.worker):
            raise RunBusy(f"run {run_id} is being worked on by worker {run.worker}")
        run.worker, run.lease = worker, await session.scalar(LEASES)
        run.started_at = run.started_at or func.now()
        changed = RunStatus(run.status) is RunStatus.QUEUED
        if changed:
            run.status = str(RunStatus.RUNNING)
        await session.flush()
        await session.refresh(run)
        search = await session.get_one(SearchRow, run.search_id)
        documents = select(SearchRow.tasks[run.task], SearchRow.arms[run.arm]).where(SearchRow.id == search.id)
        task, arm = (await session.execute(documents)).one()
        assert run.lease is not None  # set above
        claim = Claim(run.id, run.lease, search, run.seed, run.failures, task, arm)
        events = await changed_events(session, run, search) if changed else []
        return claim, events


async def set_status(
    sessions: Sessions,
    claim: Claim,
    status: RunStatus,
    *,
    message: str | None = None,
    ended: str | None = None,
    failures: int = 0,
) -> list[Event]:
    """Change the status of a claimed run to one in which no worker has it. Raises :class:`LeaseLost`.

    message: why it waits or failed. ended: why it is done.
    """
    values: dict[str, Any] = {"status": str(status), "message": message, "failures": failures, "worker": None}
    values["ended"] = ended
    if status.over:
        values["finished_at"] = func.now()
    async with sessions.begin() as session:
        run = await update_claimed(session, claim, values)
        return await changed_events(session, run, claim.search)


async def release_run(sessions: Sessions, claim: Claim) -> None:
    """Give a run up as it is, for any worker to take. Raises :class:`LeaseLost`."""
    async with sessions.begin() as session:
        await update_claimed(session, claim, {"worker": None})


async def update_claimed(session: AsyncSession, claim: Claim, values: dict[str, Any]) -> RunRow:
    """Write to a run's row under its lease. Raises :class:`LeaseLost`."""
    query = (
        update(RunRow)
        .where(
            RunRow.id == claim.run_id,
            RunRow.lease == claim.lease,
            RunRow.status.in_([str(RunStatus.RUNNING), str(RunStatus.WAITING)]),
        )
        .values(values)
        .returning(RunRow)
    )
    run = await session.scalar(query, execution_options={"synchronize_session": False, "populate_existing": True})
    if run is None:
        raise LeaseLost(f"run {claim.run_id} was cancelled or taken over")
    return run


async def changed_events(session: AsyncSession, run: RunRow, search: SearchRow) -> list[Event]:
    """The events of a changed run status, and of the search's where it follows."""
    content = RunEvent(search=str(search.id), run=run_state(run, search))
    events = [await append_event(session, search.id, content)]
    of_search = await refresh_status(session, search.id)
    return [*events, of_search] if of_search else events
