"""What is asked of a program: the two kinds of test, and an evaluator's answer."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from sandbox.verdict import Verdict

DEFAULT_TOLERANCE = 1e-6
MAX_DEPTH = 64

CallComparison = Literal["exact", "float", "unordered", "unordered_nested", "checker"]
StdioComparison = Literal["whitespace", "exact", "float", "unordered", "unordered_nested", "checker"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CallTest:
    """Call the entry point with ``args`` and compare what it returns with ``expected``.

    args: plain Python values: what JSON can carry, and tuples, sets, bytes and dictionaries with any plain keys.
    expected: anything JSON can carry (tuples count as lists). Answers are compared after a trip through JSON.
    compare:
        ``exact``: ``1`` equals ``1.0`` but never ``True``.
        ``float``: numbers may differ by ``tolerance``, relative to the expected number's size or absolute, whichever
        is larger.
        ``unordered``: the answer is a list of the same items, as often, in any order; the items themselves are
        compared exactly. ``unordered_nested``: the same at every level (sets of sets, groups in any order).
        ``checker``: the task's own checker decides (see :meth:`sandbox.runner.Sandbox.grade_calls`).
        NaN matches NaN in all of them.
    Raises :class:`ValueError` naming the field if a value cannot be used or a setting is out of range.
    """

    name: str
    args: tuple[Any, ...] = ()
    expected: Any = None
    compare: CallComparison = "exact"
    tolerance: float = DEFAULT_TOLERANCE

    def __post_init__(self) -> None:
        _check_choice(self.compare, get_args(CallComparison))
        _check_tolerance(self.tolerance)
        object.__setattr__(self, "args", tuple(_plain("args", value) for value in self.args))
        object.__setattr__(self, "expected", _through_json("expected", self.expected))


@dataclass(frozen=True, kw_only=True, slots=True)
class StdioTest:
    """Run the program with ``stdin`` on standard input and compare its standard output with ``expected``.

    compare:
        ``whitespace``: trailing blanks of lines and trailing blank lines do not count.
        ``exact``: character by character.
        ``float``: word by word; numbers may differ by ``tolerance`` as in :class:`CallTest`.
        ``unordered``: the same lines, as often, in any order (trailing blanks and trailing blank lines do not count).
        ``unordered_nested``: besides, the words of a line may come in any order.
        ``checker``: the task's own checker decides.
    """

    name: str
    stdin: str = ""
    expected: str = ""
    compare: StdioComparison = "whitespace"
    tolerance: float = DEFAULT_TOLERANCE

    def __post_init__(self) -> None:
        _check_choice(self.compare, get_args(StdioComparison))
        _check_tolerance(self.tolerance)


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluatorResult:
    """What a task's own evaluator said about one program.

    metrics: finite numbers only. A metric that was NaN, infinite or no number is left out and named in the artifact
    ``dropped_metrics``, so that no consumer meets a NaN.
    artifacts: bounded texts; where the evaluator failed they also hold the tails of its ``stdout`` and ``stderr``.
    verdict: ``PASSED`` when ``evaluate`` returned at least one finite metric; it is no judgement of the program.
    """

    verdict: Verdict
    metrics: dict[str, float] = field(default_factory=dict)
    artifacts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionResult:
    """What a function returned in a jail: ``value`` if ``verdict`` is ``PASSED``, else ``None``."""

    verdict: Verdict
    value: Any = None


def deeper_than(value: Any, depth: int) -> bool:
    """Whether lists and objects are nested more than ``depth`` levels deep; never recurses."""
    level = [value]
    for _ in range(depth + 1):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, list | tuple):
                below.extend(item)
        if not below:
            return False
        level = below
    return True


def _through_json(name: str, value: Any) -> Any:
    try:
        copy = json.loads(json.dumps(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"test {name} has no JSON form ({error}); use lists, objects, strings and numbers") from error
    if deeper_than(copy, MAX_DEPTH):
        raise ValueError(f"test {name} is nested more than {MAX_DEPTH} levels deep; make it flatter")
    return copy


def _plain(name: str, value: Any, level: int = 0) -> Any:
    """A copy of ``value`` made of built-in types alone, which marshal carries into the jail as they are."""
    if level > MAX_DEPTH:
        raise ValueError(f"test {name} is nested more than {MAX_DEPTH} levels deep; make it flatter")
    if value is None or type(value) in (bool, int, float, complex, str, bytes):
        return value
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(_plain(name, item, level + 1) for item in value)
    if type(value) is dict:
        return {_plain(name, key, level + 1): _plain(name, item, level + 1) for key, item in value.items()}
    raise ValueError(f"test {name} holds a {type(value).__name__}; use plain Python values")


def _check_choice(compare: str, choices: tuple[str, ...]) -> None:
    if compare not in choices:
        raise ValueError(f"test compare is {compare!r}; choose one of {', '.join(choices)}")


def _check_tolerance(tolerance: float) -> None:
    if not 0 <= tolerance < float("inf"):
        raise ValueError(f"test tolerance must be zero or more and finite, not {tolerance!r}")
