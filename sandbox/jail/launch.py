"""What to start for a jail of each kind: the command line up to the interpreter, environment, descriptors, folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from sandbox.jail import bubblewrap, seccomp
from sandbox.jail.bubblewrap import Isolation
from sandbox.jail.confinement import Confinement, make_scratch
from sandbox.jail.descriptors import memory_file
from sandbox.jail.interpreter import base_interpreter, running_interpreter


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """argv: up to and including the interpreter. environment: of the launcher itself; a jail's process 1 may keep it.

    passed: descriptors that the command line names. scratch: a folder to start in, and to remove afterwards.
    """

    argv: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    passed: list[int] = field(default_factory=list)
    scratch: Path | None = None


def in_bubblewrap(
    isolation: Isolation,
    *,
    uid: int,
    tmpfs_mb: int,
    files: Mapping[str, bytes],
    mounts: Mapping[str, str],
    packages: bool,
    info_fd: int,
    held: list[int],
) -> Launch:
    """A jail with namespaces; ``files`` and ``mounts`` (by absolute path) and packages appear in it, read-only."""
    passed = [memory_file(seccomp.compiled_filter(), held), info_fd]
    argv = bubblewrap.command(
        isolation, running_interpreter(), uid=uid, tmpfs_mb=tmpfs_mb, seccomp_fd=passed[0], info_fd=info_fd
    )
    if packages:
        argv += bubblewrap.package_mounts()
    parents = {str(folder) for path in (*files, *mounts) for folder in PurePosixPath(path).parents}
    argv += bubblewrap.folders(sorted(parents - {"/"}))
    for path, data in files.items():
        passed.append(memory_file(data, held))
        argv += ["--perms", "0555", "--ro-bind-data", str(passed[-1]), path]
    for path, folder in mounts.items():
        argv += ["--ro-bind", folder, path]
    return Launch(argv=[*argv, "--remount-ro", "/", running_interpreter().executable], passed=passed)


def without_namespaces(confinement: Confinement, *, uid: int, held: list[int]) -> Launch:
    """The bare interpreter in a scratch folder; it confines itself."""
    base, executable = base_interpreter()
    return Launch(
        argv=[str(executable)],
        environment={"PYTHONHASHSEED": "0", "LD_LIBRARY_PATH": str(base / "lib")},
        scratch=make_scratch(uid, held, privileged=confinement.privileged),
    )
