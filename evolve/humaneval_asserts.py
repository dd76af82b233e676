"""The asserts of a HumanEval test that can be read without running anything, as test documents.

Understood, with literal arguments: ``assert candidate(..) == VALUE`` and the reverse, ``assert candidate(..)``,
``assert not candidate(..)``, ``assert candidate(..) is VALUE``, and ``assert abs(candidate(..) - VALUE) < TOLERANCE``;
``tuple(..)`` or ``list(..)`` around both sides of an equality changes nothing, as answers come back as lists.
Arithmetic on literals counts as a literal; ``assert True`` is dropped. A tolerance is relative for expected numbers
above 1 (see :class:`sandbox.cases.CallTest`).
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any


class UnsupportedAssert(ValueError):  # noqa: N818 (says what it found)
    """A problem's test cannot be turned into call tests; the message shows the statement and says why."""


def parse_tests(source: str) -> list[dict[str, Any]]:
    """The asserts of a ``check(candidate)`` function as test documents, in order. Raises :class:`UnsupportedAssert`."""
    tests = []
    for statement in check_function(source)[1].body:
        if isinstance(statement, ast.Pass) or _is_without_effect(statement):
            continue
        if not isinstance(statement, ast.Assert):
            raise UnsupportedAssert(f"not an assert: {_shown(statement)}")
        if not (isinstance(statement.test, ast.Constant) and statement.test.value is True):
            tests.append(_one(statement))
    if not tests:
        raise UnsupportedAssert("the test asserts nothing about candidate")
    return tests


def check_function(source: str) -> tuple[ast.Module, ast.FunctionDef]:
    """The test's syntax tree and the ``check`` function in it. Raises :class:`UnsupportedAssert`."""
    try:
        module = ast.parse(source)
    except SyntaxError as error:
        raise UnsupportedAssert(f"the test is not valid Python: {error}") from None
    checks = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == "check"]
    if len(checks) != 1:
        raise UnsupportedAssert("the test has no function check(candidate)")
    return module, checks[0]


def is_equality(condition: ast.expr) -> bool:
    """Whether a condition compares what one call of ``candidate`` returns with something else."""
    if not isinstance(condition, ast.Compare) or len(condition.ops) != 1 or not isinstance(condition.ops[0], ast.Eq):
        return False
    sides = [_unwrapped(condition.left), _unwrapped(condition.comparators[0])]
    return sum(map(_mentions_candidate, sides)) == 1 and any(map(_is_candidate, sides))


def _mentions_candidate(node: ast.expr) -> bool:
    return any(isinstance(inner, ast.Name) and inner.id == "candidate" for inner in ast.walk(node))


def _unwrapped(node: ast.expr) -> ast.expr:
    """What is inside of ``tuple(..)`` or ``list(..)``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("tuple", "list"):
        return node.args[0] if len(node.args) == 1 and not node.keywords else node
    return node


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
        return {**_arguments(condition), "expected": True}
    if isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not) and _is_candidate(condition.operand):
        return {**_arguments(condition.operand), "expected": False}
    if not isinstance(condition, ast.Compare) or len(condition.ops) != 1:
        raise UnsupportedAssert("not a comparison with candidate(...)")
    left, relation, right = condition.left, condition.ops[0], condition.comparators[0]
    if isinstance(relation, ast.Eq) and _unwrapped(left) is not left and _unwrapped(right) is not right:
        left, right = _unwrapped(left), _unwrapped(right)
    if isinstance(relation, ast.Eq | ast.Is):
        call, value = (left, right) if _is_candidate(left) else (right, left)
        if not _is_candidate(call):
            raise UnsupportedAssert("not a comparison with candidate(...)")
        return {**_arguments(call), "expected": _json(_literal(value))}
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
    return {**_arguments(call), "expected": expected, "compare": "float", "tolerance": float(tolerance)}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_candidate(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "candidate"


def _arguments(node: ast.expr) -> dict[str, Any]:
    if not isinstance(node, ast.Call) or node.keywords or any(isinstance(arg, ast.Starred) for arg in node.args):
        raise UnsupportedAssert("candidate is called with keyword or starred arguments")
    return arguments_document(tuple(_literal(arg) for arg in node.args))


def arguments_document(values: tuple[Any, ...]) -> dict[str, Any]:
    """Arguments as a test document has them: ``args``, or ``args_literal`` where JSON cannot carry them."""
    if all(map(_is_json, values)):
        return {"args": list(values)}
    return {"args_literal": repr(values)}


def _is_json(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_json, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
    return value is None or isinstance(value, bool | int | float | str)


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


def _json(value: Any) -> Any:
    """An expected value, tuples as lists: so answers come back."""
    if isinstance(value, list | tuple):
        return [_json(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _json(item) for key, item in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise UnsupportedAssert(f"JSON has no {type(value).__name__} such as {str(value)[:40]}")
