"""Control groups: a bound on the memory and the processes of a whole jail, which resource limits cannot give.

Theory of operation. A sandbox makes one group per slot (a jail that may be alive), below the group that this process
is in or the nearest of its parents that lets it. The launcher moves process 1 of a jail into the group before it runs
anything of the program; everything forked from there on is in it, and nothing inside can leave, since there is no
cgroup file system in a jail. What counts against the bound: the memory of all processes together, shared memory, the
scratch space, page cache and the kernel's own structures. When it is exceeded, the kernel kills a process of the group
and counts that; the launcher reads the count, so that no program can hide it.

A group is locked (flock) by its owner. The lock goes with the process, however it dies; whoever starts next removes
groups that nobody locks. Version 1 (one tree a controller) and version 2 (one tree) are both spoken.

NOT covered: CPU time (resource limits and the clock do that), disk bandwidth.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

CONTROLLERS = ("memory", "pids")
PREFIX = "vpo-sandbox-"
RESIDENCE = "vpo-service"  # where this process moves to when its own group must have no processes
PATIENCE_S = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where groups can be made: the parent folder in each controller's tree (in version 2 they are the same)."""

    version: int
    memory: Path
    pids: Path

    @property
    def folders(self) -> tuple[Path, ...]:
        """The parent folders, each once."""
        return tuple(dict.fromkeys((self.memory, self.pids)))


class NoCgroupError(Exception):
    """There is no place for groups; the message says what was tried and what the system answered."""


def find_place(process: Path = Path("/proc/self"), controllers: Sequence[str] = CONTROLLERS) -> Place:
    """The nearest place where groups with ``controllers`` can be made. Raises :class:`NoCgroupError`."""
    mounts = _mounts(process)
    own = _own_groups(process)
    if all(name in mounts and name in own for name in controllers):
        found = [_first_writable(_upwards(*mounts[name], own[name])) for name in controllers]
        return Place(version=1, memory=found[0], pids=found[-1])
    if "" in mounts and "" in own:
        folder = _first_delegating(list(_upwards(*mounts[""], own[""])), controllers)
        return Place(version=2, memory=folder, pids=folder)
    raise NoCgroupError("no cgroup file system with memory and pids is mounted")


class Group:
    """One slot's group; used by one jail at a time."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._bounds: tuple[int, int] | None = None
        name = f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        self._memory, self._pids = place.memory / name, place.pids / name
        self._locks: list[int] = []
        try:
            for folder in self._folders:
                self._locks.append(_make_locked(folder))
        except OSError:
            self.remove()
            raise

    def bound(self, memory_bytes: int, processes: int) -> None:
        """Set the bounds: bytes of everything together, and processes and threads."""
        if self._bounds == (memory_bytes, processes):
            return
        self._bounds = None
        if self._place.version == 1:
            self._bound_memory_v1(str(memory_bytes))
        else:
            _write(self._memory / "memory.max", str(memory_bytes))
            _write_if_there(self._memory / "memory.swap.max", "0")
        _write(self._pids / "pids.max", str(processes))
        self._bounds = (memory_bytes, processes)

    def attach(self, pid: int) -> None:
        """Move a process here; what it forks later is here too."""
        for folder in self._folders:
            _write(folder / "cgroup.procs", str(pid))

    @property
    def kills(self) -> int:
        """How often the kernel killed something here because memory ran out, ever."""
        name = "memory.oom_control" if self._place.version == 1 else "memory.events"
        for line in (self._memory / name).read_text(encoding="ascii").splitlines():
            key, _, value = line.partition(" ")
            if key == "oom_kill":
                return int(value)
        return 0

    @property
    def peak_bytes(self) -> int:
        """The most memory ever charged to this group; 0 where the kernel does not tell (version 2 before 5.19)."""
        name = "memory.max_usage_in_bytes" if self._place.version == 1 else "memory.peak"
        try:
            return int((self._memory / name).read_text(encoding="ascii"))
        except FileNotFoundError:
            return 0

    def remove(self) -> None:
        """End what is left in the group and remove it."""
        try:
            for folder in self._folders[: len(self._locks)]:
                _remove(folder)
        finally:
            while self._locks:
                os.close(self._locks.pop())

    @property
    def _folders(self) -> list[Path]:
        return list(dict.fromkeys((self._memory, self._pids)))

    def _bound_memory_v1(self, value: str) -> None:
        both = [self._memory / "memory.memsw.limit_in_bytes", self._memory / "memory.limit_in_bytes"]
        # Memory with swap must never be less than memory alone: grow from one end, shrink from the other.
        for path in (*both, both[0]):
            try:
                _write_if_there(path, value)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise


def sweep(place: Place) -> list[str]:
    """Remove the groups of owners that are gone; returns their names.

    Each half of a group has its own lock: owners in other groups may share the parent of one half only.
    """
    removed = set()
    for group in [path for parent in place.folders for path in parent.glob(f"{PREFIX}*")]:
        try:
            lock = _open(group)
        except OSError:
            continue
        try:
            if _locks(lock):
                _remove(group)
                removed.add(group.name)
        except OSError:
            continue  # another user's; its owner will sweep it
        finally:
            os.close(lock)
    return sorted(removed)


def _make_locked(group: Path) -> int:
    """Make a group and lock it, even if somebody takes it for an abandoned one in between; returns the lock."""
    while True:
        group.mkdir(exist_ok=True)  # it may be there still, in the hands of whoever sweeps it
        with suppress(FileNotFoundError):
            lock = _open(group)
            if _locks(lock) and group.exists():
                return lock
            os.close(lock)


def _open(group: Path) -> int:
    return os.open(group, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _locks(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove(group: Path) -> None:
    """Kill what is left in a group and remove it."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            group.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
        _kill_all(group)
        time.sleep(0.01)


def _kill_all(folder: Path) -> None:
    with suppress(OSError):
        if (folder / "cgroup.kill").exists():
            _write(folder / "cgroup.kill", "1")
            return
        for pid in (folder / "cgroup.procs").read_text(encoding="ascii").split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def _mounts(process: Path) -> dict[str, tuple[Path, PurePosixPath]]:
    """Controller (``""`` for version 2) to mount point and the group that is mounted there."""
    found: dict[str, tuple[Path, PurePosixPath]] = {}
    for line in (process / "mountinfo").read_text(encoding="utf-8").splitlines():
        before, _, after = line.partition(" - ")
        root, point = before.split()[3:5]
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup2":
            found.setdefault("", (Path(point), PurePosixPath(root)))
        elif kind == "cgroup":
            for option in options.split(","):
                found.setdefault(option, (Path(point), PurePosixPath(root)))
    return found


def _own_groups(process: Path) -> dict[str, PurePosixPath]:
    """Controller (``""`` for version 2) to the path of the group that the process is in."""
    own: dict[str, PurePosixPath] = {}
    for line in (process / "cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        for name in controllers.split(","):
            own[name] = PurePosixPath(path)
    return own


def _upwards(point: Path, root: PurePosixPath, group: PurePosixPath) -> Iterator[Path]:
    """The folder of a group and of each group above it, as far as they are mounted."""
    below = group.relative_to(root) if group.is_relative_to(root) else PurePosixPath()
    folder = point / below
    while True:
        yield folder
        if folder == point:
            return
        folder = folder.parent


def _first_writable(folders: Iterator[Path]) -> Path:
    refusals = []
    for folder in folders:
        try:
            _try_out(folder)
            return folder
        except OSError as error:
            refusals.append(f"{folder}: {error.strerror}")
    raise NoCgroupError(f"no cgroup can be made ({'; '.join(refusals)})")


def _first_delegating(folders: Sequence[Path], controllers: Sequence[str]) -> Path:
    """The first folder of version 2 whose children can be bounded."""
    refusals = []
    for folder in folders:
        try:
            _try_out(folder)
            missing = set(controllers) - set((folder / "cgroup.controllers").read_text(encoding="ascii").split())
            if missing:
                refusals.append(f"{folder}: {', '.join(sorted(missing))} is not delegated")
                continue
            _delegate(folder, controllers, alone=len(folders) == 1)
            return folder
        except OSError as error:
            refusals.append(f"{folder}: {error.strerror}")
    raise NoCgroupError(f"no cgroup can be made and bounded ({'; '.join(refusals)})")


def _delegate(folder: Path, controllers: Sequence[str], *, alone: bool) -> None:
    """Let children of ``folder`` be bounded.

    A group whose children are bounded may have no processes of its own. At the top of a container (``alone``) there is
    no group above to use instead, so its processes move to a child, as container engines do it for nested containers.
    """
    control = folder / "cgroup.subtree_control"
    if set(controllers) <= set(control.read_text(encoding="ascii").split()):
        return
    wanted = " ".join(f"+{name}" for name in controllers)
    try:
        _write(control, wanted)
    except OSError as error:
        if error.errno != errno.EBUSY or not alone:
            raise
        (folder / RESIDENCE).mkdir(exist_ok=True)
        for pid in (folder / "cgroup.procs").read_text(encoding="ascii").split():
            with suppress(ProcessLookupError):
                _write(folder / RESIDENCE / "cgroup.procs", pid)
        _write(control, wanted)


def _try_out(folder: Path) -> None:
    trial = folder / f"{PREFIX}trial-{secrets.token_hex(4)}"
    trial.mkdir()
    with suppress(FileNotFoundError):  # somebody swept it
        trial.rmdir()


def _write_if_there(path: Path, value: str) -> None:
    with suppress(FileNotFoundError):
        _write(path, value)


def _write(path: Path, value: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)
