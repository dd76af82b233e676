"""Watching the machine from outside a jail."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

PR_SET_CHILD_SUBREAPER = 36


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


@contextmanager
def adopting_orphans() -> Iterator[Callable[[], list[str]]]:
    """Become the parent of whatever descendant loses its own, so that nothing gets out of sight.

    Yields a function that tells who of the descendants is alive that was not there at the start, after a moment's
    patience; the dead among the adopted are buried.
    """
    known = {process.pid for process in psutil.Process().children(recursive=True)}

    def strangers() -> list[str]:
        _within(5.0, lambda: not _living(known))
        return _living(known)

    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield strangers
    finally:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def cgroup_peak_mb(groups: Iterable[Path]) -> float:
    """The most memory that the kernel ever charged to one of these control groups, MiB; 0 if none."""
    peaks = [0]
    for folder in groups:
        for name in ("memory.max_usage_in_bytes", "memory.peak"):
            with suppress(OSError):
                peaks.append(int((folder / name).read_text(encoding="ascii")))
    return max(peaks) / (1 << 20)


def own_cgroups() -> list[Path]:
    """Folders of the control groups that this process made for jails, in every controller's tree."""
    return list(Path("/sys/fs/cgroup").rglob(f"vpo-sandbox-{os.getpid()}-*"))


def _living(known: set[int]) -> list[str]:
    """Descendants that are not known, in words; zombies that nobody else can bury are buried."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error, ChildProcessError):
            if process.pid in known:
                continue
            if process.status() == psutil.STATUS_ZOMBIE and process.ppid() == os.getpid():
                os.waitpid(process.pid, os.WNOHANG)
            else:
                found.append(f"{process.pid} {process.status()} {' '.join(process.cmdline())[:100]}")
    return found


def _within(patience_s: float, condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
