"""The language of minicode: programs, their Python source, and a trusted interpreter.

A program is a Python function over a list of digits (0 to 9). It is straight-line (up to two operations) or piecewise
(one condition on the input, one or two operations in each branch). Every operation maps any list of digits to a list of
digits, never fails, and changes the length by a bounded amount, so that reward differences come from logic alone.

The interpreter runs table entries, not the text: answers outside the grammar have no meaning here and earn zero in
training. In a search the same source is judged by the sandbox; a test shows that both agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

Digits = tuple[int, ...]

OPERATIONS: dict[str, Callable[[list[int]], list[int]]] = {
    "x[::-1]": lambda x: x[::-1],
    "sorted(x)": lambda x: sorted(x),
    "x[1:]": lambda x: x[1:],
    "x[:-1]": lambda x: x[:-1],
    "x[::2]": lambda x: x[::2],
    "x[1:] + x[:1]": lambda x: x[1:] + x[:1],
    "x + x[:2]": lambda x: x + x[:2],
    "[(v + 1) % 10 for v in x]": lambda x: [(v + 1) % 10 for v in x],
    "[9 - v for v in x]": lambda x: [9 - v for v in x],
    "[v for v in x if v % 2 == 0]": lambda x: [v for v in x if v % 2 == 0],
    "[v for v in x if v > 3]": lambda x: [v for v in x if v > 3],
    "[max(v, 4) for v in x]": lambda x: [max(v, 4) for v in x],
}
"""Source of each operation (an expression over ``x``) and what it does."""

CONDITIONS: dict[str, Callable[[list[int]], bool]] = {
    "len(x) % 2 == 0": lambda x: len(x) % 2 == 0,
    "x[0] > x[-1]": lambda x: x[0] > x[-1],
    "x[0] > 4": lambda x: x[0] > 4,
    "len(x) > 4": lambda x: len(x) > 4,
    "max(x) > 7": lambda x: max(x) > 7,
}
"""Source of each condition (over a non-empty input ``x``) and what it decides."""

HEADER, FOOTER, ELSE = "def f(x):\n", "    return x\n", "    else:\n"
ENTRY_POINT = "f"


def if_line(condition: str) -> str:
    return f"    if {condition}:\n"


def operation_line(operation: str, depth: int) -> str:
    return f"{'    ' * depth}x = {operation}\n"


@dataclass(frozen=True, slots=True)
class Program:
    """``otherwise`` is empty and ``condition`` is ``None`` in a straight-line program."""

    then: tuple[str, ...]
    condition: str | None = None
    otherwise: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        if self.condition is None:
            return HEADER + "".join(operation_line(op, 1) for op in self.then) + FOOTER
        then = "".join(operation_line(op, 2) for op in self.then)
        otherwise = "".join(operation_line(op, 2) for op in self.otherwise)
        return HEADER + if_line(self.condition) + then + ELSE + otherwise + FOOTER

    def takes_then(self, x: Sequence[int]) -> bool:
        return self.condition is None or CONDITIONS[self.condition](list(x))

    def __call__(self, x: Sequence[int]) -> Digits:
        value = list(x)
        for operation in self.then if self.takes_then(x) else self.otherwise:
            value = OPERATIONS[operation](value)
        return tuple(value)


_LINES = {depth: {operation_line(op, depth): op for op in OPERATIONS} for depth in (1, 2)}
_IFS = {if_line(condition): condition for condition in CONDITIONS}
MAX_OPERATIONS = 4
"""Operations allowed in one branch of an answer (targets have at most two)."""


@lru_cache(maxsize=65536)
def parse(source: str) -> Program | None:
    """The program that a source text denotes, or ``None`` where it is outside the grammar."""
    lines = source.splitlines(keepends=True)
    if len(lines) < 2 or lines[0] != HEADER or lines[-1] != FOOTER:
        return None
    body = lines[1:-1]
    if body and body[0] in _IFS:
        if body.count(ELSE) != 1:
            return None
        middle = body.index(ELSE)
        then, otherwise = _operations(body[1:middle], 2), _operations(body[middle + 1 :], 2)
        return Program(then, _IFS[body[0]], otherwise) if then and otherwise else None
    then = _operations(body, 1)
    return None if then is None else Program(then)


def _operations(lines: Sequence[str], depth: int) -> tuple[str, ...] | None:
    table = _LINES[depth]
    if len(lines) > MAX_OPERATIONS or any(line not in table for line in lines):
        return None
    return tuple(table[line] for line in lines)
