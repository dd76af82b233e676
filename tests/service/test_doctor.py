"""``vpo doctor``: what it prints, how it ends, and that it keeps secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sandbox.jail.diagnosis import Diagnosis, Finding
from sandbox.tiers import Tier
from service.cli import main
from service.settings import Settings

FINDING = Finding(name="namespaces", ok=False, tier=Tier.JAIL, detail="bwrap: [no]", fix="sudo sysctl -w x=1")


def run(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main(["doctor", *options])
    assert isinstance(ended.value.code, int)
    return ended.value.code, capsys.readouterr().out


def pretend(monkeypatch: pytest.MonkeyPatch, tier: Tier) -> None:
    found = Diagnosis(machine="a host, as root", tier=tier, findings=(FINDING,))
    monkeypatch.setattr("service.cli.doctor.diagnose", lambda: found)


def test_this_machine_is_fine(capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = run(capsys, "--json")
    found: dict[str, Any] = json.loads(printed)

    assert code == 0
    assert found["ok"] is True
    assert found["tier"] in ("jail", "full")
    assert {"bubblewrap", "namespaces", "cgroup", "Landlock", "seccomp"} <= {part["name"] for part in found["sandbox"]}
    assert {part["name"] for part in found["service"]} == {"database", "Redis", "model server"}


@pytest.mark.parametrize(("minimum", "code"), [("jail", 1), ("full", 1), ("confined", 0)])
def test_it_ends_with_1_below_the_minimum_tier(
    minimum: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VPO_MIN_TIER", minimum)
    pretend(monkeypatch, Tier.CONFINED)

    ended, printed = run(capsys)

    assert ended == code
    assert "sudo sysctl -w x=1" in printed
    assert "bwrap: [no]" in printed
    assert ("nothing will be run" in printed) == (code == 1)


def test_servers_that_do_not_answer_are_named_without_their_secrets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://somebody:secret-pw@127.0.0.1:9/x")
    monkeypatch.setenv("REDIS_URL", "redis://:secret-pw@127.0.0.1:9/0")
    pretend(monkeypatch, Tier.FULL)

    code, printed = run(capsys)

    assert code == 0
    assert "DATABASE_URL does not answer" in printed
    assert "REDIS_URL does not answer" in printed
    assert "secret-pw" not in printed


def test_no_isolation_is_no_setting(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("VPO_MIN_TIER", "none")

    assert run(capsys)[0] == 2
    monkeypatch.setenv("VPO_MIN_TIER", "confined")
    assert Settings().min_tier is Tier.CONFINED
