"""Starting programs of a wheel as the servers' account, and telling whose process is whose."""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import psutil

from service.embedded.folder import DataFolder, EmbeddedError


def wheel_folder(module: str, inside: str) -> Path:
    """A folder of an installed package, found without importing it. Raises :class:`EmbeddedError`."""
    found = importlib.util.find_spec(module)
    for location in (found.submodule_search_locations or ()) if found else ():
        if (folder := Path(location) / inside).is_dir():
            return folder
    raise EmbeddedError(
        f"the package of {module} is not installed: install vpo-search[embedded], or set DATABASE_URL and REDIS_URL"
    )


def usable_copy(original: Path, program: str, folder: DataFolder) -> Path:
    """``original``, or a copy in the data folder where the account cannot run what lies in it (a venv in a home)."""
    if _runs(original / program, folder):
        return original
    version = (original / program).stat().st_mtime_ns
    copy = folder.path / "programs" / f"{original.parent.name}-{version}"
    if not _runs(copy / program, folder):
        copy.parent.mkdir(mode=0o755, exist_ok=True)
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(original, copy)
        for path in (copy, *copy.rglob("*")):
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() or path.stat().st_mode & 0o100 else 0o444))
    if not _runs(copy / program, folder):
        raise EmbeddedError(
            f"{original / program} does not run on this machine: set DATABASE_URL and REDIS_URL to servers that do"
        )
    return copy


async def run_program(arguments: Sequence[str | Path], folder: DataFolder, *, timeout_s: float) -> int:
    """Run a program to its end as the account; its exit status, -1 where it took longer than ``timeout_s``.

    Its output goes nowhere: servers that it starts inherit it. (A thread, as uvloop cannot change users.)
    """

    def run() -> int:
        silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        options = {**silent, **folder.account.popen}
        try:
            return subprocess.run(
                list(map(str, arguments)), cwd=folder.sockets, timeout=timeout_s, check=False, **options
            ).returncode
        except subprocess.TimeoutExpired:
            return -1

    return await asyncio.to_thread(run)


def works_in(name: str, folder: Path) -> bool:
    """Whether a living process whose name starts with ``name`` has ``folder`` as its working folder."""
    return any(_is_working(process, name, folder) for process in psutil.process_iter())


def is_working_in(pid: int, name: str, folder: Path) -> bool:
    """Whether process ``pid`` is such a one."""
    try:
        return _is_working(psutil.Process(pid), name, folder)
    except psutil.Error:
        return False


def _is_working(process: psutil.Process, name: str, folder: Path) -> bool:
    try:
        if not process.name().startswith(name) or process.status() == psutil.STATUS_ZOMBIE:
            return False
        return Path(process.cwd()) == folder
    except (psutil.Error, OSError):
        return False


def tail(log: Path, lines: int = 8) -> str:
    """The end of a log file, for an error message."""
    try:
        return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
    except OSError:
        return "(no log)"


def _runs(program: Path, folder: DataFolder) -> bool:
    try:
        done = subprocess.run(
            [program, "--version"],
            capture_output=True,
            timeout=30,
            cwd=folder.sockets,
            check=False,
            **folder.account.popen,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
