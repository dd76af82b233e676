"""Custom checkers: a task's own ``check``, in a jail of its own, decides whether answers are right.

The checker never shares a jail with the candidate, and sees its answers only as decoded JSON or text. One jail serves
all tests of a candidate; each check runs in a process of its own, so that one which fails takes no other along.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from sandbox.grading import SIDE_CHARS, Unchecked, UnreadableError, broken, clip, judge_function, verdict
from sandbox.jail.launcher import Job, Report
from sandbox.limits import Limits
from sandbox.payload import call_payload
from sandbox.verdict import Status, Verdict

FUNCTION = "check"
CHECKER_LIMITS = Limits(wall_s=10, cpu_s=10, memory_mb=512)


def checker_job(source: str, answers: Sequence[Unchecked]) -> Job:
    """The job that calls ``check(given, expected, actual)`` for each answer."""
    inputs = [[answer.given, answer.expected, answer.actual] for answer in answers]
    payload = call_payload(source, FUNCTION, inputs) | {"keep_going": True}
    return Job(harness="harness", payload=payload, limits=CHECKER_LIMITS)


def judge_check(answer: Unchecked, checked: Report | str) -> Verdict:
    """The verdict on an answer; a text instead of a report is why the checker's jail broke.

    A checker that fails is not the machine's fault: the test counts as an error, and the message says so.
    """
    if isinstance(checked, str):
        return broken(answer.name, checked)
    shown = answer.actual if isinstance(answer.given, str) else repr(answer.actual)
    said = judge_function(answer.name, checked, CHECKER_LIMITS)
    problem = said.verdict.message
    if said.verdict.passed:
        try:
            return _scored(answer, shown, *read_score(said.value))
        except UnreadableError as error:
            problem = str(error)
    return verdict(answer.name, answer.report, Status.ERROR, f"the task's checker failed: {problem}", shown)


def _scored(answer: Unchecked, shown: str, score: float, message: str) -> Verdict:
    if score >= 1.0:
        return verdict(answer.name, answer.report, Status.PASSED, actual=shown)
    partly = f" (score {score:.3g})" if score > 0 else ""
    reason = message or f"the checker rejects {clip(shown, SIDE_CHARS)}"
    return verdict(answer.name, answer.report, Status.WRONG, reason + partly, shown, score)


def read_score(value: Any) -> tuple[float, str]:
    """Score in [0, 1] and message of what ``check`` returned: a bool, a number, or either with a text.

    Numbers outside are clamped. Raises :class:`~sandbox.grading.UnreadableError` for anything else, NaN included.
    """
    message = ""
    if isinstance(value, list) and len(value) == 2 and isinstance(value[1], str):
        value, message = value
    if isinstance(value, bool):
        return float(value), message
    if not isinstance(value, int | float) or math.isnan(value):
        raise UnreadableError(
            f"check returned {clip(repr(value), SIDE_CHARS)}: return a bool, a number in [0, 1], or (either, message)"
        )
    return float(min(1, max(0, value))), message
