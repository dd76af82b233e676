"""Sudden deaths leave nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.jail.cgroups import Group, NoCgroupError, find_place, sweep
from tests.sandbox.observe import appeared, gone, own_cgroups

ROOT = Path(__file__).resolve().parents[2]
OWNER = """
import asyncio, sys
from sandbox import CallTest, Limits, Sandbox

SOURCE = '''
import os, subprocess, time
def f(mark):
    if os.fork() == 0:
        os.setsid()
        os.execv("/bin/sleep", ["sleep", mark])
    time.sleep(600)
'''

async def main():
    sandbox = Sandbox()
    await sandbox.grade_calls(SOURCE, "f", [CallTest(name="t", args=(sys.argv[1],))], Limits(wall_s=600))

asyncio.run(main())
"""


@pytest.mark.parametrize("signal_number", [9, 15, 2])
def test_killing_the_owner_kills_its_jails(signal_number: int) -> None:
    mark = f"700.{int.from_bytes(os.urandom(6), 'big')}"
    owner = subprocess.Popen([sys.executable, "-c", OWNER, mark], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        assert appeared(f"sleep\0{mark}")
        owner.send_signal(signal_number)
        owner.wait(timeout=20)
    finally:
        owner.kill()
        owner.wait()

    assert gone(f"sleep\0{mark}")


def test_killing_bwrap_kills_its_jail() -> None:
    mark = f"700.{int.from_bytes(os.urandom(6), 'big')}"
    owner = subprocess.Popen([sys.executable, "-c", OWNER, mark], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        assert appeared(f"sleep\0{mark}")
        children = Path(f"/proc/{owner.pid}/task").glob("*/children")
        bwraps = [int(pid) for file in children for pid in file.read_text(encoding="ascii").split()]
        assert len(bwraps) == 1
        os.kill(bwraps[0], 9)

        assert gone(f"sleep\0{mark}", patience_s=1) or appeared(f"sleep\0{mark}")  # the failed jail is retried once
    finally:
        owner.kill()
        owner.wait()
    assert gone(f"sleep\0{mark}")


def test_a_sandbox_with_another_memory_group_leaves_ours_alone() -> None:
    """In version 1 two services may share the parent of one controller's groups and not the other's."""
    try:
        place = find_place()
    except NoCgroupError:
        pytest.skip("no writable cgroup here")
    if place.version != 1:
        pytest.skip("version 2 has one tree")
    elsewhere = place.memory / f"vpo-test-{os.getpid()}"
    group = Group(place)
    elsewhere.mkdir()
    try:
        before = own_cgroups()
        sweep(replace(place, memory=elsewhere))
        assert own_cgroups() == before != []
    finally:
        elsewhere.rmdir()
        group.remove()
    assert own_cgroups() == []
