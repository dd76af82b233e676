"""Which workers live: each holds an advisory lock under its number, on a connection that ends with its process."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from service.settings import conninfo

_LOCK_CLASS = 7762031  # "vpo" in ASCII: keeps our locks apart from those of other users of the database

_ALIVE = """EXISTS (
    SELECT 1 FROM pg_locks
    WHERE locktype = 'advisory' AND classid = 7762031 AND objsubid = 2 AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND objid = CAST(:worker AS oid)
)"""

_ABANDONED = f"""
    SELECT run.id, run.worker, run.job_id, CAST(job.status AS text) AS job_status FROM runs run
    LEFT JOIN procrastinate_jobs job ON job.id = run.job_id
    WHERE run.status IN ('queued', 'running', 'waiting') AND job.status IS DISTINCT FROM 'todo'
        AND (run.worker IS NULL OR run.worker = :own OR NOT {_ALIVE.replace(":worker", "run.worker")})
"""  # noqa: S608 (constants only)

Connection = psycopg.AsyncConnection[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Suspect:
    """An unfinished run that nobody seems to work on: no living worker has it, or only the asking one."""

    run_id: int
    worker: int | None
    job_id: int | None
    job_status: str | None


async def open_lease_connection(database_url: str) -> Connection:
    """A connection for locks. The server notices within half a minute if the machine at this end is gone."""
    connection = await psycopg.AsyncConnection.connect(
        conninfo(database_url), autocommit=True, connect_timeout=10, application_name="vpo-search worker"
    )
    for setting, value in (("idle", 10), ("interval", 5), ("count", 3)):
        await connection.execute(f"SET tcp_keepalives_{setting} = {value}")
    return connection


async def take_number(lease: Connection) -> int:
    """A new worker number, whose lock this connection now holds."""
    row = await (await lease.execute("SELECT nextval('leases')")).fetchone()
    assert row is not None  # nextval always answers
    number = int(str(row[0]))
    await lease.execute("SELECT pg_advisory_lock(%s, %s)", [_LOCK_CLASS, number])
    return number


async def is_alive(session: AsyncSession, worker: int) -> bool:
    """Whether a worker's process lives and has its connection."""
    return bool(await session.scalar(text(f"SELECT {_ALIVE}"), {"worker": worker}))


async def find_suspects(session: AsyncSession, own: int) -> list[Suspect]:
    """Unfinished runs whose job is not waiting in the queue and that no living worker but ``own`` has claimed."""
    rows = await session.execute(text(_ABANDONED), {"own": own})
    return [Suspect(row.id, row.worker, row.job_id, row.job_status) for row in rows]
