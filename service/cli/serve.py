"""``vpo serve`` and ``vpo worker``."""

from __future__ import annotations

import asyncio
import json
import logging
import logging.config
import os
import signal
import socket
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
import uvicorn
from fastapi import FastAPI
from pydantic import ValidationError
from starlette.types import Message, Receive, Scope, Send

from evolve.strict import explain
from service.app import create_app
from service.db.migrate import migrate
from service.services import Services, open_services
from service.settings import Settings
from service.worker import working

RUNNING = "service.json"
_GRACE_S = 5


class ShortFailures:
    """Passes everything on, and makes of a failed start's traceback the one sentence that says what to do."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def shorten(message: Message) -> None:
            failure = getattr(self._app.state, "failure", None)
            if failure and message["type"] == "lifespan.startup.failed":
                message = {"type": message["type"], "message": f"cannot start: {failure}"}
            await send(message)

        await self._app(scope, receive, shorten if scope["type"] == "lifespan" else send)


class Server(uvicorn.Server):
    """Uvicorn that ends event streams when it is asked to stop, and says where it is once it is ready."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, settings: Settings) -> None:
        super().__init__(config)
        self._application, self._settings = app, settings

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's, then tell people and other programs the URL."""
        await super().startup(sockets=sockets)
        if self.started and not self.should_exit:
            url = self._url()
            typer.echo(f"vpo-search is ready\n  API        {url}/docs\n  dashboard  {url}/dashboard/")
            _write_running(self._settings.data_dir, url)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's; from here on nobody should be sent here."""
        _forget_running(self._settings.data_dir)
        await super().shutdown(sockets=sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """As uvicorn's, but streams do not hold it up."""
        services: Services | None = getattr(self._application.state, "services", None)
        if services:
            services.hub.stop_listeners()
        super().handle_exit(sig, frame)

    def _url(self) -> str:
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
        return f"http://{shown}:{port}"


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on. [VPO_HOST, 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one. [VPO_PORT, 8080]")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder of the embedded servers. [VPO_DATA_DIR]")] = None,
) -> None:
    """Run the service: API, worker and dashboard in one process, with embedded Postgres and Valkey.

    DATABASE_URL and REDIS_URL switch to real servers. Ctrl-C and SIGTERM stop everything cleanly.
    """
    settings = _settings(host=host, port=port, data_dir=data_dir)
    app = create_app(settings)
    config = uvicorn.Config(
        ShortFailures(app),
        host=settings.host,
        port=settings.port,
        log_level=settings.log_level.lower(),
        log_config=_logging(settings.log_level),
        access_log=False,
        timeout_graceful_shutdown=_GRACE_S,
        lifespan="on",
    )
    server = Server(config, app, settings)
    with suppress(KeyboardInterrupt):  # uvicorn raises the signal again once it has stopped in order
        server.run()
    if not server.started:
        raise typer.Exit(3)


def worker() -> None:
    """Run a worker alone. DATABASE_URL and REDIS_URL name the servers of the service it works for."""
    settings = _settings()
    logging.config.dictConfig(_logging(settings.log_level))
    if not settings.database_url or not settings.redis_url:
        typer.echo("vpo worker needs DATABASE_URL and REDIS_URL: `vpo serve` has a worker of its own", err=True)
        raise typer.Exit(2)
    asyncio.run(_work(settings, settings.database_url, settings.redis_url))


async def _work(settings: Settings, database_url: str, redis_url: str) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await migrate(database_url)
    async with open_services(settings, database_url, redis_url) as services, working(services):
        await stop.wait()


def running_service(data_dir: Path) -> str | None:
    """URL of the service that uses a data folder, if one does."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        said = json.loads((data_dir / RUNNING).read_text(encoding="utf-8"))
        os.kill(int(said["pid"]), 0)
        return str(said["url"])
    return None


def _settings(**given: Any) -> Settings:
    try:
        return Settings(**{key: value for key, value in given.items() if value is not None})
    except ValidationError as error:
        typer.echo(f"wrong settings:\n{explain(error)}", err=True)
        raise typer.Exit(2) from None


def _write_running(data_dir: Path, url: str) -> None:
    with suppress(OSError):  # only a convenience for other commands
        data_dir.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"url": url, "pid": os.getpid()})
        (data_dir / RUNNING).write_text(text + "\n", encoding="utf-8")


def _forget_running(data_dir: Path) -> None:
    with suppress(OSError, ValueError, KeyError, TypeError):
        if json.loads((data_dir / RUNNING).read_text(encoding="utf-8"))["pid"] == os.getpid():
            (data_dir / RUNNING).unlink()


def _logging(level: str) -> dict[str, Any]:
    quiet = {"level": "WARNING"}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"format": "%(asctime)s %(levelname)-7s %(name)s: %(message)s"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"level": level.upper(), "handlers": ["stderr"]},
        "loggers": {"httpx": quiet, "procrastinate": quiet, "alembic": quiet},
    }
