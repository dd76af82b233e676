"""A real vLLM server for one checkpoint, as a child process that never outlives this one.

A server counts as ready when it has generated a token. Its ``/health`` can be fine while the first request kills the
engine.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from evolve.manifest import Manifest
from service.child import ChildProcess
from service.model_plan import ModelServerError, ServerPlan, plan_server

__all__ = ["ModelServer", "ModelServerError"]

_PORT_TAKEN = "address already in use"
_PORT_ATTEMPTS = 3
_POLL_S = 0.25
_LOG_LINES = 12


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
        self._any_port = port == 0
        self._log = log
        self._start_timeout_s, self._stop_timeout_s = start_timeout_s, stop_timeout_s
        self._child: ChildProcess | None = None

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
        return self._child.pid if self._child else None

    @property
    def log(self) -> Path | None:
        """The file with the server's output while it runs."""
        return self._child.log if self._child else None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start the server and wait until it has generated a token."""
        if self._child is not None:
            raise RuntimeError("this model server was started already")
        attempts = _PORT_ATTEMPTS if self._any_port else 1
        for attempt in range(1, attempts + 1):
            if self._any_port:
                self.port = free_port(self.host)
            command = self.plan.command(self.checkpoint.resolve(), self.host, self.port)
            environment = self.plan.environment(dict(os.environ))
            child = ChildProcess(command, environment, log=self._log, stop_timeout_s=self._stop_timeout_s)
            self._child = child
            try:
                await child.start()
                await self._wait_until_ready(child)
            except BaseException as error:
                # Between choosing a free port and vLLM's binding it, somebody else may have taken it.
                retry = _PORT_TAKEN in child.log_tail(200).lower() and attempt < attempts
                await self.stop()
                if not (retry and isinstance(error, ModelServerError)):
                    raise
            else:
                return

    async def stop(self) -> None:
        """Stop the server and everything that it started. Does nothing if it does not run."""
        child, self._child = self._child, None
        if child is not None:
            await child.stop()

    async def wait(self) -> None:
        """Return never, or raise :class:`ModelServerError` when the server has ended by itself."""
        if self._child is not None:
            raise self._failure(self._child, f"ended with status {await self._child.wait()}")

    async def _wait_until_ready(self, child: ChildProcess) -> None:
        """Ask for one token until it comes: seeded, like a search's requests."""
        body = {"model": self.name, "prompt": [self.plan.vocabulary - 1], "max_tokens": 1, "seed": 1}
        deadline = time.monotonic() + self._start_timeout_s
        problem = "no connection"
        async with httpx.AsyncClient(trust_env=False, timeout=60.0) as client:
            while time.monotonic() < deadline:
                if child.pid is None:
                    raise self._failure(child, f"ended with status {child.status}")
                try:
                    response = await client.post(f"{self.url}/completions", json=body)
                except httpx.TransportError as error:
                    problem = type(error).__name__
                else:
                    if response.status_code == 200 and response.json().get("choices"):
                        return
                    problem = f"{response.status_code} {response.text[:200]}"
                await asyncio.sleep(_POLL_S)
        raise self._failure(child, f"generated nothing within {self._start_timeout_s:g} s ({problem})")

    def _failure(self, child: ChildProcess, reason: str) -> ModelServerError:
        return ModelServerError(
            f"the model server for {self.checkpoint} {reason}.\n"
            f"Errors in its log:\n{child.errors_in_log() or '(none named)'}\n"
            f"The end of its log:\n{child.log_tail(_LOG_LINES) or '(empty)'}\n"
            "If memory ran out, stop other servers; if vLLM does not know the checkpoint's architecture, serve it "
            "elsewhere and name the URL."
        )


def free_port(host: str = "127.0.0.1") -> int:
    """A TCP port that is free now. Raises :class:`ModelServerError` where ``host`` is not this machine's."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            raise ModelServerError(f"host {host!r} is no address of this machine ({error}): use 127.0.0.1") from None
        return int(probe.getsockname()[1])
