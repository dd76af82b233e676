"""The tests format: a statement, an entry point (or standard input) and a list of tests, one reward component each."""

from __future__ import annotations

import ast
import keyword
import math
import re
import warnings
from collections.abc import Iterator
from dataclasses import fields
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Discriminator, Field, JsonValue, Tag, field_validator, model_validator

from evolve.program import Evaluation, parse_python
from evolve.prompts import ShownTest
from evolve.strict import StrictModel, unknown_key
from sandbox.cases import DEFAULT_TOLERANCE, CallComparison, CallTest, StdioComparison, StdioTest
from sandbox.checking import FUNCTION as CHECK
from sandbox.languages import LANGUAGES
from sandbox.limits import Limits
from sandbox.verdict import Status

Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Text = Annotated[str, Field(max_length=1_000_000)]

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_OTHER_ANSWERS = {
    "unordered": ", in any order",
    "unordered_nested": ", in any order at every level",
    "checker": ", or anything else that is right by the statement",
}


class _Case(StrictModel):
    name: Name | None = None
    tolerance: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] | None = None
    visible: bool = True


class CallCase(_Case):
    """One call of the entry point.

    name: of the reward component; ``t00``, ``t01``, ... by position unless given.
    args: positional arguments, JSON values. args_literal: instead of ``args``, a Python tuple as text, for what JSON
    lacks: ``"((1, 2), {5: 'a'})"`` passes a tuple and a dictionary with a number as key.
    expected: the JSON value it must return (tuples come back as lists).
    compare, tolerance: see :class:`sandbox.cases.CallTest`; giving a tolerance chooses ``float``, and a task with a
    checker uses that where neither is given.
    visible: whether prompts show the test; hidden ones are only counted.
    """

    args: tuple[JsonValue, ...] | None = None
    args_literal: Text | None = None
    expected: JsonValue
    compare: CallComparison | None = None

    @field_validator("args", "args_literal", "expected")
    @classmethod
    def _storable(cls, value: Any) -> Any:
        check_json(value)
        return value

    @field_validator("args_literal")
    @classmethod
    def _tuple(cls, value: str | None) -> str | None:
        if value is not None:
            read_arguments(value)
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        _check_tolerance(self.compare, self.tolerance)
        if (self.args is None) == (self.args_literal is None):
            raise ValueError("a test of an entry point needs either args or args_literal, and not both")
        return self

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The positional arguments as Python values."""
        return self.args if self.args is not None else read_arguments(self.args_literal or "()")

    def comparison(self, *, checked: bool) -> CallComparison:
        """How answers are compared, in a task with or without a checker."""
        return self.compare or ("float" if self.tolerance is not None else "checker" if checked else "exact")

    def as_test(self, *, checked: bool = False) -> CallTest:
        """The test as the sandbox takes it. checked: whether the task has a checker."""
        compare = self.comparison(checked=checked)
        tolerance = DEFAULT_TOLERANCE if self.tolerance is None else self.tolerance
        return CallTest(
            name=str(self.name), args=self.arguments, expected=self.expected, compare=compare, tolerance=tolerance
        )


class StdinCase(_Case):
    """One execution of the whole program: ``stdin`` in, ``expected`` on standard output. Else as :class:`CallCase`.

    compare, tolerance: see :class:`sandbox.cases.StdioTest`; giving a tolerance chooses ``float``, and a task with a
    checker uses that where neither is given.
    """

    stdin: Text
    expected: Text
    compare: StdioComparison | None = None

    @field_validator("stdin", "expected")
    @classmethod
    def _storable(cls, value: str) -> str:
        check_json(value)
        return value

    @model_validator(mode="after")
    def _tolerance_is_used(self) -> Self:
        _check_tolerance(self.compare, self.tolerance)
        return self

    def comparison(self, *, checked: bool) -> StdioComparison:
        """How outputs are compared, in a task with or without a checker."""
        return self.compare or ("float" if self.tolerance is not None else "checker" if checked else "whitespace")

    def as_test(self, *, checked: bool = False) -> StdioTest:
        """The test as the sandbox takes it. checked: whether the task has a checker."""
        compare = self.comparison(checked=checked)
        tolerance = DEFAULT_TOLERANCE if self.tolerance is None else self.tolerance
        return StdioTest(
            name=str(self.name), stdin=self.stdin, expected=self.expected, compare=compare, tolerance=tolerance
        )


def _check_tolerance(compare: str | None, tolerance: float | None) -> None:
    if tolerance is not None and compare not in (None, "float"):
        raise ValueError(f"tolerance {tolerance} has no effect with compare {compare!r}: use 'float', or remove it")


def read_arguments(text: str) -> tuple[Any, ...]:
    """The value of a Python tuple literal; nothing is executed. Raises ``ValueError``."""
    try:
        with warnings.catch_warnings(action="ignore"):
            value = ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        value = None
    if not isinstance(value, tuple):
        raise ValueError(f"args_literal must be a Python tuple such as '((1, 2), \\'a\\')', not {text[:80]!r}")
    return value


def _kind(value: Any) -> str:
    given = value if isinstance(value, dict) else vars(value) if isinstance(value, StrictModel) else {}
    return "stdin" if "stdin" in given else "call"


Case = Annotated[Annotated[CallCase, Tag("call")] | Annotated[StdinCase, Tag("stdin")], Discriminator(_kind)]


class TestsTask(StrictModel):
    """A task judged by tests.

    statement: what to write, for the prompt.
    entry_point: the function that call tests call; without it the tests are ``stdin`` tests of the whole program.
    tests: at least one, all of one kind, with different names.
    seed_program: where the search starts; a stub that passes nothing unless given.
    preamble: Python that runs before every candidate, in the same module and without moving its line numbers: imports
        and helper functions that candidates may use as if they had written them.
    checker: Python that defines ``check(args, expected, actual)``, or ``check(stdin, expected, actual)`` without an
        entry point: whether an answer is right, as a bool, a number in [0, 1] (partial credit) or either with a
        message. It runs in a jail of its own and is never shown in prompts. Tests that give neither ``compare`` nor
        ``tolerance`` use it.
    limits: fields of :class:`sandbox.limits.Limits`; the sandbox's own values for what is not given.
    language: ``python``, or for standard input any of :data:`sandbox.languages.LANGUAGES`.
    target: the task scalar (mean of the tests) at which the task counts as solved, in (0, 1].
    """

    __test__: ClassVar[bool] = False  # not a test class for pytest

    format: Literal["tests"] = "tests"
    name: Name
    statement: Annotated[str, Field(min_length=1, max_length=100_000)]
    entry_point: str | None = None
    tests: Annotated[tuple[Case, ...], Field(min_length=1, max_length=2_000)]
    seed_program: Text | None = None
    preamble: Text = ""
    checker: Text | None = None
    limits: dict[str, float] = Field(default_factory=dict)
    target: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    language: str = "python"

    @field_validator("entry_point")
    @classmethod
    def _identifier(cls, value: str | None) -> str | None:
        if value is not None and (not value.isidentifier() or keyword.iskeyword(value)):
            raise ValueError("entry_point must be the name of a Python function")
        return value

    @field_validator("name", "statement", "seed_program", "preamble", "checker")
    @classmethod
    def _storable(cls, value: str | None) -> str | None:
        check_json(value)
        return value

    @field_validator("language")
    @classmethod
    def _known_language(cls, value: str) -> str:
        if value not in LANGUAGES:
            raise ValueError(f"language must be one of {', '.join(LANGUAGES)}")
        return value

    @field_validator("preamble")
    @classmethod
    def _preamble_parses(cls, value: str) -> str:
        _parsed("preamble", value)
        return value

    @field_validator("checker")
    @classmethod
    def _checker_checks(cls, value: str | None) -> str | None:
        if value is not None:
            names = {node.name for node in _parsed("checker", value).body if isinstance(node, ast.FunctionDef)}
            if CHECK not in names:
                raise ValueError(f"checker defines no function {CHECK}(args, expected, actual): add it")
        return value

    @field_validator("limits")
    @classmethod
    def _limits(cls, value: dict[str, float]) -> dict[str, float]:
        check_limits(value)
        return value

    @field_validator("tests", mode="after")
    @classmethod
    def _name_tests(cls, tests: tuple[CallCase | StdinCase, ...]) -> tuple[CallCase | StdinCase, ...]:
        named = tuple(
            case if case.name is not None else case.model_copy(update={"name": f"t{i:02d}"})
            for i, case in enumerate(tests)
        )
        seen: dict[str | None, int] = {}
        for i, case in enumerate(named):
            if case.name in seen:
                raise ValueError(f"tests {seen[case.name]} and {i} are both named {case.name!r}: rename one")
            seen[case.name] = i
        return named

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        for i, case in enumerate(self.tests):
            if self.entry_point is not None and isinstance(case, StdinCase):
                raise ValueError(
                    f"tests[{i}] has stdin, but the task has entry_point {self.entry_point!r}: "
                    "give the test args, or remove entry_point"
                )
            if self.entry_point is None and isinstance(case, CallCase):
                raise ValueError(f"tests[{i}] has args, but the task has no entry_point: add it, or give stdin")
        return self

    @model_validator(mode="after")
    def _only_python(self) -> Self:
        for name in ("entry_point", "preamble"):
            if self.language != "python" and getattr(self, name):
                raise ValueError(f"{name} is for Python programs: remove it, or set language to 'python'")
        return self

    @model_validator(mode="after")
    def _sandbox_takes_the_tests(self) -> Self:
        for i, case in enumerate(self.tests):
            try:
                case.as_test(checked=self.checker is not None)
            except ValueError as error:
                raise ValueError(f"tests[{i}]: {error}") from None
        return self

    @model_validator(mode="after")
    def _checker_is_used(self) -> Self:
        compares = [case.comparison(checked=self.checker is not None) for case in self.tests]
        if self.checker is None and "checker" in compares:
            raise ValueError(f"tests[{compares.index('checker')}] compares by 'checker', but the task has none: add it")
        if self.checker is not None and "checker" not in compares:
            raise ValueError("checker has no effect, as every test has another compare: remove it, or theirs")
        return self

    @property
    def components(self) -> tuple[str, ...]:
        """Names of the reward components, shape (d,): the tests' names."""
        return tuple(str(case.name) for case in self.tests)

    @property
    def call_tests(self) -> tuple[CallTest, ...]:
        """The tests as the sandbox takes them; empty for a stdin task."""
        checked = self.checker is not None
        return tuple(case.as_test(checked=checked) for case in self.tests if isinstance(case, CallCase))

    @property
    def stdio_tests(self) -> tuple[StdioTest, ...]:
        """The tests as the sandbox takes them; empty for a calls task."""
        checked = self.checker is not None
        return tuple(case.as_test(checked=checked) for case in self.tests if isinstance(case, StdinCase))

    @property
    def seed_source(self) -> str:
        """The program a search starts from."""
        if self.seed_program is not None:
            return self.seed_program
        return (
            f"def {self.entry_point}(*args):\n    return None\n" if self.entry_point else LANGUAGES[self.language].stub
        )

    @property
    def sandbox_limits(self) -> Limits | None:
        """The limits, or ``None`` where the task says nothing."""
        return make_limits(self.limits) if self.limits else None

    @property
    def hidden(self) -> int:
        """How many tests prompts do not show."""
        return sum(not case.visible for case in self.tests)

    def hidden_failed(self, evaluation: Evaluation) -> int:
        """How many of the hidden tests did not pass; those that were not run do not count."""
        return sum(
            not case.visible and status not in (Status.PASSED, Status.SKIPPED)
            for case, status in zip(self.tests, evaluation.statuses, strict=True)
        )

    def prompt_tests(self, evaluation: Evaluation | None) -> tuple[ShownTest, ...]:
        """The visible tests in order, with the verdicts of a program where there is one and the test was run."""
        checked = self.checker is not None
        statuses, messages = self._shown_verdicts(evaluation)
        return tuple(
            ShownTest(
                name=str(case.name),
                args=case.arguments if isinstance(case, CallCase) else (),
                stdin=case.stdin if isinstance(case, StdinCase) else None,
                expected=case.expected,
                status=statuses[i],
                message=messages[i],
                other_answers=_OTHER_ANSWERS.get(case.comparison(checked=checked), ""),
            )
            for i, case in enumerate(self.tests)
            if case.visible
        )

    def _shown_verdicts(self, evaluation: Evaluation | None) -> tuple[list[str | None], list[str]]:
        """Status and message of each test; none for tests that were not run."""
        if evaluation is None:
            return [None] * len(self.tests), [""] * len(self.tests)
        run = [status is not Status.SKIPPED for status in evaluation.statuses]
        statuses = [status.value if ran else None for status, ran in zip(evaluation.statuses, run, strict=True)]
        return statuses, [text if ran else "" for text, ran in zip(evaluation.messages, run, strict=True)]


def _parsed(field: str, source: str) -> ast.Module:
    tree = parse_python(source)
    if tree is None:
        raise ValueError(f"{field} is not valid Python")
    return tree


def check_limits(values: dict[str, float]) -> None:
    """Raise ``ValueError`` unless ``values`` are fields of :class:`Limits`, finite and positive."""
    known = [field.name for field in fields(Limits)]
    for key, value in values.items():
        if key not in known:
            raise ValueError(unknown_key(key, known))
        if not math.isfinite(value):
            raise ValueError(f"limits.{key} must be finite, not {value!r}")
    make_limits(values)


def make_limits(values: dict[str, float]) -> Limits:
    """:class:`Limits` from checked values; whole numbers where the field counts something."""
    whole = {field.name for field in fields(Limits) if isinstance(field.default, int)}
    changed: dict[str, Any] = {
        key: max(1, int(value)) if key in whole and value > 0 else value for key, value in values.items()
    }
    return Limits(**changed)


def check_json(value: Any) -> None:
    """Raise ``ValueError`` for what cannot be stored as JSON text: NaN, infinity, NUL and lone surrogates."""
    for item in _leaves(value):
        if isinstance(item, float) and not math.isfinite(item):
            raise ValueError(f"numbers must be finite, not {item!r}: JSON has no such number")
        if isinstance(item, str) and _UNSTORABLE.search(item):
            raise ValueError("text must be free of NUL characters and lone surrogates: they cannot be stored")


def _leaves(value: Any) -> Iterator[Any]:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(item.keys())
            waiting.extend(item.values())
        elif isinstance(item, list | tuple):
            waiting.extend(item)
        else:
            yield item
