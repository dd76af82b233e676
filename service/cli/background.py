"""A service for commands that need one: the running one, or one of their own for as long as they last."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from service.child import ChildProcess
from service.cli.serve import running_service
from service.client import ServiceClient, ServiceError
from service.settings import Settings

_ROOT = Path(__file__).parents[2]
_START_TIMEOUT_S = 180.0


@asynccontextmanager
async def open_service(tell: Callable[[str], None]) -> AsyncIterator[str]:
    """URL of the service of this user's data folder: the one that runs already, or ``vpo serve`` as a child.

    tell: called with a line for people. Raises :class:`service.client.ServiceError` where it does not become ready.
    """
    settings = Settings()
    if (url := running_service(settings.data_dir)) is not None:
        async with ServiceClient(url) as client:
            if (ready := await client.ready()) is not None and ready.ready:
                tell(f"using the service that runs at {url}")
                yield url
                return
    port = settings.port if _is_free(settings.host, settings.port) else 0
    command = [sys.executable, "-m", "service.cli", "serve", "--port", str(port)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH")))),
    }
    child = ChildProcess(command, environment, stop_timeout_s=30.0)
    try:
        tell("starting the service with embedded Postgres and Valkey")
        await child.start()
        yield await _wait_until_ready(child, settings.data_dir)
    finally:
        await child.stop()


async def _wait_until_ready(child: ChildProcess, data_dir: Path) -> str:
    deadline = time.monotonic() + _START_TIMEOUT_S
    problem = "it did not say where it is"
    while time.monotonic() < deadline:
        if child.pid is None:
            raise ServiceError(f"the service ended with status {child.status}:\n{child.log_tail(15)}")
        if (url := running_service(data_dir)) is not None:
            async with ServiceClient(url) as client:
                ready = await client.ready()
            if ready is not None and ready.ready:
                return url
            if ready is not None:
                problem = "; ".join(f"{name}: {check.detail}" for name, check in ready.checks.items() if not check.ok)
        await asyncio.sleep(0.2)
    raise ServiceError(f"the service was not ready within {_START_TIMEOUT_S:g} s: {problem}\n{child.log_tail(15)}")


def _is_free(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
