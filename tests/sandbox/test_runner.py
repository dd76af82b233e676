"""Verdicts of honest programs, and the sandbox's own life."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from sandbox import CallTest, Limits, Sandbox, SandboxClosed, SandboxError, Status, StdioTest, Tier
from sandbox.jail.bubblewrap import Isolation
from sandbox.jail.probe import find_isolation
from sandbox.payload import preloadable_imports
from tests.sandbox.observe import appeared, gone, processes_with

SMALL = Limits(wall_s=3, cpu_s=2, memory_mb=128, processes=8, output_kb=16, tmpfs_mb=8)


def one(expected: Any = None, *args: Any) -> list[CallTest]:
    return [CallTest(name="t", args=args, expected=expected)]


async def test_a_right_answer_passes_with_its_measurements(sandbox: Sandbox) -> None:
    source = "def f(xs):\n    block = bytearray(40 << 20)\n    return sorted(xs)"

    (verdict,) = await sandbox.grade_calls(source, "f", one([1, 2, 3], [3, 1, 2]))

    assert verdict.passed
    assert verdict.tier == sandbox.tier >= Tier.JAIL
    assert verdict.message == ""
    assert verdict.actual == "[1, 2, 3]"
    assert 0 < verdict.cpu_s < 5
    assert 0 < verdict.wall_s < 30
    assert 40 < verdict.peak_mb < 100


async def test_each_test_has_its_verdict_in_order(sandbox: Sandbox) -> None:
    source = "def f(x):\n    return [1, 0, 3][x] if x < 3 else 1 // 0"
    tests = [CallTest(name=f"t{x}", args=(x,), expected=x + 1) for x in range(4)]

    verdicts = await sandbox.grade_calls(source, "f", tests)

    assert [verdict.name for verdict in verdicts] == ["t0", "t1", "t2", "t3"]
    assert [verdict.status for verdict in verdicts] == ["passed", "wrong", "passed", "error"]


async def test_no_tests_no_verdicts(sandbox: Sandbox) -> None:
    assert await sandbox.grade_calls("", "f", []) == []


@pytest.mark.parametrize(
    ("source", "status", "message"),
    [
        ("def f(): return 2", Status.WRONG, "expected 1, got 2"),
        ("def f(): return True", Status.WRONG, "expected 1, got True"),
        ("def f():\n\n    raise KeyError('why')", Status.ERROR, "KeyError: 'why' (line 3)"),
        ("def f():\n    raise ValueError('first\\nlast')", Status.ERROR, "ValueError: last (line 2)"),
        ("def f():\n    return (", Status.ERROR, "SyntaxError: '(' was never closed (line 2)"),
        ("f = 3", Status.ERROR, "LookupError: the program defines no function 'f'"),
        ("raise RuntimeError", Status.ERROR, "RuntimeError (line 1)"),
        ("def f(): return {1}", Status.ERROR, "TypeError: the answer holds a set, which has no JSON form"),
        ("def f(): return 10 ** 5000", Status.ERROR, "ValueError: Exceeds the limit"),
        ("def f(): exit()", Status.ERROR, "SystemExit: the program exited with status None"),
        ("import os\ndef f(): os._exit(3)", Status.ERROR, "the program exited with status 3"),
        ("import os\ndef f(): os.abort()", Status.ERROR, "the program was killed by SIGABRT"),
        ("import time\ndef f(): time.sleep(9)", Status.TIMEOUT, "stopped after 3 s of wall-clock time"),
        ("def f(): return len(bytearray(1 << 30))", Status.MEMORY, "MemoryError (line 1)"),
        ("def f(): print('x' * 20000)", Status.OUTPUT_LIMIT, "printed more than 16 KiB"),
        ("import", Status.ERROR, "SyntaxError: invalid syntax (line 1)"),
        ("x = '\\ud800'; y = \ud800", Status.ERROR, "UnicodeEncodeError"),
        ("x = 1\0", Status.ERROR, "source code string cannot contain null bytes"),
        ("x = " + "(" * 100_000, Status.ERROR, "SyntaxError: too many nested parentheses"),
        ("x = " + "-" * 1_000_000 + "1", (Status.ERROR, Status.MEMORY), ""),
        ("class E(Exception):\n    def __str__(self): 1 / 0\ndef f(): raise E", Status.ERROR, "E: (its message cannot"),
    ],
)
async def test_every_way_to_fail_has_its_verdict_and_reason(
    source: str, status: Status | tuple[Status, ...], message: str, sandbox: Sandbox
) -> None:
    (verdict,) = await sandbox.grade_calls(source, "f", one(1), SMALL)

    assert verdict.status in (status if isinstance(status, tuple) else (status,)), verdict
    assert message in verdict.message
    assert len(verdict.message) <= 500


async def test_cpu_time_is_bounded_whatever_the_wall_clock_says(sandbox: Sandbox) -> None:
    source = "def f():\n    while True: pass"

    (verdict,) = await sandbox.grade_calls(source, "f", one(), Limits(wall_s=100, cpu_s=0.5))

    assert verdict.status is Status.TIMEOUT
    assert "of CPU time" in verdict.message


async def test_a_long_difference_is_bounded(sandbox: Sandbox) -> None:
    (verdict,) = await sandbox.grade_calls("def f(): return 'y' * 10000", "f", one("x" * 10000))

    assert verdict.status is Status.WRONG
    assert len(verdict.message) <= 500
    assert verdict.actual is not None
    assert len(verdict.actual) <= 1000


async def test_tuples_are_lists_and_nan_is_itself(sandbox: Sandbox) -> None:
    source = "def f(): return {'a': (1, 2.5, None), 'b': float('nan'), 'c': float('inf')}"
    expected = {"a": (1, 2.5, None), "b": float("nan"), "c": float("inf")}

    (verdict,) = await sandbox.grade_calls(source, "f", one(expected))

    assert verdict.passed, verdict


@pytest.mark.parametrize(
    ("source", "stdin", "expected", "status"),
    [
        ("print(int(input()) + 1)", "1\n", "2", "passed"),
        ("print(sum(map(int, open(0).read().split())))", "1 2 3", "6\n\n", "passed"),
        ("print(open('/dev/stdin').read())", "x", "x", "passed"),
        ("import sys\nprint('a ')\nsys.exit()", "", "a\n", "passed"),
        ("print('a')\nquit()", "", "a\n", "passed"),
        ("if __name__ == '__main__':\n    print('main')", "", "main", "passed"),
        ("import threading\nthreading.Thread(target=lambda: print('late')).start()", "", "late", "passed"),
        ("import atexit\natexit.register(print, 'last')", "", "last", "passed"),
        ("import os\nos.write(1, b'raw')\nos._exit(0)", "", "raw", "passed"),
        ("import sys\nprint(len(sys.stdin.read()))", "x" * 300_000, "300000", "passed"),
        ("print('ignores its input')", "x" * 300_000, "ignores its input", "passed"),
        ("print('b')", "", "a", "wrong"),
        ("import sys\nsys.exit(3)", "", "", "error"),
        ("print('a')\n1 / 0", "", "a", "error"),
        ("input()", "", "", "error"),
    ],
)
async def test_programs_are_judged_by_what_they_print(
    source: str, stdin: str, expected: str, status: str, sandbox: Sandbox
) -> None:
    (verdict,) = await sandbox.grade_stdio(source, [StdioTest(name="t", stdin=stdin, expected=expected)])

    assert verdict.status == status, verdict


async def test_the_same_program_gets_the_same_answer_again(sandbox: Sandbox) -> None:
    source = "import random\ndef f(): return [list({'ape', 'bee', 'cow', 'dog'}), hash('x'), random.random()]"

    answers = {(await sandbox.grade_calls(source, "f", one()))[0].actual for _ in range(3)}

    assert len(answers) == 1


async def test_the_environment_holds_nothing_of_ours(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VPO_SECRET", "hush")
    source = "import os\ndef f(): return sorted(os.environ)"

    (verdict,) = await sandbox.grade_calls(source, "f", one(["HOME", "LANG", "PATH", "PYTHONHASHSEED", "TZ"]))

    assert verdict.passed, verdict


async def test_a_candidate_has_no_privilege_and_only_the_standard_library(sandbox: Sandbox) -> None:
    source = """
import importlib.util, os, sys
def f():
    status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
    return {"ids": [i == 0 for i in os.getresuid() + os.getresgid()], "groups": [g for g in os.getgroups() if g == 0],
            "capabilities": int(status["CapEff"], 16) | int(status["CapPrm"], 16), "no_new": status["NoNewPrivs"],
            "seccomp": status["Seccomp"], "numpy": importlib.util.find_spec("numpy") is not None,
            "parent": os.getppid(), "home": [p for p in sys.path if not p.startswith(("/usr", "/interpreter"))]}
"""
    expected = {
        "ids": [False] * 6,
        "groups": [],
        "capabilities": 0,
        "no_new": "1",
        "seccomp": "2",
        "numpy": False,
        "parent": 1,
        "home": [],
    }

    (verdict,) = await sandbox.grade_calls(source, "f", one(expected))

    assert verdict.passed, verdict


async def test_jails_alive_at_once_are_bounded(sandbox: Sandbox) -> None:
    mark = f"300.{int.from_bytes(os.urandom(6), 'big')}"
    source = f"import subprocess\ndef f(): subprocess.run(['sleep', '{mark}'], timeout=1)"
    grading = [asyncio.create_task(sandbox.grade_calls(source, "f", one())) for _ in range(5)]
    most = 0
    while not all(task.done() for task in grading):
        most = max(most, len(processes_with(mark)))
        await asyncio.sleep(0.05)

    assert 1 <= most <= 2
    assert {task.result()[0].status for task in grading} == {Status.ERROR}


async def test_cancelling_ends_the_jail(sandbox: Sandbox) -> None:
    mark = f"300.{int.from_bytes(os.urandom(6), 'big')}"
    source = f"import subprocess\ndef f(): subprocess.run(['sleep', '{mark}'])"
    limits = Limits(wall_s=100)
    running = [asyncio.create_task(sandbox.grade_calls(source, "f", one(), limits)) for _ in range(4)]
    await asyncio.to_thread(appeared, mark)

    for task in running:
        task.cancel()
    results = await asyncio.wait_for(asyncio.gather(*running, return_exceptions=True), 10)

    assert all(isinstance(result, asyncio.CancelledError) for result in results)
    assert gone(mark)
    (verdict,) = await sandbox.grade_calls("def f(): return 1", "f", one(1))
    assert verdict.passed


async def test_closing_ends_everything_and_says_so() -> None:
    sandbox = Sandbox(concurrency=1)
    await sandbox.check()
    source, limits = "import time\ndef f(): time.sleep(100)", Limits(wall_s=200)
    running = [asyncio.create_task(sandbox.grade_calls(source, "f", one(), limits)) for _ in range(2)]
    await asyncio.sleep(0.3)

    await asyncio.wait_for(sandbox.close(), 10)

    results = await asyncio.gather(*running, return_exceptions=True)
    assert all(isinstance(result, SandboxClosed) for result in results), results
    with pytest.raises(SandboxError, match="closed"):
        await sandbox.grade_calls(source, "f", one())


async def test_nothing_is_left_open(sandbox: Sandbox) -> None:
    await sandbox.grade_calls("def f(): return 1", "f", one(1))
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(3):
        await sandbox.grade_calls("def f(): return 1", "f", one(1) * 3)

    assert sorted(os.listdir("/proc/self/fd")) == before


def broken_bwrap(folder: Path, failures: int, monkeypatch: pytest.MonkeyPatch) -> Isolation:
    """A bwrap that fails the first times that it is started."""
    real = find_isolation()
    script = folder / "bwrap"
    script.write_text(
        f'#!/bin/sh\necho started >>"{folder}/starts"\n'
        f'if [ "$(wc -l <"{folder}/starts")" -le {failures} ]; then echo "bwrap: out of luck" >&2; exit 1; fi\n'
        f'exec "{real.bwrap}" "$@"\n',
        encoding="utf-8",
    )
    script.chmod(0o755)
    isolation = Isolation(bwrap=script, privileged=real.privileged, demoted=real.demoted, proc=real.proc)
    monkeypatch.setattr("sandbox.runner.find_isolation", lambda *_: isolation)
    return isolation


async def test_a_jail_that_fails_once_is_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken_bwrap(tmp_path, 1, monkeypatch)
    async with Sandbox() as sandbox:
        (verdict,) = await sandbox.grade_calls("def f(): return 1", "f", one(1))

    assert verdict.passed, verdict


async def test_a_jail_that_keeps_failing_is_no_fault_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_bwrap(tmp_path, 1000, monkeypatch)
    async with Sandbox() as sandbox:
        verdicts = await sandbox.grade_calls("def f(): return 1", "f", one(1) * 10)

    assert {verdict.status for verdict in verdicts} == {Status.INFRASTRUCTURE}
    assert "out of luck" in verdicts[0].message
    assert len((tmp_path / "starts").read_text(encoding="utf-8").splitlines()) == 4


def test_concurrency_must_be_positive() -> None:
    with pytest.raises(ValueError, match="concurrency must be at least 1, not 0"):
        Sandbox(concurrency=0)


def test_only_standard_modules_are_imported_beforehand() -> None:
    source = "import math, re\nfrom collections import deque\nimport candidate\n  import heapq as h\nimport os.path"

    assert preloadable_imports(source) == ["collections", "heapq", "math", "re"]
