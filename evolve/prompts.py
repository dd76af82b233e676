"""What a model is asked: the facts a prompt is made of, and the compact (completion) form.

A compact model carries its template in its manifest; it is rendered here for training and for search alike. The
template is data that may come over the network, so it runs in Jinja2's immutable sandbox. Its variables are the fields
of :class:`PromptContext`. The chat form for instruction models is in :mod:`evolve.chat`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment


class PromptError(ValueError):
    """A prompt template is broken or does not fit the task; the message says what failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTest:
    """A test that prompts may show.

    args: arguments of the entry point (``calls`` tasks). stdin: the input (``stdin`` tasks).
    status: the parent's verdict on it (``passed``, ``wrong``, ``error``, ...), ``None`` without a parent.
    message: why the parent does not pass it.
    other_answers: which answers are right besides ``expected``, as the end of a sentence; empty where none is.
    """

    name: str
    args: tuple[Any, ...] = ()
    stdin: str | None = None
    expected: Any = None
    status: str | None = None
    message: str = ""
    other_answers: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownProgram:
    """An earlier program of the run, as prompts see it. scalar in [0, 1]; passed, total: number of tests."""

    source: str
    scalar: float
    passed: int
    total: int
    metrics: dict[str, float] = field(default_factory=dict)
    artifacts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownChange:
    """A change that led to the parent. operator: how it was asked for. before, after: task scalars. diff: its lines."""

    operator: str
    before: float
    after: float
    diff: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptContext:
    """Everything a prompt may say.

    tests: the visible tests, with the parent's verdicts when there is a parent. hidden: number of tests not shown.
    hidden_failed: how many of those the parent does not pass (0 without a parent).
    preamble: code that runs before the program, whose names it may use.
    parent: the program to improve; ``None`` asks for a solution from scratch.
    inspirations: other good programs, best first. m: answers to ask for in one reply.
    edit: ``whole`` (complete programs) or ``diff`` (SEARCH/REPLACE blocks against the parent).
    operator: a key of :data:`evolve.operators.OPERATORS`. focus: names of the tests it is about.
    mate: a second parent to combine with. history: changes that led to the parent, oldest first.
    notes: what the run has learnt so far, a line each.
    several_files: whether programs are of several files (:mod:`evolve.files`). new_files: whether answers may add any.
    """

    statement: str
    entry_point: str | None = None
    language: str = "python"
    tests: tuple[ShownTest, ...] = ()
    hidden: int = 0
    hidden_failed: int = 0
    preamble: str = ""
    parent: ShownProgram | None = None
    inspirations: tuple[ShownProgram, ...] = ()
    m: int = 1
    edit: str = "whole"
    operator: str = "improve"
    focus: tuple[str, ...] = ()
    mate: ShownProgram | None = None
    history: tuple[ShownChange, ...] = ()
    notes: tuple[str, ...] = ()
    several_files: bool = False
    new_files: bool = False


_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=False
)


@lru_cache(maxsize=64)
def _compiled(template: str) -> Template:
    return _ENVIRONMENT.from_string(template)


@lru_cache(maxsize=64)
def template_variables(template: str) -> frozenset[str]:
    """The variables that a template mentions; none where it is broken (rendering says why)."""
    try:
        return frozenset(find_undeclared_variables(_ENVIRONMENT.parse(template)))
    except TemplateError:
        return frozenset()


def render_completion(template: str, context: PromptContext) -> str:
    """The prompt text for a completion model. Raises :class:`PromptError`."""
    values = {name: getattr(context, name) for name in PromptContext.__slots__}
    try:
        return _compiled(template).render(values)
    except (
        TemplateError,
        TypeError,
        ValueError,
        LookupError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise PromptError(f"the model's prompt template does not fit this task: {error}") from error
