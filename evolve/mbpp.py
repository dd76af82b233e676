"""MBPP's JSON lines (both editions, full and sanitized) as tests tasks: one test, and one reward component, per assert.

A record is read as HumanEval's are (:mod:`evolve.humaneval_asserts`, :mod:`evolve.humaneval_recording`), with the
function that the first assert calls in the place of ``candidate``. MBPP's own protocol shows a model the asserts, since
its statements do not say what the function is called; so the first ones are visible, and the statement names it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from evolve.humaneval import Skipped
from evolve.humaneval_asserts import UnsupportedAssert
from evolve.humaneval_recording import Recording, record_tests, tests_and_checker
from evolve.strict import explain
from evolve.tests_task import TestsTask

VISIBLE = 1


def is_mbpp(record: Any) -> bool:
    """Whether a record has MBPP's fields; the statement is in ``text`` or, in the sanitized edition, in ``prompt``."""
    if not isinstance(record, dict) or not isinstance(record.get("code"), str) or "task_id" not in record:
        return False
    tests = record.get("test_list")
    asserts = isinstance(tests, list) and bool(tests) and all(isinstance(test, str) for test in tests)
    return asserts and isinstance(record.get("text", record.get("prompt")), str)


def read_mbpp(records: Iterable[Any], *, visible: int = VISIBLE) -> tuple[list[TestsTask], list[Skipped]]:
    """Tasks, and the problems that could not become one. visible: tests of each problem that prompts may show."""
    tasks: list[TestsTask] = []
    skipped: list[Skipped] = []
    known: list[tuple[dict[str, Any], dict[str, str]]] = []
    for number, record in enumerate(records):
        if not is_mbpp(record):
            skipped.append(Skipped(name=f"record {number}", reason="needs task_id, code, test_list and text or prompt"))
            continue
        try:
            known.append((record, _as_humaneval(record)))
        except UnsupportedAssert as error:
            skipped.append(Skipped(name=task_name(record), reason=str(error)))
    recordings = record_tests([like for _, like in known])
    for record, like in known:
        try:
            tasks.append(_task(record, like, recordings.get(like["task_id"]), visible))
        except UnsupportedAssert as error:
            skipped.append(Skipped(name=like["task_id"], reason=str(error)))
        except ValidationError as error:
            skipped.append(Skipped(name=like["task_id"], reason=explain(error)))
    return tasks, skipped


def reference(record: dict[str, Any]) -> str:
    """The reference solution of a record, as a program."""
    return str(record["code"]).replace("\r\n", "\n").expandtabs(4) + "\n"


def task_name(record: dict[str, Any]) -> str:
    """What the task of a record is called."""
    return f"MBPP/{record['task_id']}"


def _task(
    record: dict[str, Any], like: dict[str, str], recording: Recording | UnsupportedAssert | None, visible: int
) -> TestsTask:
    text = record["text"] if isinstance(record.get("text"), str) else record["prompt"]
    return TestsTask.model_validate(
        {
            "name": like["task_id"],
            "statement": f"{text.strip()}\n\nThe function is called {like['entry_point']}.",
            "entry_point": like["entry_point"],
            **tests_and_checker(like, recording, visible=visible),
        }
    )


def _as_humaneval(record: dict[str, Any]) -> dict[str, str]:
    """The record in HumanEval's form. Raises :class:`UnsupportedAssert`."""
    asserts = [*record["test_list"], *(record.get("challenge_test_list") or [])]
    setup = [record.get("test_setup_code") or "", *(record.get("test_imports") or [])]
    code = reference(record)
    entry_point = _entry_point(code, record["test_list"][0])
    try:
        body = ast.parse("\n".join(asserts)).body
    except SyntaxError as error:
        raise UnsupportedAssert(f"the test is not valid Python: {error}") from None
    renamed = [ast.unparse(_Renamed(entry_point).visit(statement)) for statement in body]
    lines = "\n".join(f"    {line}" for text in renamed for line in text.splitlines())
    return {
        "task_id": task_name(record),
        "prompt": "",
        "canonical_solution": code,
        "entry_point": entry_point,
        "test": "\n".join([*setup, "def check(candidate):", lines, ""]),
    }


class _Renamed(ast.NodeTransformer):
    """Calls of one function as calls of ``candidate``."""

    def __init__(self, name: str) -> None:
        self._name = name

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name("candidate", node.ctx) if node.id == self._name else node


def _entry_point(code: str, test: str) -> str:
    """The function of ``code`` that ``test`` calls. Raises :class:`UnsupportedAssert`."""
    try:
        defined = {node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)}
        calls = [node.func for node in ast.walk(ast.parse(test.strip())) if isinstance(node, ast.Call)]
    except SyntaxError as error:
        raise UnsupportedAssert(f"the solution or its test is not valid Python: {error}") from None
    named = [function.id for function in calls if isinstance(function, ast.Name) and function.id in defined]
    if not named:
        raise UnsupportedAssert(f"the first test calls no function of the solution: {test.strip()[:120]}")
    return named[0]
