"""Real embedded servers for the whole session, a fresh database per test, and the service on a real port."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest
import redis
import uvicorn
from sqlalchemy.ext.asyncio import AsyncEngine

from service.app import create_app
from service.db.engine import Sessions, make_engine, make_sessions
from service.db.migrate import migrate
from service.embedded import Servers, embedded_servers
from service.settings import Settings, conninfo
from tests.service.model_fake import FakeModel

_numbers = itertools.count(1)


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A folder that the embedded servers' account can enter; pytest's own are closed to it."""
    with public_folder() as folder:
        yield folder


@contextmanager
def public_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="vpo-test-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        for process in _working_in(folder):  # of a test that failed
            process.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _working_in(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.name().startswith(("postgres", "valkey")) and Path(process.cwd()).is_relative_to(folder):
                found.append(process)
    return found


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """Postgres and Valkey for all tests, with a migrated template database."""
    with public_folder() as folder, asyncio.Runner() as runner:
        context = embedded_servers(Settings(data_dir=folder, database_url=None, redis_url=None))
        found = runner.run(context.__aenter__())
        try:
            runner.run(migrate(found.database_url))
            yield found
        finally:
            runner.run(context.__aexit__(None, None, None))


@pytest.fixture
def database_url(servers: Servers) -> Iterator[str]:
    """A fresh, migrated database."""
    name = f"test_{next(_numbers)}"
    admin = conninfo(servers.database_url).replace("/vpo?", "/postgres?")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE vpo")
    yield servers.database_url.replace("/vpo?", f"/{name}?")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def redis_url(servers: Servers) -> str:
    """An empty Valkey."""
    with redis.Redis.from_url(servers.redis_url) as client:
        client.flushall()
    return servers.redis_url


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    made = make_engine(database_url)
    yield made
    await made.dispose()


@pytest.fixture
def sessions(engine: AsyncEngine) -> Sessions:
    return make_sessions(engine)


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Settings:
    return Settings(database_url=database_url, redis_url=redis_url, concurrency=4, sandbox_concurrency=2)


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel() as fake:
        yield fake


class _Quiet(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """The service on a free port of this machine, with a client for it."""
    app = create_app(settings)
    server = _Quiet(uvicorn.Config(app, port=0, log_config=None, timeout_graceful_shutdown=2))
    task = asyncio.create_task(server.serve())
    while not server.started:
        assert not task.done(), "the service did not start"
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
            yield client
    finally:
        if hasattr(app.state, "services"):
            app.state.services.hub.stop_listeners()
        server.should_exit = True
        await task


@pytest.fixture
async def api(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(settings) as client:
        yield client


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[Settings], AbstractAsyncContextManager[httpx.AsyncClient]]]:
    async with AsyncExitStack():
        yield serving
