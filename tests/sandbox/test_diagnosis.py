"""What is told about a machine: each part by itself, and what to do where one is missing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sandbox import Tier
from sandbox.jail import diagnosis, probe, seccomp
from sandbox.jail.bubblewrap import Isolation
from sandbox.jail.cgroups import NoCgroupError, Place
from sandbox.jail.diagnosis import Finding, diagnose
from sandbox.jail.probe import find_isolation
from tests.sandbox.ordinary_user import run_as
from tests.sandbox.test_users import AS_ROOT, view

__all__ = ["view"]


def parts() -> dict[str, Finding]:
    return {finding.name: finding for finding in diagnose().findings}


def test_this_machine_is_described_as_it_is() -> None:
    found = diagnose()

    assert found.tier == find_isolation().tier >= Tier.JAIL
    assert found.machine.startswith("a ")
    for finding in found.findings:
        assert finding.detail
        assert finding.ok or finding.fix, finding
        assert not (finding.ok and finding.fix), finding


def test_without_bwrap_only_confinement_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (probe, diagnosis):
        monkeypatch.setattr(module, "installed_bubblewraps", lambda: iter(()))

    found = diagnose()

    assert found.tier is Tier.CONFINED
    assert "bubblewrap" in parts()["bubblewrap"].fix
    assert not parts()["cgroup"].ok


@pytest.mark.parametrize(
    ("container", "uid", "fix"),
    [(True, 0, "--cgroupns=private"), (False, 0, "remount,rw"), (False, 1000, "systemd-run --user --scope")],
    ids=["container", "bare host", "laptop user"],
)
def test_the_way_to_a_cgroup_fits_the_machine(
    container: bool, uid: int, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere() -> Place:
        raise NoCgroupError("not for you")

    monkeypatch.setattr(probe, "find_place", nowhere)
    monkeypatch.setattr(probe, "in_container", lambda: container)
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    jail = Isolation(bwrap=Path("/nonexistent"), privileged=False, demoted=False, proc=True)  # none is started

    finding = diagnosis._cgroup(jail)

    assert not finding.ok
    assert finding.detail == "not for you"
    assert fix in finding.fix


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(**_: bool) -> bytes:
        raise diagnosis.SandboxUnavailable("libseccomp is missing", "apt install libseccomp2")

    monkeypatch.setattr(seccomp, "compiled_filter", missing)

    finding = diagnosis._seccomp()

    assert (finding.ok, finding.detail, finding.fix) == (False, "libseccomp is missing", "apt install libseccomp2")


@AS_ROOT
def test_an_ordinary_user_is_told_what_is_missing(view: Path) -> None:
    code = """
import json
from dataclasses import asdict
from sandbox.jail.diagnosis import diagnose
print(json.dumps(asdict(diagnose())))
"""
    done = run_as("ordinary", view, ["-c", code], timeout=60)

    found = json.loads(done.stdout)
    named = {finding["name"]: finding for finding in found["findings"]}
    assert found["tier"] == "jail", done.stderr[-2000:]
    assert named["namespaces"]["detail"].startswith("through a user namespace")
    assert named["confinement"]["ok"]
    assert not named["cgroup"]["ok"]
    assert named["cgroup"]["fix"]
