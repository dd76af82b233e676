"""Watching the machine from outside a jail."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def processes_with(mark: str) -> list[int]:
    """Processes of the machine that have ``mark`` in their command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def appeared(mark: str, patience_s: float = 30.0) -> bool:
    """Whether a process with ``mark`` came up in time."""
    return _within(patience_s, lambda: bool(processes_with(mark)))


def gone(mark: str, patience_s: float = 10.0) -> bool:
    """Whether no process with ``mark`` is left, giving the kernel a moment to bury them."""
    return _within(patience_s, lambda: not processes_with(mark))


def _within(patience_s: float, condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
