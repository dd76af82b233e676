"""Whether an answer is the expected one. Runs outside the jail, on plain JSON values and decoded text."""

from __future__ import annotations

import math
from typing import Any

from sandbox.cases import CallTest, StdioTest


def call_matches(test: CallTest, actual: Any) -> bool:
    """Compare a decoded JSON answer (at most :data:`sandbox.cases.MAX_DEPTH` levels deep) with the expected one."""
    if test.compare in ("unordered", "unordered_nested"):
        nested = test.compare == "unordered_nested"
        return _key(test.expected, unordered=True, nested=nested) == _key(actual, unordered=True, nested=nested)
    return values_match(test.expected, actual, test.tolerance if test.compare == "float" else 0.0)


def _key(value: Any, *, unordered: bool, nested: bool) -> str:
    """A text that is the same for values that match exactly, lists in any order where ``unordered``.

    nested: whether the order is free below the outermost list as well.
    """
    if isinstance(value, list):
        keys = [_key(item, unordered=nested, nested=nested) for item in value]
        return f"[{','.join(sorted(keys) if unordered else keys)}]"
    if isinstance(value, dict):
        items = [f"{name!r}:{_key(value[name], unordered=nested, nested=nested)}" for name in sorted(value)]
        return f"{{{','.join(items)}}}"
    if isinstance(value, float) and value.is_integer():
        return hex(int(value))
    return hex(value) if isinstance(value, int) and not isinstance(value, bool) else repr(value)


def values_match(expected: Any, actual: Any, tolerance: float) -> bool:
    """Compare JSON values; booleans match only booleans, other numbers by value within ``tolerance``."""
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, int | float) and isinstance(actual, int | float):
        return numbers_match(expected, actual, tolerance)
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(
            values_match(e, a, tolerance) for e, a in zip(expected, actual, strict=True)
        )
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(
            values_match(expected[key], actual[key], tolerance) for key in expected
        )
    return type(expected) is type(actual) and bool(expected == actual)


def numbers_match(expected: float, actual: float, tolerance: float) -> bool:
    """Whether |expected - actual| <= tolerance * max(1, |expected|); equal infinities and two NaNs match."""
    if expected == actual:
        return True
    try:
        wanted, got = float(expected), float(actual)
    except OverflowError:
        return False
    if math.isnan(wanted) or math.isnan(got):
        return math.isnan(wanted) and math.isnan(got)
    if math.isinf(wanted) or math.isinf(got):
        return False
    return tolerance > 0 and abs(wanted - got) <= tolerance * max(1.0, abs(wanted))


def stdio_matches(test: StdioTest, actual: str) -> bool:
    """Compare a program's standard output with the expected text."""
    if test.compare == "exact":
        return actual == test.expected
    if test.compare == "whitespace":
        return _without_trailing_blanks(actual) == _without_trailing_blanks(test.expected)
    if test.compare in ("unordered", "unordered_nested"):
        nested = test.compare == "unordered_nested"
        return _lines(actual, nested=nested) == _lines(test.expected, nested=nested)
    wanted, got = test.expected.split(), actual.split()
    return len(wanted) == len(got) and all(_words_match(w, g, test.tolerance) for w, g in zip(wanted, got, strict=True))


def _without_trailing_blanks(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _lines(text: str, *, nested: bool) -> list[list[str]]:
    """The lines in a fixed order, whole or (``nested``) as their words in a fixed order."""
    lines = _without_trailing_blanks(text)
    return sorted(sorted(line.split()) if nested else [line] for line in lines)


def _words_match(expected: str, actual: str, tolerance: float) -> bool:
    if expected == actual:
        return True
    try:
        return numbers_match(float(expected), float(actual), tolerance)
    except ValueError:
        return False
