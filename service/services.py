"""The parts that one process of the service shares: database, queue, events, sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import procrastinate
from sqlalchemy.ext.asyncio import AsyncEngine

from sandbox.runner import Sandbox
from service.db.engine import Sessions, make_engine, make_sessions
from service.events import EventHub
from service.jobs import make_jobs
from service.settings import Settings


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that routes and worker need. database_url, redis_url: where the servers are, embedded or not."""

    settings: Settings
    database_url: str
    redis_url: str
    engine: AsyncEngine
    sessions: Sessions
    jobs: procrastinate.App
    hub: EventHub
    sandbox: Sandbox


@asynccontextmanager
async def open_services(settings: Settings, database_url: str, redis_url: str) -> AsyncIterator[Services]:
    """Connect to the servers; everything is closed again at the end."""
    async with AsyncExitStack() as stack:
        engine = make_engine(database_url)
        stack.push_async_callback(engine.dispose)
        sessions = make_sessions(engine)
        jobs = make_jobs(database_url)
        await stack.enter_async_context(jobs.open_async())
        hub = await stack.enter_async_context(EventHub(redis_url, sessions))
        sandbox = Sandbox(settings.sandbox_concurrency, minimum_tier=settings.min_tier, folders=settings.folders)
        stack.push_async_callback(sandbox.close)
        yield Services(settings, database_url, redis_url, engine, sessions, jobs, hub, sandbox)
