"""Prompts of minicode, built from the same facts and by the same renderer as a search builds them."""

from __future__ import annotations

import numpy as np

from evolve.prompts import PromptContext, ShownProgram, ShownTest, render_completion
from trainer.domains.minicode.grammar import ENTRY_POINT, Program
from trainer.domains.minicode.language import TEMPLATE
from trainer.domains.minicode.problems import SHOWN, Problem

STATEMENT = "Write a Python function f(x) from a list of digits to a list of digits that fits the examples."


def prompt(problem: Problem, m: int, parent: Program | None = None) -> str:
    """The prompt for m answers; with a parent, a mutation prompt with its failing tests."""
    passed = problem.rewards(parent) if parent is not None else None
    context = PromptContext(
        statement=STATEMENT,
        entry_point=ENTRY_POINT,
        tests=tuple(_shown(problem, i, passed) for i in range(SHOWN)),
        hidden=problem.d - SHOWN,
        hidden_failed=0 if passed is None else int((passed[SHOWN:] == 0).sum()),
        parent=None if parent is None or passed is None else _shown_program(parent, passed),
        m=m,
    )
    return render_completion(TEMPLATE, context)


def _shown(problem: Problem, index: int, passed: np.ndarray | None) -> ShownTest:
    status = None if passed is None else "passed" if passed[index] else "wrong"
    return ShownTest(
        name=f"t{index:02d}",
        args=(list(problem.inputs[index]),),
        expected=list(problem.outputs[index]),
        status=status,
    )


def _shown_program(program: Program, passed: np.ndarray) -> ShownProgram:
    return ShownProgram(source=program.source, scalar=float(passed.mean()), passed=int(passed.sum()), total=len(passed))
