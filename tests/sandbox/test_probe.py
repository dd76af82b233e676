"""Refusing to run where isolation cannot be had, with the reason and the fix."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import CallTest, Sandbox, SandboxUnavailable
from sandbox.jail import bubblewrap, probe
from sandbox.jail.probe import advice, find_isolation, try_out


def fake_bwrap(folder: Path, script: str) -> Path:
    path = folder / "bwrap"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def use_only(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> None:
    def installed() -> Iterator[Path]:
        yield from paths

    monkeypatch.setattr(probe, "installed_bubblewraps", installed)


def test_this_machine_can_isolate() -> None:
    assert try_out(find_isolation()) is None


async def test_without_bwrap_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    use_only(monkeypatch)
    sandbox = Sandbox()

    with pytest.raises(SandboxUnavailable, match="there is no bwrap") as caught:
        await sandbox.check()
    with pytest.raises(SandboxUnavailable):
        await sandbox.grade_calls("def f(): return 1", "f", [CallTest(name="t", expected=1)])
    await sandbox.close()

    assert "bubblewrap" in caught.value.fix


async def test_a_bwrap_that_may_not_isolate_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_only(monkeypatch, fake_bwrap(tmp_path, 'echo "bwrap: No permissions to create a new namespace" >&2; exit 1'))

    with pytest.raises(SandboxUnavailable) as caught:
        find_isolation()

    assert "No permissions to create a new namespace" in caught.value.reason
    assert caught.value.fix


def test_a_bwrap_that_does_not_isolate_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Runs the program outside any jail: the canary must notice.
    script = 'while [ "$1" != "-s" ]; do python="$1"; shift; done; exec "$(command -v python3)" "$@"'
    use_only(monkeypatch, fake_bwrap(tmp_path, f"PATH=/usr/local/bin:/usr/bin:/bin; {script}"))

    with pytest.raises(SandboxUnavailable):
        find_isolation()


def test_the_next_bwrap_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    works = find_isolation().bwrap
    use_only(monkeypatch, fake_bwrap(tmp_path, "exit 1"), works)

    assert find_isolation().bwrap == works


def test_the_systems_bwrap_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = fake_bwrap(tmp_path, "exit 1")
    monkeypatch.setenv("PATH", str(tmp_path))

    found = list(bubblewrap.installed_bubblewraps())

    assert found[0] == mine


@pytest.mark.parametrize(
    ("setting", "value", "fix"),
    [
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "apparmor_restrict_unprivileged_userns=0"),
        ("kernel/unprivileged_userns_clone", "0", "unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "max_user_namespaces="),
        ("nothing", "", "user namespaces"),
    ],
)
def test_the_advice_fits_the_machine(setting: str, value: str, fix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "in_container", lambda: False)
    monkeypatch.setattr(probe, "_setting", lambda name: value if name == setting else None)

    assert fix in advice("bwrap: no")


def test_the_advice_in_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "in_container", lambda: True)

    assert "--cap-add SYS_ADMIN" in advice("bwrap: no")
