"""Start one jail, hand it its job, read its reports, and leave nothing behind.

Everything here is synchronous and runs in a worker thread. The job travels in a memory file; reports come back over a
pipe that only process 1 of the jail holds. Process 1 waits for a word on the ``alive`` pipe, so that it is in its
cgroup, where there is one, before anything of the program runs. Two things end a jail early: killing bwrap's process
group (bwrap and process 1 are in it; the pid namespace dies with process 1), and the death of this process, which
process 1 sees as a hang-up on the ``alive`` pipe even when it comes too suddenly for anything else.
"""

from __future__ import annotations

import json
import marshal
import math
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from sandbox.inside import supervisor
from sandbox.jail.bubblewrap import Isolation
from sandbox.jail.cgroups import Group
from sandbox.jail.confinement import Confinement, remove_scratch, settings, tasks_of_this_user
from sandbox.jail.descriptors import descriptors, memory_file
from sandbox.jail.launch import Launch, in_bubblewrap, without_namespaces
from sandbox.limits import Limits

START_S = 30.0
GRACE_S = 15.0
FAILURE_CHARS = 1000
OUT_OF_MEMORY = 255  # a cause that is seen from out here: the supervisor's own are the small numbers
PYTHON_FLAGS = ("-s", "-S", "-P", "-B", "-X", "utf8", "-X", "frozen_modules=on")

# The job file holds a marshalled ([(module name, code), ...], job). Marshal is safe here: it goes in, never out.
BOOT = """
import marshal, sys
with open(int(sys.argv[1]), "rb") as file:
    modules, job = marshal.load(file)
for name, code in modules:
    module = sys.modules[name] = type(sys)(name)
    exec(code, module.__dict__)
sys.modules["sandbox.inside.supervisor"].main(job, module.run_test, int(sys.argv[2]), int(sys.argv[3]))
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What one test left behind, before anybody judges it. Times in seconds, memory in KiB."""

    index: int
    cause: int
    soiled: bool
    wait_status: int
    wall_s: float
    cpu_s: float
    peak_kib: int
    answer: bytes
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """What a jail is to do.

    harness: module of ``sandbox.inside`` whose ``run_test`` runs a test. payload: its inputs, of types that marshal
    knows; ``payload["tests"]`` is the list of tests. files: read-only files, by their absolute path in the jail.
    mounts: folders of this machine, likewise.
    packages: whether the environment's installed packages are mounted.
    """

    harness: str
    payload: Mapping[str, Any]
    limits: Limits
    files: Mapping[str, bytes] = field(default_factory=dict)
    mounts: Mapping[str, str] = field(default_factory=dict)
    packages: bool = False

    @property
    def count(self) -> int:
        return len(self.payload["tests"])


class JailError(Exception):
    """The jail broke, not the program: it did not start, died, or fell silent."""


class Jail:
    """One jail for tests ``first`` and up of a job; :meth:`run` once, :meth:`kill` from any thread."""

    def __init__(
        self, isolation: Isolation | Confinement, job: Job, *, first: int, uid: int, group: Group | None = None
    ) -> None:
        self._isolation, self._job, self._first, self._uid, self._group = isolation, job, first, uid, group
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._scratch: Path | None = None
        self._killed = False

    def run(self) -> Iterator[Report]:
        """Yield one report per test, in order; ends early after a test that soiled the scratch space.

        Raises :class:`JailError` with the reason.
        """
        with descriptors() as held:
            report_read, report_write = os.pipe()
            alive_read, alive_write = os.pipe()
            info_read, info_write = os.pipe()
            held += [report_read, report_write, alive_read, alive_write, info_read, info_write]
            errors = memory_file(b"", held)
            try:
                self._start(held, errors, alive_read, report_write, info_write)
                for descriptor in (report_write, info_write):
                    os.close(descriptor)
                    held.remove(descriptor)
                kills = self._enclose(info_read)
                os.write(alive_write, supervisor.GO)
                yield from self._reports(report_read, kills)
            except JailError as failure:
                said = os.pread(errors, FAILURE_CHARS, 0).decode("utf-8", "replace").strip()
                raise JailError(f"{failure}: {said}" if said else str(failure)) from None
            finally:
                self._finish()

    def kill(self) -> None:
        """End the jail now, or keep it from starting."""
        with self._lock:
            self._killed = True
            if self._process is not None and self._process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)

    def _enclose(self, info: int) -> int:
        """Put process 1 of the jail into its group; how often the kernel killed something in that group before."""
        if self._group is None:
            return 0
        limits = self._job.limits
        pid = _pid_from(info)
        try:
            self._group.bound(limits.memory_mb << 20, limits.processes + 1)  # the supervisor counts too
            self._group.attach(pid)
            return self._group.kills
        except OSError as error:
            raise JailError(f"the jail cannot be put into its cgroup: {error}") from error

    def _start(self, held: list[int], errors: int, alive: int, report: int, info: int) -> None:
        job_fd = memory_file(self._marshalled(), held)
        launch = self._launch(held, info)
        self._scratch = launch.scratch
        argv = [*launch.argv, *PYTHON_FLAGS, "-c", BOOT, str(job_fd), str(alive), str(report)]
        with self._lock:
            if self._killed:
                raise JailError("cancelled")
            try:
                # Without preexec_fn, user= and the like this is a vfork: its cost does not grow with this process.
                self._process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    cwd=launch.scratch,
                    env=launch.environment,
                    pass_fds=[*launch.passed, job_fd, alive, report],
                    start_new_session=True,
                )
            except OSError as error:
                raise JailError(f"{argv[0]} does not start: {error}") from error

    def _launch(self, held: list[int], info: int) -> Launch:
        if isinstance(self._isolation, Confinement):
            if self._job.files or self._job.packages:
                raise JailError("tier confined cannot show files to a program; use a tier from jail up")
            return without_namespaces(self._isolation, uid=self._uid, held=held)
        return in_bubblewrap(
            self._isolation,
            uid=self._uid,
            tmpfs_mb=self._job.limits.tmpfs_mb,
            files=self._job.files,
            mounts=self._job.mounts,
            packages=self._job.packages,
            info_fd=info,
            held=held,
        )

    def _marshalled(self) -> bytes:
        limits, payload = self._job.limits, self._job.payload
        modules = dict.fromkeys(("supervisor", "harness", self._job.harness))
        confinement = None
        if isinstance(self._isolation, Confinement):
            modules = {"confinement": None, **modules}
            confinement = settings(limits)
        job = {
            **payload,
            "confinement": confinement,
            "first": self._first,
            "uid": self._uid if self._isolation.privileged else None,
            "wall_s": float(limits.wall_s),
            "output_bytes": limits.output_kb << 10,
            "rlimits": rlimits(limits, 0 if self._has_own_uid() else tasks_of_this_user()),
        }
        return marshal.dumps(([(f"sandbox.inside.{name}", inside_code(name)) for name in modules], job))

    def _reports(self, pipe: int, kills: int) -> Iterator[Report]:
        reader = _Reader(pipe)
        reader.deadline = time.monotonic() + START_S
        index = None
        try:
            if reader.take(len(supervisor.READY)) != supervisor.READY:
                raise JailError("the jail answered nonsense at its start")
            for index in range(self._first, self._job.count):
                reader.deadline = time.monotonic() + self._job.limits.wall_s + GRACE_S
                report = self._read_report(reader, index)
                if self._group is not None and self._group.kills > kills:
                    kills = self._group.kills
                    report = replace(report, cause=OUT_OF_MEMORY)
                yield report
                if report.soiled:
                    return
        except JailError:
            if index is None or self._group is None or self._group.kills == kills:
                raise
            yield _killed_with_its_jail(index)

    def _read_report(self, reader: _Reader, index: int) -> Report:
        header = reader.take(supervisor.HEADER.size)
        cause, soiled, status, wall_s, cpu_s, peak, *lengths = supervisor.HEADER.unpack(header)
        output = self._job.limits.output_kb << 10
        caps = (self._job.payload["answer_bytes"], output, output)
        if any(length > cap for length, cap in zip(lengths, caps, strict=True)):
            raise JailError("the jail reports more output than it may keep")
        answer, stdout, stderr = (reader.take(length) for length in lengths)
        return Report(
            index=index,
            cause=cause,
            soiled=bool(soiled),
            wait_status=status,
            wall_s=wall_s,
            cpu_s=cpu_s,
            peak_kib=peak,
            answer=answer,
            stdout=stdout,
            stderr=stderr,
        )

    def _has_own_uid(self) -> bool:
        """Whether the kernel counts this jail's processes apart from everybody else's."""
        return not isinstance(self._isolation, Confinement) or self._isolation.privileged

    def _finish(self) -> None:
        """The last report has been read, or none will be: nothing in the jail is worth waiting for."""
        if self._process is not None:
            _wait(self._process, 0.2)
            self.kill()
            self._process.wait()
            _bury(self._process.pid)
        if self._scratch is not None:
            remove_scratch(self._scratch)


def _wait(process: subprocess.Popen[bytes], patience_s: float) -> None:
    """Wait until a process has ended, without the polling of ``Popen.wait``; it is left to be reaped."""
    handle = os.pidfd_open(process.pid)
    try:
        poller = select.poll()
        poller.register(handle, select.POLLIN)
        poller.poll(patience_s * 1000)
    finally:
        os.close(handle)


def _bury(group: int) -> None:
    """Reap what is left of a process group that was killed, where it is ours to reap.

    The children of a killed process go to process 1. In a container that may be this very process, and then nobody else
    would ever reap them.
    """
    deadline = time.monotonic() + 1.0
    while time.monotonic() < deadline:
        try:
            if os.waitpid(-group, os.WNOHANG)[0] == 0:
                time.sleep(0.001)
        except ChildProcessError:
            return


def _killed_with_its_jail(index: int) -> Report:
    """What is left of a test when the kernel, out of the jail's memory, chose process 1 to kill."""
    return Report(
        index=index,
        cause=OUT_OF_MEMORY,
        soiled=True,
        wait_status=signal.SIGKILL,
        wall_s=0.0,
        cpu_s=0.0,
        peak_kib=0,
        answer=b"",
        stdout=b"",
        stderr=b"",
    )


def _pid_from(info: int) -> int:
    """The pid, out here, of a jail's process 1, from what bwrap writes about it."""
    said = b""
    poller = select.poll()
    poller.register(info, select.POLLIN)
    while not said.rstrip().endswith(b"}"):
        chunk = os.read(info, 4096) if poller.poll(START_S * 1000) else b""
        if not chunk:
            raise JailError("bwrap ended, or fell silent, before there was a jail")
        said += chunk
    return int(json.loads(said)["child-pid"])


class _Reader:
    """Exact reads from a pipe until a deadline."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._poller = select.poll()
        self._poller.register(pipe, select.POLLIN)
        self.deadline = 0.0

    def take(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            left = self.deadline - time.monotonic()
            if left <= 0 or not self._poller.poll(left * 1000):
                raise JailError("the jail fell silent")
            chunk = os.read(self._pipe, count - len(data))
            if not chunk:
                raise JailError("the jail ended without a report")
            data += chunk
        return bytes(data)


def rlimits(limits: Limits, others: int = 0) -> list[tuple[str, int, int]]:
    """Resource limits of every process of a test, set inside the jail: name, soft limit, hard limit.

    others: processes and threads outside the jail that the kernel counts with those inside, if it does.
    The soft CPU limit sends SIGXCPU, which tells a CPU limit from other deaths; the hard one is for who ignores that.
    """
    cpu_s = math.ceil(limits.cpu_s)
    equal = [
        ("RLIMIT_AS", limits.memory_mb << 20),
        ("RLIMIT_NPROC", limits.processes + 1 + others),  # the supervisor counts too
        ("RLIMIT_FSIZE", limits.tmpfs_mb << 20),
        ("RLIMIT_NOFILE", 256),
        ("RLIMIT_STACK", 8 << 20),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_MEMLOCK", 64 << 10),
        ("RLIMIT_MSGQUEUE", 0),
    ]
    return [("RLIMIT_CPU", cpu_s, cpu_s + 1), *((name, value, value) for name, value in equal)]


@cache
def inside_code(name: str) -> Any:
    """A module of ``sandbox.inside``, compiled once."""
    source = resources.files("sandbox.inside").joinpath(f"{name}.py").read_text(encoding="utf-8")
    return compile(source, f"<{name}>", "exec", dont_inherit=True, optimize=2)
