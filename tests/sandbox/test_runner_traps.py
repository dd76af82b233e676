"""Traps that others fell into; each was measured, and each has a test here."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox import CallTest, Limits, Sandbox, Tier
from tests.sandbox.test_cgroups import real_place

ROOT = Path(__file__).resolve().parents[2]
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root")
TIERS = [Tier.CONFINED, Tier.JAIL, *([Tier.FULL] if real_place() else [])]


async def one(sandbox: Sandbox, source: str, expected: object, limits: Limits | None = None) -> None:
    (verdict,) = await sandbox.grade_calls(source, "f", [CallTest(name="t", expected=expected)], limits)
    assert verdict.passed, verdict


@pytest.mark.parametrize("tier", TIERS)
async def test_nothing_of_the_environment_comes_through(tier: Tier, monkeypatch: pytest.MonkeyPatch) -> None:
    # --clearenv empties what the program gets, not the launcher's own environment, which /proc/1/environ shows.
    monkeypatch.setenv("OPENAI_API_KEY", "needle-in-the-environment")
    source = """
import os
def f():
    seen = [repr(dict(os.environ))]
    for number in ("1", "self", os.getppid()):
        try:
            seen.append(repr(open(f"/proc/{number}/environ", "rb").read()))
        except OSError:
            pass
    return any("needle" in text for text in seen)
"""
    async with Sandbox(tier=tier) as sandbox:
        await one(sandbox, source, False)


@pytest.mark.parametrize("tier", TIERS)
async def test_jails_side_by_side_do_not_eat_each_others_processes(tier: Tier) -> None:
    # A limit on processes that is set before bwrap, or with one uid for all, counts all jails together.
    source = """
import threading, time
def f():
    threads = [threading.Thread(target=time.sleep, args=(0.3,)) for _ in range(6)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return "all started"
"""
    async with Sandbox(concurrency=4, tier=tier) as sandbox:
        await asyncio.gather(*(one(sandbox, source, "all started", Limits(processes=8)) for _ in range(8)))


@pytest.mark.parametrize("tier", TIERS)
async def test_root_in_the_jail_is_nobody_whom_limits_do_not_bind(tier: Tier) -> None:
    source = """
import os, threading, time
def f():
    started = 0
    try:
        for _ in range(50):
            threading.Thread(target=time.sleep, args=(1,), daemon=True).start()
            started += 1
    except RuntimeError:
        pass
    return [0 in os.getresuid() + os.getresgid(), started < 9]
"""
    async with Sandbox(tier=tier) as sandbox:
        await one(sandbox, source, [False, True], Limits(processes=8))


@pytest.mark.parametrize("tier", TIERS)
async def test_usage_is_the_tests_not_the_launchers(tier: Tier) -> None:
    # wait4 on bwrap tells what bwrap used: no CPU time, two MiB.
    source = "import time\ndef f():\n    block = b'x' * (50 << 20)\n    end = time.process_time() + 0.3\n    while time.process_time() < end: pass"
    async with Sandbox(tier=tier) as sandbox:
        (verdict,) = await sandbox.grade_calls(source, "f", [CallTest(name="t")])

    assert 0.3 <= verdict.cpu_s < 2
    assert 50 < verdict.peak_mb < 120


@pytest.mark.parametrize("tier", [tier for tier in TIERS if tier >= Tier.JAIL])
async def test_the_dead_are_buried_inside(tier: Tier) -> None:
    # Orphans go to process 1 of the jail; if that does not reap, they fill the jail's processes.
    source = """
import os, time
def f():
    for _ in range(40):
        if os.fork() == 0:
            os.fork()
            os._exit(0)
        os.wait()
    time.sleep(0.1)
    return True
"""
    tests = [CallTest(name=str(number), expected=True) for number in range(3)]
    async with Sandbox(tier=tier) as sandbox:
        verdicts = await sandbox.grade_calls(source, "f", tests, Limits(processes=128))

    assert all(verdict.passed for verdict in verdicts), verdicts


PROCESS_ONE = """
import asyncio, os, sys
from pathlib import Path
from sandbox import CallTest, Limits, Sandbox, Tier

async def main():
    async with Sandbox(tier=Tier(sys.argv[1])) as sandbox:
        for _ in range(3):
            job = asyncio.create_task(sandbox.grade_calls(
                "import time\\ndef f(): time.sleep(60)", "f", [CallTest(name="t")], Limits(wall_s=60)))
            await asyncio.sleep(0.3)
            job.cancel()
            await asyncio.wait([job])
    print(os.getpid(), sorted(path.name for path in Path("/proc").glob("[0-9]*")))

asyncio.run(main())
"""


@AS_ROOT
@pytest.mark.parametrize("tier", TIERS)
def test_the_dead_are_buried_where_the_service_is_process_1(tier: Tier) -> None:
    # As in a container: whoever loses its parent goes to the service, which has to reap it.
    argv = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", PROCESS_ONE, tier]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    assert done.stdout.strip() == "1 ['1']", done.stderr[-2000:]


async def test_the_launcher_does_not_copy_a_large_process(monkeypatch: pytest.MonkeyPatch) -> None:
    # preexec_fn, user= and the like make Popen fork instead of vfork: over 100 ms with a heap of 2 GiB.
    started = []
    start = subprocess._fork_exec  # type: ignore[attr-defined]

    def fork_exec(*arguments: object) -> object:
        started.append(arguments[-6:])
        return start(*arguments)

    monkeypatch.setattr(subprocess, "_fork_exec", fork_exec)
    async with Sandbox() as sandbox:
        await one(sandbox, "def f(): return 1", 1)

    group, groups, user, umask, preexec, vfork = None, None, None, -1, None, True
    assert set(started) == {(group, groups, user, umask, preexec, vfork)}
