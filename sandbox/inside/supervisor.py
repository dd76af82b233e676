"""Process 1 of a jail: forks one process per test, bounds it, measures it, and reports what it left.

Theory of operation. No line of the candidate runs in this process: each test forks, and only the fork compiles and
calls the candidate. What the fork can do to this process is limited from several sides:

- it is process 1 of its pid namespace with default signal dispositions, so the kernel drops every signal sent to it
  from inside, SIGKILL too;
- it is not dumpable, so its memory and descriptors cannot be opened through /proc, and the seccomp filter denies
  ptrace, process_vm_*, pidfd_getfd and prlimit on another process;
- after each test everything else in the namespace is killed and reaped, so nothing of one test is alive during the
  next. If a test left files behind, the jail is given up and the launcher starts a fresh one for the remaining tests.

The report pipe is closed in the fork before candidate code runs. So a candidate can write any *answer* to its own
test, which is as good as returning it, and nothing else. Not covered here: the expected answers are never in the jail.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the signal module would import enum
import _sitebuiltins
import builtins
import gc
import os
import resource
import select
import struct
import sys
import time

TYPE_CHECKING = False  # importing it from typing would cost every jail 15 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Job = dict[str, Any]

# cause, soiled, wait status, wall seconds, CPU seconds, peak KiB, length of answer, stdout, stderr
HEADER = struct.Struct("<BBiddQIII")
FINISHED, TIMED_OUT, TOO_MUCH_OUTPUT, TOO_LARGE_AN_ANSWER, TOO_MANY_FILES = range(5)
READY, GO = b"ready\n", b"!"

SCRATCH = "/tmp"
CONFINEMENT = "sandbox.inside.confinement"  # loaded only where there are no namespaces
ANSWER_FD = 3
# The scratch space is bounded in bytes by its mount, but an empty file costs kernel memory that no mount option of
# bwrap bounds: so files are counted while a test runs.
MAX_FILES = 4096
LOOK_EVERY_S = 0.05
PR_SET_DUMPABLE = 4


def main(job: Job, run_test: Callable[[Job, int, int], None], alive: int, report: int) -> None:
    """Run the job's tests in order and write one report each; ends the process."""
    confinement = sys.modules.get(CONFINEMENT)
    if confinement is not None:
        confinement.confine(job)
    become_unprivileged(job["uid"])
    set_dumpable(False)
    for number in range(1, _signal.NSIG):
        if _signal.getsignal(number) not in (_signal.SIG_DFL, _signal.SIG_IGN, None):
            _signal.signal(number, _signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(job["environment"])
    # The site module, which defines these, is not loaded; programs use them.
    for name in ("exit", "quit"):
        setattr(builtins, name, _sitebuiltins.Quitter(name, ""))
    for name in job["preload"]:
        __import__(name)
    gc.freeze()
    write_all(report, READY)
    if os.read(alive, len(GO)) != GO:
        os._exit(0)  # the launcher is gone
    for index in range(job["first"], len(job["tests"])):
        trial = Trial(job, index, alive)
        header, parts = trial.run(run_test)
        write_all(report, header + b"".join(parts))
        if trial.soiled:
            break
    os._exit(0)


def become_unprivileged(uid: int | None) -> None:
    """Give up root for good; the jail was started as root if ``uid`` is a number."""
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


def set_dumpable(dumpable: bool) -> None:
    """Open or close this process's memory and descriptors to other processes of the same user."""
    # The ctypes package would cost 7 ms of every jail, the extension module below it costs 1.
    import _ctypes

    prctl = _ctypes.dlsym(_ctypes.dlopen("", 0), "prctl")
    if _ctypes.call_function(prctl, (PR_SET_DUMPABLE, int(dumpable), 0, 0, 0)) != 0:
        raise OSError("prctl(PR_SET_DUMPABLE) failed")


def is_soiled() -> bool:
    """Whether a test left anything in the scratch space, or closed it."""
    try:
        return bool(os.listdir("."))
    except OSError:
        return True


def files_made(job: Job) -> int:
    """Files and folders in the scratch space."""
    if CONFINEMENT in sys.modules:
        return int(sys.modules[CONFINEMENT].files_made(job, MAX_FILES + 1))
    space = os.statvfs(SCRATCH)
    return space.f_files - space.f_ffree


def set_limit(number: int, soft: int, hard: int) -> None:
    """Set a resource limit, or keep what the system allows where that is less."""
    ceiling = resource.getrlimit(number)[1]
    if ceiling != resource.RLIM_INFINITY:
        soft, hard = min(soft, ceiling), min(hard, ceiling)
    resource.setrlimit(number, (soft, hard))


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte, however the pipe splits it."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


class Stream:
    """One pipe out of a test, kept up to ``cap`` bytes; ``overflowed`` once there was more."""

    def __init__(self, cap: int) -> None:
        self.read_end, self.write_end = os.pipe()
        os.set_blocking(self.read_end, False)
        self.cap = cap
        self.data = bytearray()
        self.overflowed = False
        self.open = True

    def pump(self) -> None:
        """Take what is there now."""
        while self.open:
            try:
                chunk = os.read(self.read_end, 65536)
            except BlockingIOError:
                return
            if not chunk:
                self.open = False
                return
            room = self.cap - len(self.data)
            self.data += chunk[:room]
            if len(chunk) > room:
                self.overflowed = True
                return


class Trial:
    """One fork of this process that runs one test."""

    def __init__(self, job: Job, index: int, alive: int) -> None:
        self.job, self.index, self.alive = job, index, alive
        self.stdin: bytes = job["tests"][index]["stdin"]
        self.answer = Stream(job["answer_bytes"])
        self.stdout, self.stderr = Stream(job["output_bytes"]), Stream(job["output_bytes"])
        self.cause = FINISHED
        self.soiled = False
        self.pid = self.status = 0
        self.cpu = 0.0
        self.peak = 0

    def run(self, run_test: Callable[[Job, int, int], None]) -> tuple[bytes, list[bytes]]:
        """Fork, watch, kill what is left; returns the packed header and the bytes that follow it."""
        stdin_read, stdin_write = os.pipe()
        start = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            self.become_test(stdin_read, run_test)
        os.close(stdin_read)
        streams = (self.answer, self.stdout, self.stderr)
        for stream in streams:
            os.close(stream.write_end)
        self.watch(start + self.job["wall_s"], stdin_write)
        self.reap_all()
        wall = time.monotonic() - start
        for stream in streams:
            stream.pump()
            os.close(stream.read_end)
        self.note_excess()
        parts = [bytes(stream.data) for stream in streams]
        self.soiled = is_soiled()
        numbers = (self.cause, self.soiled, self.status, wall, self.cpu, self.peak)
        return HEADER.pack(*numbers, *map(len, parts)), parts

    def become_test(self, stdin: int, run_test: Callable[[Job, int, int], None]) -> None:
        """In the fork: nothing of the supervisor stays reachable, then the limits, then the candidate."""
        try:
            if CONFINEMENT not in sys.modules:  # there, killing the group is what ends everything
                os.setsid()
            os.dup2(stdin, 0)
            os.dup2(self.stdout.write_end, 1)
            os.dup2(self.stderr.write_end, 2)
            os.dup2(self.answer.write_end, ANSWER_FD, inheritable=False)
            kept = self.job.get("kept", ANSWER_FD)
            os.closerange(ANSWER_FD + 1, kept)
            os.closerange(kept + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])  # the report pipe too
            set_dumpable(True)  # so that /dev/stdin and the like open; the supervisor stays closed
            for name, soft, hard in self.job["rlimits"]:
                set_limit(getattr(resource, name), soft, hard)
            if "random" in sys.modules:
                sys.modules["random"].seed(0)  # so that a program is judged the same way again
            if CONFINEMENT in sys.modules:
                sys.modules[CONFINEMENT].enter_test(self.job)
            run_test(self.job, self.index, ANSWER_FD)
        finally:
            os._exit(70)

    def watch(self, deadline: float, stdin: int) -> None:
        """Move bytes until the test's first process ends, time is up, or it said too much."""
        os.set_blocking(stdin, False)
        process = os.pidfd_open(self.pid)
        poller = select.poll()
        poller.register(process, select.POLLIN)
        poller.register(self.alive, 0)
        poller.register(stdin, select.POLLOUT)
        streams = {stream.read_end: stream for stream in (self.answer, self.stdout, self.stderr)}
        for descriptor in streams:
            poller.register(descriptor, select.POLLIN)
        running = True
        while running:
            left = deadline - time.monotonic()
            if left <= 0:
                self.cause = TIMED_OUT
                break
            if files_made(self.job) > MAX_FILES:
                break
            for descriptor, _ in poller.poll(min(left, LOOK_EVERY_S) * 1000 + 1):
                if descriptor == process:
                    running = False
                elif descriptor == self.alive:
                    os._exit(0)  # the launcher is gone; the namespace dies with process 1
                elif descriptor == stdin:
                    if self.feed(stdin):
                        poller.unregister(stdin)
                        os.close(stdin)
                        stdin = -1
                elif self.pump(streams[descriptor], poller):
                    running = False
        os.close(process)
        if stdin >= 0:
            os.close(stdin)

    def feed(self, stdin: int) -> bool:
        """Write some input; true when there is no more to write or nobody to read it."""
        try:
            self.stdin = self.stdin[os.write(stdin, self.stdin) :]
        except BlockingIOError:
            return False
        except BrokenPipeError:
            return True
        return not self.stdin

    def pump(self, stream: Stream, poller: select.poll) -> bool:
        """Read from one stream; true when that ends the test."""
        stream.pump()
        if stream.overflowed and self.job["keep_going"] and stream is not self.answer:
            stream.overflowed = False
            return False
        if not stream.open:
            poller.unregister(stream.read_end)
        return stream.overflowed

    def note_excess(self) -> None:
        """Too much of something decides the cause; output that is only for people may overflow."""
        if self.answer.overflowed:
            self.cause = TOO_LARGE_AN_ANSWER
        elif (self.stdout.overflowed or self.stderr.overflowed) and not self.job["keep_going"]:
            self.cause = TOO_MUCH_OUTPUT
        elif files_made(self.job) > MAX_FILES:
            self.cause = TOO_MANY_FILES

    def reap_all(self) -> None:
        """Kill and reap everything else in the namespace, and add up what it used."""
        # A fork in progress either sees the signal or is not yet visible to be missed: kill(-1) holds the task list.
        try:  # noqa: SIM105 (contextlib is one more import in every jail)
            # Without namespaces -1 would be everything of this user; but there a test is one process.
            os.kill(self.pid if CONFINEMENT in sys.modules else -1, _signal.SIGKILL)
        except ProcessLookupError:
            pass
        while True:
            try:
                pid, status, usage = os.wait4(-1, 0)
            except ChildProcessError:
                return
            self.cpu += usage.ru_utime + usage.ru_stime
            self.peak = max(self.peak, usage.ru_maxrss)
            if pid == self.pid:
                self.status = status


if sys.platform != "linux":
    raise ImportError("the sandbox runs on Linux only")
