"""Child processes end with ``stop`` and with their parent, and leave an explanation."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from service.child import ChildProcess

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
)


async def until(child: ChildProcess, text: str) -> None:
    async with asyncio.timeout(20):
        while text not in child.log_tail(50):
            await asyncio.sleep(0.02)


async def test_output_goes_to_a_file_that_stop_removes() -> None:
    child = ChildProcess([sys.executable, "-c", "print('hello'); raise KeyError('x')"], dict(os.environ))
    await child.start()
    assert await child.wait() == 1
    assert child.log_tail(10).startswith("hello")
    assert child.pid is None
    log = child.log
    await child.stop()
    assert log is not None
    assert not log.exists()


async def test_a_given_log_file_is_kept(tmp_path: Path) -> None:
    child = ChildProcess([sys.executable, "-c", "print('hello')"], dict(os.environ), log=tmp_path / "log")
    await child.start()
    await child.wait()
    await child.stop()
    assert (tmp_path / "log").read_text() == "hello\n"


async def test_one_that_ignores_the_request_to_stop_is_killed_with_its_children() -> None:
    script = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {STUBBORN!r}]); {STUBBORN}"
    child = ChildProcess([sys.executable, "-c", script], dict(os.environ), stop_timeout_s=0.2)
    await child.start()
    await until(child, "up\nup")
    assert child.pid is not None
    family = [psutil.Process(child.pid), *psutil.Process(child.pid).children(recursive=True)]
    assert len(family) == 2
    await child.stop()
    assert all(not process.is_running() or process.status() == psutil.STATUS_ZOMBIE for process in family)


async def test_errors_are_found_before_their_consequences() -> None:
    script = "print('WARNING x\\n a WARNING OSError: hint\\nValueError: cause\\nRuntimeError: see above')"
    child = ChildProcess([sys.executable, "-c", script], dict(os.environ))
    await child.start()
    await child.wait()
    assert child.errors_in_log() == "ValueError: cause\nRuntimeError: see above"
    await child.stop()


def test_it_dies_with_a_killed_parent() -> None:
    script = (
        "import asyncio, os, sys\n"
        "from service.child import ChildProcess\n"
        "async def main():\n"
        "    child = ChildProcess([sys.executable, '-c', 'import time; time.sleep(600)'], dict(os.environ))\n"
        "    await child.start()\n"
        "    print(child.pid, flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": "."}) as parent:
        assert parent.stdout is not None
        orphan = psutil.Process(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while orphan.is_running() and orphan.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE
