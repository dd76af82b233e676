"""HumanEval tests that must be run to be known: loops, helpers, random inputs.

The test runs once in a jail, after ``random.seed(0)``, on the reference solution behind a function that notes every
call. An assert that compares the answer of one call with something becomes an ordinary test: these arguments, this
answer. Any other assert on one call (a property, such as a root's residue) becomes a test with a checker: it runs the
test again with the candidate's answer in the place of that one call and the recorded answers in all others.

The few tests that call the entry point by its own name for the expected value (HumanEval/33) compare with the
reference here, not with the candidate itself.
"""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from evolve.humaneval_asserts import UnsupportedAssert, arguments_document, check_function, is_equality, parse_tests
from evolve.tests_task import read_arguments
from sandbox.cases import FunctionResult
from sandbox.errors import SandboxUnavailable
from sandbox.limits import Limits
from sandbox.runner import Sandbox

LIMITS = Limits(wall_s=30, cpu_s=20, memory_mb=512)

_RECORDER = """
def vpo_record():
    import copy, random
    global vpo_asserted
    calls, asserted = [], []

    def candidate(*args):
        given = repr(args)
        value = {entry_point}(*args)
        calls.append((given, copy.deepcopy(value)))
        return value

    def vpo_asserted(number):
        if calls:
            asserted.append((number, calls[:]))
            calls.clear()

    random.seed(0)
    check(candidate)
    return asserted
"""

_CHECKER = """
vpo_check = check
vpo_answers = {answers}


class VpoDone(Exception):
    pass


def check(args, expected, actual):
    import random

    seen = []

    def candidate(*given):
        if seen:
            raise VpoDone
        if list(given) == args:
            seen.append(given)
            return actual
        return vpo_answers[repr(given)]

    random.seed(0)
    try:
        vpo_check(candidate)
    except VpoDone:
        return True
    except Exception as error:
        return False, f"the answer fails an assert of the test: {{type(error).__name__}} {{error}}".strip()
    return bool(seen)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recording:
    """A test as test documents. checker: for those that compare by it, if any."""

    tests: tuple[dict[str, Any], ...]
    checker: str | None


def record_tests(records: Sequence[dict[str, str]]) -> dict[str, Recording | UnsupportedAssert]:
    """What came of each test that can only be known by running it, by ``task_id``; each runs in a jail.

    Problems whose test can be read, or that have no reference solution to run it on, are left out.
    """
    running = [record for record in records if _must_run(record)]
    return {record["task_id"]: found for record, found in zip(running, _recorded(running), strict=True)}


def tests_and_checker(
    record: dict[str, str], recording: Recording | UnsupportedAssert | None, *, visible: int
) -> dict[str, Any]:
    """The fields ``tests`` and ``checker`` of a problem's task. visible: tests that prompts may show.

    recording: what :func:`record_tests` has of the problem. Raises :class:`UnsupportedAssert`.
    """
    if isinstance(recording, UnsupportedAssert):
        raise recording
    tests = recording.tests if recording else parse_tests(record["test"])
    return {
        "tests": [{**test, "visible": i < visible} for i, test in enumerate(tests)],
        "checker": recording.checker if recording else None,
    }


def reference(record: dict[str, str]) -> str:
    """The reference solution as a program."""
    return f"{record['prompt']}{record['canonical_solution']}"


def _must_run(record: dict[str, str]) -> bool:
    try:
        parse_tests(record["test"])
    except UnsupportedAssert:
        return isinstance(record.get("canonical_solution"), str)
    return False


def _recorded(records: Sequence[dict[str, str]]) -> list[Recording | UnsupportedAssert]:
    if not records:
        return []
    programs: list[str | UnsupportedAssert] = []
    for record in records:
        try:
            recorder = _RECORDER.format(entry_point=record["entry_point"])
            programs.append(f"{reference(record)}\n\n{_instrumented(record['test'])}{recorder}")
        except UnsupportedAssert as error:
            programs.append(error)
    sources = [program for program in programs if isinstance(program, str)]
    try:
        # A thread of its own, as this may be called where an event loop runs already.
        with ThreadPoolExecutor(1) as pool:
            results = iter(pool.submit(asyncio.run, _run(sources)).result())
    except SandboxUnavailable as error:
        reason = UnsupportedAssert(f"the test must be run to be known, in a jail: {error}")
        return [reason if isinstance(program, str) else program for program in programs]
    return [
        program if isinstance(program, UnsupportedAssert) else _read(record, next(results))
        for record, program in zip(records, programs, strict=True)
    ]


async def _run(sources: Sequence[str]) -> list[FunctionResult]:
    async with Sandbox(concurrency=2, limits=LIMITS) as sandbox:
        return await asyncio.gather(*(sandbox.run_function(source, "vpo_record") for source in sources))


class _Instrument(ast.NodeTransformer):
    """Puts a note after each assert that it was passed. Asserts are numbered in order of the text."""

    def __init__(self) -> None:
        self.count = 0

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        note = ast.parse(f"vpo_asserted({self.count})").body[0]
        self.count += 1
        return [node, note]


def _instrumented(test: str) -> str:
    return ast.unparse(ast.fix_missing_locations(_Instrument().visit(check_function(test)[0]))) + "\n"


def _read(record: dict[str, str], result: FunctionResult) -> Recording | UnsupportedAssert:
    if not result.verdict.passed:
        return UnsupportedAssert(f"the reference solution does not pass its test: {result.verdict.message}")
    try:
        return _recording(record, result.value)
    except UnsupportedAssert as error:
        return error


def _recording(record: dict[str, str], asserted: list[tuple[int, list[tuple[str, Any]]]]) -> Recording:
    conditions = [node.test for node in _asserts(check_function(record["test"])[0])]
    tests: list[dict[str, Any]] = []
    answers: dict[str, Any] = {}
    for number, calls in asserted:
        if len(calls) != 1:
            shown = " ".join(ast.unparse(conditions[number]).split())[:120]
            raise UnsupportedAssert(f"{len(calls)} calls of candidate belong to one assert: {shown}")
        given, value = calls[0]
        answers[given] = value
        compare = "exact" if is_equality(conditions[number]) else "checker"
        tests.append({**_arguments(given), "expected": value, "compare": compare})
    if not tests:
        raise UnsupportedAssert("the test asserts nothing about candidate")
    checked = any(test["compare"] == "checker" for test in tests)
    checker = (
        f"{reference(record)}\n\n{record['test']}\n\n{_CHECKER.format(answers=repr(answers))}" if checked else None
    )
    return Recording(tests=tuple(tests), checker=checker)


def _asserts(module: ast.Module) -> list[ast.Assert]:
    """The asserts in the order in which :class:`_Instrument` numbers them."""
    found: list[ast.Assert] = []

    class Collect(ast.NodeVisitor):
        def visit_Assert(self, node: ast.Assert) -> None:
            found.append(node)

    Collect().visit(module)
    return found


def _arguments(given: str) -> dict[str, Any]:
    try:
        return arguments_document(read_arguments(given))
    except ValueError:
        raise UnsupportedAssert(f"candidate is called with what is no literal: {given[:80]}") from None
