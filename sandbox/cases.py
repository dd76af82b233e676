"""What is asked of a program: the two kinds of test, and an evaluator's answer."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from sandbox.verdict import Verdict

DEFAULT_TOLERANCE = 1e-6

CallComparison = Literal["exact", "float"]
StdioComparison = Literal["whitespace", "exact", "float"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CallTest:
    """Call the entry point with ``args`` and compare what it returns with ``expected``.

    args, expected: anything JSON can carry (tuples count as lists). Answers are compared after a trip through JSON.
    compare: ``exact`` (``1`` equals ``1.0`` but never ``True``) or ``float`` (numbers may differ by ``tolerance``,
    relative to the expected number's size or absolute, whichever is larger). NaN matches NaN in both.
    Raises :class:`ValueError` naming the field if a value has no JSON form or a setting is out of range.
    """

    name: str
    args: tuple[Any, ...] = ()
    expected: Any = None
    compare: CallComparison = "exact"
    tolerance: float = DEFAULT_TOLERANCE

    def __post_init__(self) -> None:
        _check_choice(self.compare, ("exact", "float"))
        _check_tolerance(self.tolerance)
        object.__setattr__(self, "args", tuple(_through_json("args", list(self.args))))
        object.__setattr__(self, "expected", _through_json("expected", self.expected))


@dataclass(frozen=True, kw_only=True, slots=True)
class StdioTest:
    """Run the program with ``stdin`` on standard input and compare its standard output with ``expected``.

    compare: ``whitespace`` (trailing blanks of lines and trailing blank lines do not count), ``exact``, or ``float``
    (word by word; numbers may differ by ``tolerance`` as in :class:`CallTest`).
    """

    name: str
    stdin: str = ""
    expected: str = ""
    compare: StdioComparison = "whitespace"
    tolerance: float = DEFAULT_TOLERANCE

    def __post_init__(self) -> None:
        _check_choice(self.compare, ("whitespace", "exact", "float"))
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


def _through_json(name: str, value: Any) -> Any:
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"test {name} has no JSON form ({error}); use lists, objects, strings and numbers") from error


def _check_choice(compare: str, choices: tuple[str, ...]) -> None:
    if compare not in choices:
        raise ValueError(f"test compare is {compare!r}; choose one of {', '.join(choices)}")


def _check_tolerance(tolerance: float) -> None:
    if not 0 <= tolerance < float("inf"):
        raise ValueError(f"test tolerance must be zero or more and finite, not {tolerance!r}")
