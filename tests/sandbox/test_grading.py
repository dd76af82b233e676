"""Judging reports, among them those that no honest harness would write."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from sandbox import CallTest, Limits, Status, StdioTest
from sandbox.cases import deeper_than
from sandbox.checking import judge_check, read_score
from sandbox.grading import Unchecked, UnreadableError, clip, judge_function
from sandbox.grading import judge_call as judge_or_leave_to_checker
from sandbox.grading import judge_stdio as judge_stdio_or_leave
from sandbox.inside import supervisor
from sandbox.jail.launcher import Report
from sandbox.verdict import Verdict


def judge_call(test: CallTest, what: Report, limits: Limits) -> Verdict:
    verdict = judge_or_leave_to_checker(test, what, limits)
    assert isinstance(verdict, Verdict)
    return verdict


def judge_stdio(test: StdioTest, what: Report, limits: Limits) -> Verdict:
    verdict = judge_stdio_or_leave(test, what, limits)
    assert isinstance(verdict, Verdict)
    return verdict


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


def test_an_answer_for_the_checker_is_no_verdict_yet_but_a_failure_is() -> None:
    test = CallTest(name="t", args=((1, 2),), expected=3, compare="checker")

    answer = judge_or_leave_to_checker(test, report(), LIMITS)

    assert isinstance(answer, Unchecked)
    assert (answer.given, answer.expected, answer.actual) == ([(1, 2)], 3, 1)
    assert judge_call(test, report(answer=b""), LIMITS).status is Status.ERROR


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (True, (1.0, "")),
        (False, (0.0, "")),
        (0.25, (0.25, "")),
        (7, (1.0, "")),
        (float("-inf"), (0.0, "")),
        ([False, "too long"], (0.0, "too long")),
        ([0.5, ""], (0.5, "")),
    ],
)
def test_what_a_checker_may_return(value: Any, score: tuple[float, str]) -> None:
    assert read_score(value) == score


@pytest.mark.parametrize("value", [None, "yes", float("nan"), [], [True], [True, 1], [True, "a", "b"], {"ok": True}])
def test_what_a_checker_may_not_return(value: Any) -> None:
    with pytest.raises(UnreadableError, match="return a bool, a number in"):
        read_score(value)


def test_partial_credit_is_a_score_and_no_pass() -> None:
    answer = Unchecked(name="t", report=report(), given="in", expected="", actual="out")

    half = judge_check(answer, report(answer=b'{"value":[0.5,"half of it"]}', cpu_s=3.0))
    whole = judge_check(answer, report(answer=b'{"value":1}'))
    failed = judge_check(answer, report(answer=b'{"value":null}'))
    gone = judge_check(answer, "no jail")

    assert (half.status, half.reward, half.message) == (Status.WRONG, 0.5, "half of it (score 0.5)")
    assert half.cpu_s == 0.25  # the candidate's, not the checker's
    assert (whole.status, whole.reward, whole.actual) == (Status.PASSED, 1.0, "out")
    assert (failed.status, failed.reward) == (Status.ERROR, 0.0)
    assert failed.message.startswith("the task's checker failed: check returned None")
    assert gone.status is Status.INFRASTRUCTURE


def test_reading_what_a_function_returned() -> None:
    assert judge_function("f", report(answer=b'{"value":[1]}'), LIMITS).value == [1]
    assert judge_function("f", report(answer=b"["), LIMITS).verdict.status is Status.ERROR
    assert judge_function("f", "no jail", LIMITS).verdict.status is Status.INFRASTRUCTURE
