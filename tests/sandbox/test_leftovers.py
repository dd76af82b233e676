"""Sudden deaths leave nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sandbox.observe import appeared, gone

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


def test_a_jail_that_lost_its_bwrap_ends_with_its_owner() -> None:
    # Where root started it, process 1 outlives bwrap, since a change of user clears the signal at a parent's death.
    mark = f"700.{int.from_bytes(os.urandom(6), 'big')}"
    owner = subprocess.Popen([sys.executable, "-c", OWNER, mark], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        assert appeared(f"sleep\0{mark}")
        children = Path(f"/proc/{owner.pid}/task").glob("*/children")
        bwraps = [int(pid) for file in children for pid in file.read_text(encoding="ascii").split()]
        assert len(bwraps) == 1
        os.kill(bwraps[0], 9)
    finally:
        owner.kill()
        owner.wait()
    assert gone(f"sleep\0{mark}")
