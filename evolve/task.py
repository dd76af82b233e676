"""Tasks: what a program should do and how that is judged. One discriminated union, and reading it from files.

``format: tests`` is :class:`evolve.tests_task.TestsTask`, ``format: openevolve`` is
:class:`evolve.openevolve_task.OpenEvolveTask`. Both are JSON documents: ``model_dump(mode="json")`` and back gives the
same task.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from evolve.humaneval import Skipped
from evolve.openevolve_task import OpenEvolveTask
from evolve.program import Evaluation, Program
from evolve.prompts import PromptContext, ShownProgram
from evolve.shown import fenced_program
from evolve.suite import Suite, TaskError, load_suite, load_task
from evolve.tests_task import CallCase, StdinCase, TestsTask

__all__ = [
    "CallCase",
    "OpenEvolveTask",
    "Skipped",
    "StdinCase",
    "Suite",
    "Task",
    "TaskError",
    "TestsTask",
    "load_suite",
    "load_task",
    "prompt_context",
]

Task = Annotated[TestsTask | OpenEvolveTask, Field(discriminator="format")]


def prompt_context(
    task: TestsTask | OpenEvolveTask,
    parent: Program | None = None,
    inspirations: Sequence[Program] = (),
    m: int = 1,
    edit: str = "whole",
    mate: Program | None = None,
) -> PromptContext:
    """Everything a prompt may say about a task, a parent to improve (or none) and other programs of the run.

    mate: a second parent.

    Hidden tests are only counted: neither their content nor what a program did with them is in the context.
    """
    evaluation = parent.evaluation if parent else None
    tests = task if isinstance(task, TestsTask) else None
    folder = task if isinstance(task, OpenEvolveTask) and task.several_files else None
    artifacts = tests is not None or (isinstance(task, OpenEvolveTask) and task.shows_artifacts)
    return PromptContext(
        statement=task.statement if tests or parent else _with_interface(task),
        entry_point=task.entry_point,
        language=task.language,
        tests=tests.prompt_tests(evaluation) if tests else (),
        hidden=tests.hidden if tests else 0,
        hidden_failed=tests.hidden_failed(evaluation) if tests and evaluation else 0,
        preamble=tests.preamble if tests else "",
        parent=_shown(parent, artifacts=artifacts) if parent else None,
        inspirations=tuple(_shown(program, artifacts=False) for program in inspirations),
        m=m,
        edit=edit,
        mate=_shown(mate, artifacts=False) if mate else None,
        several_files=folder is not None,
        new_files=folder is not None and folder.new_files,
    )


def _with_interface(task: TestsTask | OpenEvolveTask) -> str:
    """A statement for a prompt without a parent: what the evaluator calls is only in the seed program."""
    program = fenced_program(task.seed_source, task.language, len(task.seed_source))
    return f"{task.statement}\n\nKeep the interface of this program:\n{program}"


def _shown(program: Program, *, artifacts: bool) -> ShownProgram:
    evaluation: Evaluation = program.evaluation
    return ShownProgram(
        source=program.source,
        scalar=evaluation.scalar,
        passed=sum(status == "passed" for status in evaluation.statuses),
        total=len(evaluation.statuses),
        metrics=dict(evaluation.metrics),
        artifacts=dict(evaluation.artifacts) if artifacts else {},
    )
