"""Embedded Postgres and Valkey: real servers from wheels, for a machine that has none.

Theory of operation. One data folder belongs to one service at a time, which a lock on a file in it ensures; the kernel
releases it with the process, however that ends. The servers themselves are processes of their own: a killed service
leaves them running, and the next one attaches to them after a real connection has shown that they answer and serve
this very folder. They listen on sockets in a private folder only, never on the network. As root, which Postgres
refuses, they run as an account without rights. One that dies is started again. They are stopped at the end of the
service's lifespan, so also on SIGTERM and Ctrl-C. Not covered: two machines sharing a data folder over a network file
system.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from service.embedded.folder import EmbeddedError, locked, prepare
from service.embedded.postgres import EmbeddedPostgres
from service.embedded.valkey import EmbeddedValkey
from service.settings import Settings

__all__ = ["EmbeddedError", "Servers", "embedded_servers"]

LOOK_EVERY_S = 5.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Servers:
    """Where database and Redis are."""

    database_url: str
    redis_url: str


@asynccontextmanager
async def embedded_servers(settings: Settings) -> AsyncIterator[Servers]:
    """The servers that settings name; those they do not name run embedded for as long as the context lasts.

    Raises :class:`EmbeddedError`, which says what to do.
    """
    async with AsyncExitStack() as stack:
        if settings.database_url and settings.redis_url:
            yield Servers(settings.database_url, settings.redis_url)
            return
        folder = prepare(settings.data_dir)
        stack.enter_context(locked(folder))
        redis_url, database_url = settings.redis_url, settings.database_url
        own: list[EmbeddedPostgres | EmbeddedValkey] = []
        if redis_url is None:
            own.append(valkey := EmbeddedValkey(folder))
            redis_url = await stack.enter_async_context(valkey)
        if database_url is None:
            own.append(postgres := EmbeddedPostgres(folder))
            database_url = await stack.enter_async_context(postgres)
        keeping = asyncio.create_task(_keep_running(own), name="embedded servers")
        try:
            yield Servers(database_url, redis_url)
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)


async def _keep_running(servers: list[EmbeddedPostgres | EmbeddedValkey]) -> None:
    """Start a server again that has died (killed for memory, say); it comes back at the same address."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        for server in servers:
            try:
                await server.ensure_running()
            except (EmbeddedError, OSError):
                logger.exception("an embedded server does not come back; trying again in %g s", LOOK_EVERY_S)
