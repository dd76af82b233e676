"""In a jail without namespaces: what the kernel still lets an ordinary process give up for good.

Loaded only in tier ``confined``. The supervisor, before it gives up root, shuts itself and all that it will fork into
Landlock: it may read the system and the interpreter, and write its scratch folder, and nothing else has an inode for
it. Each test then takes the seccomp filter that leaves it no fork, no signal to anybody and no socket. So there is no
process but the test itself to reap, and the supervisor is out of its reach.

NOT covered (see docs/sandbox.md): names and sizes of files outside can be asked for, and memory is bounded only by the
address space.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
RULE_PATH_BENEATH = 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_CHAR, MAKE_SOCK, MAKE_BLOCK = 1 << 6, 1 << 9, 1 << 11
TRUNCATE = 1 << 14
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # version of Landlock: number of rights on files that it knows
ALL_TCP, ALL_SCOPES = 0b11, 0b11
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 22, 38
SECCOMP_MODE_FILTER = 2
SIGKILL = 9
KEPT_FROM = 10

libc = ctypes.CDLL(None, use_errno=True)


class Program(ctypes.Structure):
    """``struct sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def confine(job: dict[str, Any]) -> None:
    """Shut this process and its descendants into Landlock; the working directory is the scratch folder."""
    settings = job["confinement"]
    job["supervisor"] = os.getpid()
    if "HOME" in job["environment"]:
        job["environment"] |= {"HOME": os.getcwd(), "TMPDIR": os.getcwd()}
    if settings["hidden"]:
        job["kept"] = reroute(settings["base"])
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    abi = call(CREATE_RULESET, None, 0, 1)
    rights = (1 << FILE_RIGHTS.get(abi, 16)) - 1
    attributes = struct.pack("QQQ", rights, ALL_TCP, ALL_SCOPES)[: 8 if abi < 4 else 16 if abi < 6 else 24]
    ruleset = call(CREATE_RULESET, attributes, len(attributes), 0)
    for path in settings["readable"]:
        allow(ruleset, path, rights & (READ_FILE | READ_DIR))
    for path in settings["devices"]:
        allow(ruleset, path, rights & (READ_FILE | WRITE_FILE | TRUNCATE))
    allow(ruleset, ".", rights & ~(EXECUTE | MAKE_CHAR | MAKE_SOCK | MAKE_BLOCK))
    call(RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def enter_test(job: dict[str, Any]) -> None:
    """In the fork of a test, last of all: die with the supervisor, and take the filter."""
    prctl(PR_SET_PDEATHSIG, SIGKILL)
    if os.getppid() != job["supervisor"]:
        os._exit(70)  # it died before the line above
    code: bytes = job["confinement"]["filter"]
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(Program(len(code) // 8, code)))


def files_made(job: dict[str, Any], too_many: int) -> int:
    """Files and folders in the scratch folder; ``too_many`` where they hold more bytes than they may."""
    count = size = 0
    folders = ["."]
    while folders and count < too_many:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    count += 1
                    size += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            continue  # gone meanwhile
        except OSError:
            return too_many  # closed by the test, or deeper than a path can say: whatever is in there
    return too_many if size > job["confinement"]["scratch_bytes"] else count


def reroute(base: str) -> int:
    """Import from the interpreter's folder through a descriptor: a home of mode 0700 hides it once root is given up."""
    opened = os.open(base, os.O_PATH | os.O_DIRECTORY)
    descriptor = fcntl.fcntl(opened, fcntl.F_DUPFD, KEPT_FROM)  # above those that a test has at fixed numbers
    os.close(opened)
    there = f"/proc/self/fd/{descriptor}"
    sys.path[:] = [path.replace(base, there, 1) for path in sys.path]
    for module in list(sys.modules.values()):
        path = getattr(module, "__path__", None)
        if isinstance(path, list):
            path[:] = [part.replace(base, there, 1) for part in path]
    sys.path_importer_cache.clear()
    return descriptor


def allow(ruleset: int, path: str, rights: int) -> None:
    """Allow ``rights`` on everything below ``path``, if it is there."""
    try:
        descriptor = os.open(path, os.O_PATH)
    except FileNotFoundError:
        return
    try:
        if not os.path.isdir(path):
            rights &= EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE
        rule = struct.pack("=Qi", rights, descriptor)
        call(ADD_RULE, ruleset, RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(descriptor)


def call(number: int, *arguments: Any) -> int:
    """A Landlock system call. Raises :class:`OSError`."""
    result: int = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"Landlock is not available: {os.strerror(ctypes.get_errno())}")
    return result


def prctl(option: int, value: int, argument: Any = 0) -> None:
    """``prctl``. Raises :class:`OSError`."""
    pointer = argument if argument else ctypes.c_ulong(0)
    if libc.prctl(option, ctypes.c_ulong(value), pointer, ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed: {os.strerror(ctypes.get_errno())}")
