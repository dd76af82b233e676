"""Judging reports, among them those that no honest harness would write."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from sandbox import CallTest, Limits, Status, StdioTest
from sandbox.grading import clip, deeper_than, judge_call, judge_stdio
from sandbox.inside import supervisor
from sandbox.jail.launcher import Report

LIMITS = Limits(memory_mb=100, cpu_s=1)
TEST = CallTest(name="t", expected=1)


def report(**changes: Any) -> Report:
    values: dict[str, Any] = {
        "index": 0,
        "cause": supervisor.FINISHED,
        "soiled": False,
        "wait_status": 0,
        "wall_s": 0.5,
        "cpu_s": 0.25,
        "peak_kib": 2048,
        "answer": b'{"value":1}',
        "stdout": b"",
        "stderr": b"",
    }
    return Report(**(values | changes))


def test_measurements_are_passed_on() -> None:
    verdict = judge_call(TEST, report(), LIMITS)

    assert (verdict.status, verdict.wall_s, verdict.cpu_s, verdict.peak_mb) == (Status.PASSED, 0.5, 0.25, 2.0)


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        ({"cause": supervisor.TIMED_OUT}, Status.TIMEOUT, "stopped after 5 s"),
        ({"cause": supervisor.TOO_MUCH_OUTPUT}, Status.OUTPUT_LIMIT, "printed more than 256 KiB"),
        ({"cause": supervisor.TOO_LARGE_AN_ANSWER}, Status.OUTPUT_LIMIT, "returned more"),
        ({"cause": supervisor.TOO_MANY_FILES}, Status.OUTPUT_LIMIT, "made more than 4096 files"),
        ({"cpu_s": 1.5}, Status.TIMEOUT, "used more than 1 s of CPU time"),
        ({"wait_status": signal.SIGXCPU}, Status.TIMEOUT, "used 1 s of CPU time"),
        ({"wait_status": signal.SIGKILL, "peak_kib": 99 << 10}, Status.MEMORY, "used more than 100 MiB"),
        ({"wait_status": signal.SIGKILL}, Status.ERROR, "killed by SIGKILL"),
        ({"wait_status": signal.SIGSEGV}, Status.ERROR, "killed by SIGSEGV (often a stack overflow"),
        ({"wait_status": 7 << 8, "stderr": b"x\nlast words\n"}, Status.ERROR, "status 7; its last words: last words"),
        ({"answer": b""}, Status.ERROR, "ended without an answer"),
        ({"answer": b"{"}, Status.ERROR, "not valid JSON"),
        ({"answer": b"[1]"}, Status.ERROR, "cannot be read"),
        ({"answer": b'{"value":' + b"[" * 65 + b"]" * 65 + b"}"}, Status.ERROR, "nested more than 64 levels"),
        ({"answer": b'{"value":' + b"[" * 200_000}, Status.ERROR, "nested more than 64 levels"),
        ({"answer": b'{"value":' + b"9" * 5000 + b"}"}, Status.ERROR, "not valid JSON"),
        ({"answer": b'{"error":{}}'}, Status.ERROR, "None"),
        ({"answer": b'{"error":{"type":[1],"message":{},"line":"x","memory":1}}'}, Status.ERROR, "[1]"),
        ({"answer": b'{"error":{"type":"MemoryError","message":"","memory":true}}'}, Status.MEMORY, "MemoryError"),
        ({"answer": '{"value":"é"}'.encode()}, Status.ERROR, "not valid JSON"),
    ],
)
def test_whatever_is_reported_has_a_verdict(changes: dict[str, Any], status: Status, message: str) -> None:
    verdict = judge_call(TEST, report(**changes), LIMITS)

    assert verdict.status is status, verdict
    assert message in verdict.message


def test_a_program_that_leaves_by_itself_is_judged_by_its_output() -> None:
    test = StdioTest(name="t", expected="1")

    assert judge_stdio(test, report(answer=b"", stdout=b"1\n"), LIMITS).status is Status.PASSED
    assert judge_stdio(test, report(answer=b"", stdout=b""), LIMITS).status is Status.WRONG
    assert judge_stdio(test, report(answer=b'{"value":1}', stdout=b"1"), LIMITS).status is Status.ERROR
    assert judge_stdio(test, report(answer=b"junk", stdout=b"1"), LIMITS).status is Status.ERROR
    assert judge_stdio(test, report(answer=b"", stdout=b"\xff"), LIMITS).actual == "�"


@pytest.mark.parametrize(
    ("value", "depth", "deeper"), [(1, 0, False), ([], 1, False), ([[1]], 1, True), ([[1]], 2, False)]
)
def test_depth(value: Any, depth: int, deeper: bool) -> None:
    assert deeper_than(value, depth) is deeper


def test_clipping_keeps_both_ends() -> None:
    assert clip("short", 10) == "short"
    assert clip("a" * 50 + "b" * 50, 20) == "a" * 12 + "..." + "b" * 5
