"""Tier ``confined``: what is left where bubblewrap cannot make namespaces.

A jail of this tier is the interpreter itself, started in a scratch folder of its own; what it gives up inside is told
in :mod:`sandbox.inside.confinement`. The Landlock calls are made there directly: the packages that wrap them would have
to be importable inside, where nothing is but the standard library.
"""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.jail import seccomp
from sandbox.jail.bubblewrap import DEVICES, LINKER_FILES, SYSTEM_FOLDERS
from sandbox.jail.interpreter import base_interpreter
from sandbox.limits import Limits
from sandbox.tiers import Tier

PREFIX = "vpo-sandbox-"
PATIENCE_S = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Confinement:
    """The weakest way of isolating. privileged: started by root, so that each jail has a uid of its own."""

    privileged: bool

    @property
    def tier(self) -> Tier:
        return Tier.CONFINED

    @property
    def cgroups(self) -> None:
        """None: where a group could be made, a jail usually can be too."""


def settings(limits: Limits) -> dict[str, Any]:
    """What :mod:`sandbox.inside.confinement` has to know."""
    base = str(base_interpreter()[0])
    system = [str(path) for path in (Path("/usr"), *(Path("/", name) for name in SYSTEM_FOLDERS)) if path.is_dir()]
    return {
        "readable": [*system, *LINKER_FILES, base],
        "devices": [f"/dev/{name}" for name in DEVICES],
        "base": base,
        "hidden": os.geteuid() == 0 and not open_to_others(Path(base)),
        "filter": seccomp.compiled_filter(confined=True),
        "scratch_bytes": limits.tmpfs_mb << 20,
    }


def open_to_others(folder: Path) -> bool:
    """Whether any user may enter a folder."""
    return all(path.stat().st_mode & stat.S_IXOTH for path in (folder, *folder.parents))


def tasks_of_this_user() -> int:
    """Processes and threads of this user, which count against the limit of a jail that has no uid of its own."""
    count = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if folder.stat().st_uid == os.getuid():
                count += len(os.listdir(folder / "task"))
        except OSError:
            continue
    return count


def make_scratch(uid: int, held: list[int], *, privileged: bool) -> Path:
    """A scratch folder for one jail; a lock on it, in ``held``, says that its owner lives."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    held.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    fcntl.flock(held[-1], fcntl.LOCK_EX)
    if privileged:
        os.chown(folder, uid, uid)
    return folder


def sweep_scratch() -> None:
    """Remove the scratch folders of owners that died suddenly."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # another user's
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_scratch(folder)
        except BlockingIOError:
            continue
        finally:
            os.close(lock)


def remove_scratch(folder: Path) -> None:
    """Remove it, whatever a test left there: closed folders, deep trees. Links are not followed."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        subprocess.run(["rm", "-rf", "--", str(folder)], stderr=subprocess.DEVNULL, check=False)
        if not folder.exists() or time.monotonic() > deadline:
            return
        subprocess.run(["chmod", "-R", "u+rwX", "--", str(folder)], stderr=subprocess.DEVNULL, check=False)
        time.sleep(0.02)
