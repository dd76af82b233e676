"""A long-lived child process that cannot outlive this one, with its output in a file.

What ends it: ``stop`` (SIGTERM to its process group, SIGKILL after a while), or the death of this process, however it
died: the kernel then sends the child SIGTERM. Not covered: children that the child has put into groups of their own,
if it is killed before it can end them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

_POLL_S = 0.05
_KILL_TIMEOUT_S = 5.0
# Runs between fork and exec in a process of its own: a preexec_fn would run in a copy of this large, threaded one.
# argv: pid of the parent, then the command. The parent may have died before prctl: then nobody will ever send SIGTERM.
_DIE_WITH_PARENT = (
    "import ctypes, os, signal, sys\n"
    "ctypes.CDLL(None).prctl(1, int(signal.SIGTERM))\n"
    "os.getppid() == int(sys.argv[1]) or sys.exit('the parent process is gone')\n"
    "os.execv(sys.argv[2], sys.argv[2:])\n"
)


class ChildProcess:
    """``command`` (its first word an absolute path) with the environment ``env``.

    log: file for its output; default: a new temporary one, removed by ``stop``.
    stop_timeout_s: between SIGTERM and SIGKILL.
    """

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], *, log: Path | None = None, stop_timeout_s: float = 15.0
    ) -> None:
        self._command, self._env = list(command), dict(env)
        self._own_log = log is None
        self.log = log
        self._stop_timeout_s = stop_timeout_s
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process and self._process.returncode is None else None

    @property
    def status(self) -> int | None:
        """Exit status; ``None`` while it runs (or before)."""
        return self._process.returncode if self._process else None

    async def start(self) -> None:
        """Start it. Call from the thread that lives longest: the kernel counts that thread's end as the parent's."""
        if self.log is None:
            handle, path = tempfile.mkstemp(prefix="vpo-", suffix=".log")
            os.close(handle)
            self.log = Path(path)
        wrapper = [sys.executable, "-S", "-E", "-c", _DIE_WITH_PARENT, str(os.getpid())]
        with self.log.open("wb") as output:
            self._process = await asyncio.create_subprocess_exec(
                *wrapper,
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._env,
                start_new_session=True,  # a Ctrl-C at the terminal is for us; we stop the child ourselves
            )

    async def wait(self) -> int:
        """Return the exit status when it has ended by itself."""
        if self._process is None:
            raise RuntimeError("this process was not started")
        return await self._process.wait()

    async def stop(self) -> None:
        """End it and everything that it started. Does nothing if it does not run."""
        process, self._process = self._process, None
        if process is not None:
            family = _family(process.pid)
            # Its children end after it, giving back shared memory and the like.
            _signal_group(process.pid, signal.SIGTERM)
            await _gone(family, self._stop_timeout_s)
            _signal_group(process.pid, signal.SIGKILL)
            await _gone(family, _KILL_TIMEOUT_S)  # the kernel takes a moment
            await process.wait()
        if self._own_log and self.log is not None:
            self.log.unlink(missing_ok=True)
            self.log = None

    def log_tail(self, lines: int) -> str:
        """The last lines of its output."""
        if self.log is None or not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def errors_in_log(self, most: int = 4) -> str:
        """The first exceptions that its output names, one a line: the cause comes early, its consequences last."""
        lines = [line for line in self.log_tail(2000).splitlines() if " WARNING " not in line]
        causes = dict.fromkeys(re.findall(r"\b[\w.]+(?:Error|Exception): .+", "\n".join(lines)))
        return "\n".join(cause[:500] for cause in list(causes)[:most])


def _signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)


async def _gone(family: Sequence[psutil.Process], timeout_s: float) -> None:
    """Return when none of the processes runs any more, or after ``timeout_s`` seconds."""
    deadline = time.monotonic() + timeout_s
    while any(map(_runs, family)) and time.monotonic() < deadline:  # noqa: ASYNC110 (no event tells)
        await asyncio.sleep(_POLL_S)


def _family(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
