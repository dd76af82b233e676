"""The worker: takes jobs from the queue, many at a time, and finds the runs of workers that died.

Every worker holds a lock in Postgres (:mod:`service.db.leases`) that goes the moment its process does, however it
ends. Every worker looks every few seconds for unfinished runs that no living worker has: those a dead worker was
working on, or whose job was lost. It puts them back into the queue. That takes two sightings, since between the
fetching of a job and the claim on its run there is a moment without a claim; and where it errs all the same, the claim
itself and the leases (:mod:`service.db.runs`) see to it that a run is worked on once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import procrastinate
from procrastinate.exceptions import ProcrastinateException
from procrastinate.utils import utcnow
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from service.db.leases import Connection, Suspect, find_suspects, open_lease_connection, take_number
from service.db.models import RunRow
from service.db.runs import RunBusy
from service.execution import Models, execute
from service.jobs import QUEUE, TASK, DeferredRuns, RunDeferred, enqueue_runs
from service.services import Services

LOOK_EVERY_S = 1.5
RESTART_AFTER_S = 2.0
STOP_WITHIN_S = 10.0
_BUSY_S = 5
_DATABASE_S = 2

logger = logging.getLogger(__name__)


class QueueEnded(RuntimeError):  # noqa: N818 (an event)
    """The queue stopped by itself, because its connection to the database failed."""


class Worker:
    """One worker: a number, its lock, and the runs it works on."""

    def __init__(self, services: Services, models: Models) -> None:
        self._services, self._models = services, models
        self._number = 0
        self._active: set[int] = set()
        self._suspects: set[Suspect] = set()
        self._stop = asyncio.Event()

    async def run(self) -> None:
        """Work until cancelled; then runs stop where they can go on later. Raises when the database goes away."""
        async with await open_lease_connection(self._services.database_url) as lease:
            self._number = await take_number(lease)
            logger.info("worker %d takes %d runs at once", self._number, self._services.settings.concurrency)
            parts = [asyncio.create_task(self._take_jobs()), asyncio.create_task(self._look_after_runs(lease))]
            try:
                await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            finally:
                self._stop.set()
                for part in parts:
                    part.cancel()
                outcomes = await asyncio.gather(*parts, return_exceptions=True)
            for outcome in outcomes:
                if isinstance(outcome, Exception):
                    raise outcome

    async def _take_jobs(self) -> None:
        app = procrastinate.App(connector=self._services.jobs.connector)
        app.task(name=TASK, queue=QUEUE, retry=DeferredRuns())(self._run_job)
        await app.run_worker_async(
            queues=[QUEUE],
            concurrency=self._services.settings.concurrency,
            install_signal_handlers=False,
            fetch_job_polling_interval=LOOK_EVERY_S,
            abort_job_polling_interval=LOOK_EVERY_S,
            shutdown_graceful_timeout=STOP_WITHIN_S,
            delete_jobs="successful",
        )
        raise QueueEnded("the queue stopped by itself")

    async def _run_job(self, run_id: int) -> None:
        if run_id in self._active:
            raise RunDeferred(_BUSY_S, f"run {run_id} is being worked on")
        self._active.add(run_id)
        try:
            await execute(self._services, self._models, run_id, worker=self._number, stop=self._stop)
        except RunBusy as busy:
            raise RunDeferred(_BUSY_S, str(busy)) from None
        except (OperationalError, InterfaceError, PoolTimeout) as error:
            raise RunDeferred(_DATABASE_S, f"the database failed run {run_id}: {error}") from error
        finally:
            self._active.discard(run_id)

    async def _look_after_runs(self, lease: Connection) -> None:
        while True:
            await lease.execute("SELECT 1")  # fails when the lock is lost, and with it the right to work
            async with self._services.sessions() as session:
                found = set(await find_suspects(session, self._number))
            found = {suspect for suspect in found if suspect.run_id not in self._active}
            for suspect in found & self._suspects:
                await self._back_to_queue(suspect)
            self._suspects = found
            await asyncio.sleep(LOOK_EVERY_S)

    async def _back_to_queue(self, suspect: Suspect) -> None:
        logger.warning("run %d has no living worker: back to the queue", suspect.run_id)
        if suspect.job_status == "doing" and suspect.job_id is not None:
            with suppress(ProcrastinateException):  # another worker was quicker
                await self._services.jobs.job_manager.retry_job_by_id_async(suspect.job_id, retry_at=utcnow())
            return
        async with self._services.sessions.begin() as session:
            run = await session.get(RunRow, suspect.run_id, with_for_update=True)
            if run is not None and run.job_id == suspect.job_id:
                await enqueue_runs(session, [run.id])


@asynccontextmanager
async def working(services: Services) -> AsyncIterator[None]:
    """Work on jobs in the background for as long as the context lasts."""
    models = Models(services.settings.model_timeout_s)
    task = asyncio.create_task(_supervise(services, models), name="worker")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await models.aclose()


async def _supervise(services: Services, models: Models) -> None:
    """Start the worker again whenever the database took it down."""
    while True:
        try:
            await Worker(services, models).run()
        except Exception:
            logger.exception("the worker stopped; it starts again in %g s", RESTART_AFTER_S)
        await asyncio.sleep(RESTART_AFTER_S)
