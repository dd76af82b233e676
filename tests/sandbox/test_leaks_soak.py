"""Many runs of every kind leave nothing behind: no process, mount, file, control group or descriptor, and no memory."""

from __future__ import annotations

import asyncio
import gc
import random
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from sandbox import CallTest, Limits, Sandbox, Status, StdioTest, Verdict
from tests.sandbox.hostile.table import load_table
from tests.sandbox.observe import adopting_orphans, own_cgroups

TABLE = load_table()
WORKERS = 4
LIMITS = Limits(wall_s=20, cpu_s=10, memory_mb=96, processes=16, output_kb=16, tmpfs_mb=8)
HURRIED = Limits(wall_s=0.15, cpu_s=1, memory_mb=96, processes=16, output_kb=16, tmpfs_mb=8)
ADD = "def f(a, b):\n    return a + b\n"
ADD_TESTS = [CallTest(name=f"t{i}", args=(i, 1), expected=i + 1) for i in range(3)]
ATTACK_TEST = [CallTest(name="t", args=({"bare": False, "scratch": ".", "naptime": "600"},), expected="stopped")]
# Programs that need nothing of the world outside and are over soon.
HOSTILE = [
    "fork_bomb", "spawn_shells", "thread_bomb", "memory", "memory_files", "output_flood", "disk_fill", "many_files",
    "daemon", "daemon_without_a_parent", "stopped_daemon", "hold_the_pipes", "kill_the_group", "exit_zero", "crash",
    "descriptors_in_flight", "many_descriptors", "close_everything", "closed_folders", "odd_names", "walk_heap",
    "patch_harness", "audit_hook", "source_brackets", "deep_folders", "unlinked_file", "foreign_system_calls",
]  # fmt: skip
# How much larger this process may be at the end than after a tenth of the runs.
GROWTH_MB = 16.0


@dataclass(frozen=True)
class Footprint:
    """What this process and the machine have of ours.

    threads: all, also those that Python did not start, but the workers of the event loop's own executor: they are
        bounded, and there is one more or less by chance.
    """

    descriptors: int
    threads: int
    mounts: int
    files: tuple[Path, ...]
    cgroups: tuple[Path, ...]

    @classmethod
    def now(cls, *folders: Path) -> Footprint:
        """Measure; ``folders`` are all that a sandbox here may have put files into."""
        gc.collect()
        own = psutil.Process()
        return cls(
            descriptors=own.num_fds(),
            threads=own.num_threads() - sum(t.name.startswith("asyncio_") for t in threading.enumerate()),
            mounts=len(Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()),
            files=tuple(path for folder in folders for path in folder.rglob("*")),
            cgroups=tuple(own_cgroups()),
        )


async def one_run(sandbox: Sandbox, number: int) -> list[Verdict]:
    """Run number ``number`` of a fixed mixture."""
    draw = random.Random(number)
    kind = draw.choices(["passing", "wrong", "program", "slow", "cancelled", "hostile"], [5, 3, 3, 1, 1, 3])[0]
    if kind == "passing":
        return await sandbox.grade_calls(ADD, "f", ADD_TESTS, LIMITS)
    if kind == "wrong":
        return await sandbox.grade_calls("def f(a, b):\n    return a - b / 0\n", "f", ADD_TESTS, LIMITS)
    if kind == "program":
        test = StdioTest(name="t", stdin="1 2\n", expected="3\n")
        return await sandbox.grade_stdio("print(sum(map(int, input().split())))", [test], LIMITS)
    if kind == "slow":
        return await sandbox.grade_calls("import time\ndef f(a, b): time.sleep(9)", "f", ADD_TESTS[:1], HURRIED)
    if kind == "cancelled":
        work = asyncio.ensure_future(sandbox.grade_calls("def f(a, b):\n    while True: pass", "f", ADD_TESTS, LIMITS))
        await asyncio.sleep(draw.uniform(0, 0.1))
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        return []
    return await sandbox.grade_calls(TABLE[draw.choice(HOSTILE)].source, "attack", ATTACK_TEST, LIMITS)


async def many_runs(sandbox: Sandbox, numbers: range) -> Counter[Status]:
    """As many runs, some at a time; how they ended."""
    ends: Counter[Status] = Counter()
    waiting = iter(numbers)

    async def worker() -> None:
        for number in waiting:
            ends.update(verdict.status for verdict in await one_run(sandbox, number))

    await asyncio.gather(*(worker() for _ in range(WORKERS)))
    return ends


@pytest.mark.parametrize("runs", [200, pytest.param(10_000, marks=pytest.mark.soak)])
async def test_many_runs_leave_nothing_behind(runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = psutil.Process()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    async with Sandbox(concurrency=1) as sandbox:  # what a first sandbox imports and opens once is no leak
        await many_runs(sandbox, range(20))
    before = Footprint.now(tmp_path)

    with adopting_orphans() as survivors:
        async with Sandbox(concurrency=WORKERS) as sandbox:
            ends = await many_runs(sandbox, range(runs // 10))
            early_mb = own.memory_info().rss / (1 << 20)
            ends += await many_runs(sandbox, range(runs // 10, runs))
            late_mb = own.memory_info().rss / (1 << 20)
        assert survivors() == []

    after = Footprint.now(tmp_path)
    print(f"{runs} runs: {dict(ends)}; {early_mb:.1f} MiB, at the end {late_mb:.1f}; {after}")
    assert after == before
    assert late_mb - early_mb < GROWTH_MB
    assert not ends[Status.INFRASTRUCTURE]
    assert min(ends[Status.PASSED], ends[Status.ERROR], ends[Status.TIMEOUT], ends[Status.OUTPUT_LIMIT]) > 0
