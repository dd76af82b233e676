"""From what a test left behind to its verdict. Runs outside the jail; everything in a report is untrusted bytes.

An answer is JSON, already capped in size; it is decoded here, its depth is checked, and nothing else is done with it
but comparison. Exit status 0 alone is never a pass.
"""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass
from typing import Any

from sandbox.cases import MAX_DEPTH, CallTest, FunctionResult, StdioTest, deeper_than
from sandbox.comparison import call_matches, stdio_matches
from sandbox.inside import supervisor
from sandbox.inside.harness import FILENAME
from sandbox.jail.launcher import OUT_OF_MEMORY, Report
from sandbox.limits import Limits
from sandbox.verdict import Status, Verdict

MESSAGE_CHARS = 500
SIDE_CHARS = 200
ACTUAL_CHARS = 1000


class UnreadableError(Exception):
    """The answer is not what a harness writes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unchecked:
    """An answer that the task's own checker is yet to judge. given: what the program got (args or standard input)."""

    name: str
    report: Report
    given: Any
    expected: Any
    actual: Any


def judge_call(test: CallTest, report: Report, limits: Limits) -> Verdict | Unchecked:
    """Judge what the entry point returned."""
    returned = judge_function(test.name, report, limits)
    if not returned.verdict.passed:
        return returned.verdict
    value = returned.value
    if test.compare == "checker":
        return Unchecked(name=test.name, report=report, given=list(test.args), expected=test.expected, actual=value)
    if call_matches(test, value):
        return verdict(test.name, report, Status.PASSED, actual=repr(value))
    message = f"expected {clip(repr(test.expected), SIDE_CHARS)}, got {clip(repr(value), SIDE_CHARS)}"
    return verdict(test.name, report, Status.WRONG, message, repr(value))


def judge_function(name: str, report: Report | str, limits: Limits) -> FunctionResult:
    """Read what a function returned, whatever that is."""
    if isinstance(report, str):
        return FunctionResult(verdict=broken(name, report))
    failed = judge_ending(name, report, limits)
    if failed is None:
        try:
            answer = read_answer(report)
            if "value" in answer:
                return FunctionResult(verdict=verdict(name, report, Status.PASSED), value=answer["value"])
            failed = judge_error(name, report, answer)
        except UnreadableError as problem:
            failed = verdict(name, report, Status.ERROR, str(problem))
    return FunctionResult(verdict=failed)


def broken(name: str, reason: str) -> Verdict:
    """The verdict where the jail, not the program, failed."""
    return Verdict(name=name, status=Status.INFRASTRUCTURE, message=f"the sandbox failed: {reason}"[:MESSAGE_CHARS])


def judge_stdio(test: StdioTest, report: Report, limits: Limits) -> Verdict | Unchecked:
    """Judge what the program printed; a program that leaves without a word must leave with status 0."""
    failed = judge_ending(test.name, report, limits)
    if failed is not None:
        return failed
    printed = report.stdout.decode("utf-8", "replace")
    try:
        if report.answer:
            answer = read_answer(report)
            if "exit" not in answer:
                return judge_error(test.name, report, answer, printed)
    except UnreadableError as problem:
        return verdict(test.name, report, Status.ERROR, str(problem), printed)
    if test.compare == "checker":
        return Unchecked(name=test.name, report=report, given=test.stdin, expected=test.expected, actual=printed)
    if stdio_matches(test, printed):
        return verdict(test.name, report, Status.PASSED, actual=printed)
    message = f"expected output {clip(repr(test.expected), SIDE_CHARS)}, got {clip(repr(printed), SIDE_CHARS)}"
    return verdict(test.name, report, Status.WRONG, message, printed)


def judge_ending(name: str, report: Report, limits: Limits) -> Verdict | None:
    """The verdict if a limit or a signal ended the test, else ``None``."""
    if report.cause == supervisor.TIMED_OUT:
        return verdict(name, report, Status.TIMEOUT, f"stopped after {limits.wall_s:g} s of wall-clock time")
    if report.cause == supervisor.TOO_MUCH_OUTPUT:
        return verdict(name, report, Status.OUTPUT_LIMIT, f"printed more than {limits.output_kb} KiB")
    if report.cause == supervisor.TOO_LARGE_AN_ANSWER:
        return verdict(name, report, Status.OUTPUT_LIMIT, "returned more than the answer may hold")
    if report.cause == supervisor.TOO_MANY_FILES:
        return verdict(name, report, Status.OUTPUT_LIMIT, f"made more than {supervisor.MAX_FILES} files")
    if report.cause == OUT_OF_MEMORY:
        return verdict(name, report, Status.MEMORY, f"used more than {limits.memory_mb} MiB of memory in all")
    if report.cpu_s > limits.cpu_s:
        return verdict(name, report, Status.TIMEOUT, f"used more than {limits.cpu_s:g} s of CPU time")
    code = os.waitstatus_to_exitcode(report.wait_status)
    if code == 0:
        return None
    if code > 0:
        return verdict(name, report, Status.ERROR, with_stderr(f"the program exited with status {code}", report))
    return _judge_signal(name, report, limits, -code)


def _judge_signal(name: str, report: Report, limits: Limits, number: int) -> Verdict:
    if number == signal.SIGXCPU:
        return verdict(name, report, Status.TIMEOUT, f"used {limits.cpu_s:g} s of CPU time")
    if number in (signal.SIGKILL, signal.SIGBUS) and report.peak_kib >= 0.9 * limits.memory_mb * 1024:
        return verdict(name, report, Status.MEMORY, f"used more than {limits.memory_mb} MiB of memory")
    try:
        called = signal.Signals(number).name
    except ValueError:
        called = f"signal {number}"
    hint = " (often a stack overflow by deep recursion)" if number == signal.SIGSEGV else ""
    return verdict(name, report, Status.ERROR, with_stderr(f"the program was killed by {called}{hint}", report))


def judge_error(name: str, report: Report, answer: dict[str, Any], printed: str | None = None) -> Verdict:
    """The verdict for an exception that the harness caught."""
    error = answer.get("error")
    if not isinstance(error, dict):
        raise UnreadableError("the program wrote an answer that cannot be read")
    memory = error.get("memory") is True
    kind, message, line = error.get("type"), error.get("message"), error.get("line")
    text = f"{clip(str(kind), 80)}: {_last_line(str(message))}" if message else clip(str(kind), 80)
    where = f" ({_file_name(error)}line {line})" if isinstance(line, int) else ""
    return verdict(
        name, report, Status.MEMORY if memory else Status.ERROR, clip(text, MESSAGE_CHARS - 40) + where, printed
    )


def read_answer(report: Report) -> dict[str, Any]:
    """Decode the JSON object on the answer pipe. Raises :class:`UnreadableError`."""
    if not report.answer:
        raise UnreadableError(with_stderr("the program ended without an answer", report))
    try:
        answer = json.loads(report.answer.decode("ascii"))
    except RecursionError as error:
        raise UnreadableError(f"the answer is nested more than {MAX_DEPTH} levels deep") from error
    except ValueError as error:
        raise UnreadableError(f"the answer is not valid JSON: {clip(str(error), 200)}") from error
    if not isinstance(answer, dict):
        raise UnreadableError("the program wrote an answer that cannot be read")
    if deeper_than(answer, MAX_DEPTH):
        raise UnreadableError(f"the answer is nested more than {MAX_DEPTH} levels deep")
    return answer


def verdict(
    name: str, report: Report, status: Status, message: str = "", actual: str | None = None, score: float = 0.0
) -> Verdict:
    """A verdict with the report's measurements, texts bounded."""
    return Verdict(
        name=name,
        status=status,
        message=clip(message, MESSAGE_CHARS),
        actual=None if actual is None else clip(actual, ACTUAL_CHARS),
        score=score,
        wall_s=report.wall_s,
        cpu_s=report.cpu_s,
        peak_mb=report.peak_kib / 1024,
    )


def with_stderr(message: str, report: Report) -> str:
    """Add the last line of standard error, where a crash usually says why."""
    last = _last_line(report.stderr.decode("utf-8", "replace"))
    return f"{message}; its last words: {clip(last, SIDE_CHARS)}" if last else message


def clip(text: str, limit: int) -> str:
    """Shorten ``text`` to ``limit`` characters, keeping both ends."""
    if len(text) <= limit:
        return text
    tail = limit // 4
    return f"{text[: limit - tail - 3]}...{text[len(text) - tail :]}"


def _file_name(error: dict[str, Any]) -> str:
    """The file an error happened in, unless it is the one file that a candidate of a tests task is."""
    file = str(error.get("file") or FILENAME).rpartition("/")[2]
    return "" if file == FILENAME else f"{clip(file, 60)} "


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""
