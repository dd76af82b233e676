"""The job queue: procrastinate on the same Postgres. One job per run, enqueued in the transaction of its rows."""

from __future__ import annotations

from collections.abc import Sequence

import procrastinate
from procrastinate.jobs import Job
from procrastinate.retry import BaseRetryStrategy, RetryDecision
from procrastinate.types import JSONDict
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from service.settings import conninfo

QUEUE = "runs"
TASK = "run"


class RunDeferred(Exception):  # noqa: N818 (a decision, not a fault)
    """The run cannot go on now: its job goes back to the queue, to be taken up in ``seconds`` or later."""

    def __init__(self, seconds: int, reason: str) -> None:
        super().__init__(f"{reason}; again in {seconds} s")
        self.seconds = seconds


class DeferredRuns(BaseRetryStrategy):
    """Retries exactly the jobs that ask for it."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        """When to take up a deferred run."""
        if isinstance(exception, RunDeferred):
            return RetryDecision(retry_in={"seconds": exception.seconds})
        return None


def make_jobs(database_url: str) -> procrastinate.App:
    """The queue's client. Open it (``async with app.open_async()``) before use."""
    connector = procrastinate.PsycopgConnector(conninfo=conninfo(database_url), min_size=1, max_size=4)
    return procrastinate.App(connector=connector)


async def enqueue_runs(session: AsyncSession, run_ids: Sequence[int]) -> None:
    """Add one job per run and note it in the run's row, in the session's transaction."""
    raw = await (await session.connection()).get_raw_connection()
    app = procrastinate.App(connector=procrastinate.PsycopgConnector())
    deferrer = app.configure_task(TASK, queue=QUEUE, connection=raw.driver_connection)
    arguments: list[JSONDict] = [{"run_id": run_id} for run_id in run_ids]
    job_ids = await deferrer.batch_defer_async(*arguments)
    query = "UPDATE runs SET job_id = v.job FROM unnest(CAST(:runs AS bigint[]), CAST(:jobs AS bigint[])) v(run, job) "
    await session.execute(text(query + "WHERE runs.id = v.run"), {"runs": list(run_ids), "jobs": list(job_ids)})
