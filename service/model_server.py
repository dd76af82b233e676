"""A real vLLM server for one checkpoint, as a child process that never outlives this one.

What ends it: ``stop`` (SIGTERM to its process group, SIGKILL after a while), or the death of this process (the kernel
sends the child SIGTERM; nothing has to run here for that). What does not: a kernel older than Linux 2.1.57.

A server counts as ready when it has generated a token. Its ``/health`` can be fine while the first request kills the
engine.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from evolve.manifest import Manifest
from service.model_plan import ModelServerError, ServerPlan, plan_server

__all__ = ["ModelServer", "ModelServerError"]

_PORT_TAKEN = "address already in use"
_PORT_ATTEMPTS = 3
_POLL_S = 0.25
_LOG_LINES = 25
# Runs between fork and exec in a process of its own: a preexec_fn would run in a copy of this large, threaded one.
# argv: pid of the parent, then the command. The parent may have died before prctl: then nobody will ever send SIGTERM.
_DIE_WITH_PARENT = (
    "import ctypes, os, signal, sys\n"
    "ctypes.CDLL(None).prctl(1, int(signal.SIGTERM))\n"
    "os.getppid() == int(sys.argv[1]) or sys.exit('the parent process is gone')\n"
    "os.execv(sys.argv[2], sys.argv[2:])\n"
)


class ModelServer:
    """Serves ``checkpoint`` as ``async with ModelServer(path) as server: server.url``.

    name: the model's name in requests (default: the manifest's, else the folder's).
    port: 0 takes a free one. log: file for the server's output (default: a new temporary one, removed by ``stop``).
    start_timeout_s: until the first token. stop_timeout_s: between SIGTERM and SIGKILL.

    Starting raises :class:`ModelServerError` with the reason and the end of the log.
    """

    def __init__(
        self,
        checkpoint: Path,
        *,
        name: str | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        log: Path | None = None,
        start_timeout_s: float = 300.0,
        stop_timeout_s: float = 15.0,
    ) -> None:
        self.checkpoint = checkpoint
        self.plan: ServerPlan = plan_server(checkpoint, name=name)
        self.host, self.port = host, port
        self.log = log
        self._any_port = port == 0
        self._own_log = log is None
        self._start_timeout_s, self._stop_timeout_s = start_timeout_s, stop_timeout_s
        self._process: asyncio.subprocess.Process | None = None

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def manifest(self) -> Manifest | None:
        return self.plan.manifest

    @property
    def url(self) -> str:
        """The OpenAI-compatible endpoint, ``/v1`` included."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 (not a binding)
        return f"http://[{host}]:{self.port}/v1" if ":" in host else f"http://{host}:{self.port}/v1"

    @property
    def pid(self) -> int | None:
        """Process id of the running server."""
        return self._process.pid if self._process and self._process.returncode is None else None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start the server and wait until it has generated a token."""
        if self._process is not None:
            raise RuntimeError("this model server was started already")
        attempts = _PORT_ATTEMPTS if self._any_port else 1
        for attempt in range(1, attempts + 1):
            await self._launch()
            try:
                return await self._wait_until_ready()
            except ModelServerError:
                await self._terminate()
                # Between choosing a free port and vLLM's binding it, somebody else may have taken it.
                if attempt == attempts or _PORT_TAKEN not in self._log_tail(200).lower():
                    raise
            except BaseException:
                await self.stop()
                raise

    async def stop(self) -> None:
        """Stop the server and everything that it started. Does nothing if it does not run."""
        await self._terminate()
        if self._own_log and self.log is not None:
            self.log.unlink(missing_ok=True)
            self.log = None

    async def wait(self) -> None:
        """Return when the server has ended by itself, raising :class:`ModelServerError` with the reason."""
        if self._process is not None:
            await self._process.wait()
            raise self._failure(f"ended with status {self._process.returncode}")

    async def _launch(self) -> None:
        if self._any_port:
            self.port = _free_port(self.host)
        if self.log is None:
            handle, path = tempfile.mkstemp(prefix=f"vpo-model-{self.port}-", suffix=".log")
            os.close(handle)
            self.log = Path(path)
        command = self.plan.command(self.checkpoint.resolve(), self.host, self.port)
        wrapper = [sys.executable, "-S", "-E", "-c", _DIE_WITH_PARENT, str(os.getpid())]
        with self.log.open("wb") as output:
            self._process = await asyncio.create_subprocess_exec(
                *wrapper,
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self.plan.environment(dict(os.environ)),
                start_new_session=True,  # a Ctrl-C at the terminal is for us; we stop the server ourselves
            )

    async def _wait_until_ready(self) -> None:
        """Ask for one token until it comes: seeded, like a search's requests."""
        body = {"model": self.name, "prompt": [self.plan.vocabulary - 1], "max_tokens": 1, "seed": 1}
        deadline = time.monotonic() + self._start_timeout_s
        problem = "no connection"
        async with httpx.AsyncClient(trust_env=False, timeout=60.0) as client:
            while time.monotonic() < deadline:
                if self._process is None or self._process.returncode is not None:
                    raise self._failure(f"ended with status {self._process.returncode if self._process else '?'}")
                try:
                    response = await client.post(f"{self.url}/completions", json=body)
                except httpx.TransportError as error:
                    problem = type(error).__name__
                else:
                    if response.status_code == 200 and response.json().get("choices"):
                        return
                    problem = f"{response.status_code} {response.text[:200]}"
                await asyncio.sleep(_POLL_S)
        raise self._failure(f"generated nothing within {self._start_timeout_s:g} s ({problem})")

    async def _terminate(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            _signal_group(process.pid, signal.SIGTERM)
            try:
                async with asyncio.timeout(self._stop_timeout_s):
                    await process.wait()
            except TimeoutError:
                pass
        _signal_group(process.pid, signal.SIGKILL)  # whatever is left of the group
        await process.wait()

    def _failure(self, reason: str) -> ModelServerError:
        log = self._log_tail(_LOG_LINES)
        return ModelServerError(
            f"the model server for {self.checkpoint} {reason}.\nThe end of its log:\n{log or '(empty)'}\n"
            "If memory ran out, stop other servers; if the checkpoint is unknown to vLLM, serve it elsewhere and "
            "name the URL."
        )

    def _log_tail(self, lines: int) -> str:
        if self.log is None or not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def _free_port(host: str) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            raise ModelServerError(f"host {host!r} is no address of this machine ({error}): use 127.0.0.1") from None
        return int(probe.getsockname()[1])


def _signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
