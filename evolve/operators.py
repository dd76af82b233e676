"""Prompt operators: what the model is asked to do with a parent. One small interface, one registry.

An operator adds to a prompt what its kind of change needs (a mate, a test to mend) and says so in one sentence. A chat
prompt can carry all of them. A compact model only knows the prompts that it was trained on, so it gets an operator only
if its template mentions what that operator adds: ``mate`` (or ``inspirations``, where the mate then comes first) for
``crossover``, ``focus`` for ``repair``, ``operator`` for ``diverge`` and ``simplify``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from evolve.prompts import ShownTest

IMPROVE = "improve"
_NOT_FAILED = (None, "passed")
"""Statuses of tests that a program is not known to fail; ``None``: not run."""


class Operator(Protocol):
    """A kind of change."""

    @property
    def needs(self) -> frozenset[str]:
        """Variables of which a compact model's template must mention one; empty: every template will do."""
        ...

    @property
    def mates(self) -> bool:
        """Whether it shows a second parent, and cannot do without."""
        ...

    @property
    def instruction(self) -> str:
        """What it says to a chat model; ``{focus}`` are the tests it is about."""
        ...

    def focus(
        self, tests: Sequence[ShownTest], mate: Sequence[ShownTest], rng: np.random.Generator
    ) -> tuple[str, ...] | None:
        """Names of the tests it is about; ``None`` where it has nothing to work on.

        tests, mate: the shown tests with the verdicts of the parent and of the mate (empty without one).
        """
        ...


@dataclass(frozen=True, slots=True)
class _Plain:
    """Says something about the whole program."""

    instruction: str
    needs: frozenset[str] = frozenset()
    mates: bool = False

    def focus(
        self, tests: Sequence[ShownTest], mate: Sequence[ShownTest], rng: np.random.Generator
    ) -> tuple[str, ...] | None:
        return ()


@dataclass(frozen=True, slots=True)
class _Crossover:
    """Two parents whose passed tests complement each other."""

    instruction: str = (
        "Combine what is right in both programs into one that passes what either of them passes. "
        "The second program passes what the current one fails: {focus}."
    )
    needs: frozenset[str] = frozenset({"mate", "inspirations"})
    mates: bool = True

    def focus(
        self, tests: Sequence[ShownTest], mate: Sequence[ShownTest], rng: np.random.Generator
    ) -> tuple[str, ...] | None:
        pairs = zip(tests, mate, strict=True)
        return tuple(own.name for own, other in pairs if other.status == "passed" and own.status not in _NOT_FAILED)


@dataclass(frozen=True, slots=True)
class _Repair:
    """One failing test, drawn at random."""

    instruction: str = "Find out why the test {focus} fails and mend that, without breaking any test that passes."
    needs: frozenset[str] = frozenset({"focus"})
    mates: bool = False

    def focus(
        self, tests: Sequence[ShownTest], mate: Sequence[ShownTest], rng: np.random.Generator
    ) -> tuple[str, ...] | None:
        failing = [test.name for test in tests if test.status not in _NOT_FAILED]
        return (failing[int(rng.integers(len(failing)))],) if failing else None


OPERATORS: dict[str, Operator] = {
    IMPROVE: _Plain(""),
    "crossover": _Crossover(),
    "repair": _Repair(),
    "diverge": _Plain(
        "Solve the task by a fundamentally different approach than the current program's.", frozenset({"operator"})
    ),
    "simplify": _Plain(
        "Make the program simpler and shorter: it must still pass every test that it passes now.",
        frozenset({"operator"}),
    ),
}


def carried(operator: str, variables: frozenset[str] | None) -> bool:
    """Whether a prompt can carry an operator. variables: those of a compact template, ``None`` for chat."""
    needs = OPERATORS[operator].needs
    return variables is None or not needs or bool(needs & variables)
