"""What is wrong with a suite's tests: those that references fail, that are flaky, or that tell no programs apart.

Every task's programs are judged several times: its reference solution where the suite's source has one, its seed
program, and programs that take no thought (they return their first argument, or the answer that most tests expect).

- flaky: a test whose verdict on the same program changes (of an OpenEvolve evaluator: a metric whose value changes).
- failed: a test that the reference does not pass.
- blind: a test that every one of these programs passes, so that it says nothing about any.
- repeated: a test that asks and expects the same as an earlier one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evolve.evaluator import make_evaluator
from evolve.humaneval import is_humaneval
from evolve.humaneval_recording import reference as humaneval_reference
from evolve.mbpp import is_mbpp, task_name
from evolve.mbpp import reference as mbpp_reference
from evolve.openevolve_task import OpenEvolveTask
from evolve.program import Evaluation
from evolve.suite import AnyTask, Suite, read_lines
from evolve.tests_task import TestsTask
from sandbox.runner import Sandbox

REFERENCE = "reference"


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskCheck:
    """One task's findings; names of tests or metrics. problem: why the task could not be judged, if so.

    reference: the reference's task scalar, ``None`` without one. seed: that of the seed program.
    """

    task: str
    tests: int
    reference: float | None = None
    seed: float | None = None
    failed: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    blind: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    problem: str | None = None

    @property
    def fine(self) -> bool:
        """Whether there is nothing to mend; tests that are blind or repeated are only to be known."""
        return not (self.failed or self.flaky or self.problem)


def read_references(path: Path | str) -> dict[str, str]:
    """Reference solutions by task name: of HumanEval's and MBPP's files, and ``reference.py`` in task folders.

    Raises :class:`evolve.suite.TaskError` for a file that cannot be read.
    """
    path = Path(path)
    if path.is_dir():
        folders = [path, *sorted(folder for folder in path.iterdir() if folder.is_dir())]
        found = {folder.resolve().name: folder / f"{REFERENCE}.py" for folder in folders}
        return {name: file.read_text(encoding="utf-8") for name, file in found.items() if file.is_file()}
    if not path.name.endswith((".jsonl", ".jsonl.gz")):
        return {}
    return dict(pair for _, record in read_lines(path) if (pair := _reference(record)) is not None)


def _reference(record: Any) -> tuple[str, str] | None:
    if is_mbpp(record):
        return task_name(record), mbpp_reference(record)
    if is_humaneval(record) and isinstance(record.get("canonical_solution"), str):
        return record["task_id"], humaneval_reference(record)
    return None


async def check_suite(
    suite: Suite, sandbox: Sandbox, references: Mapping[str, str], *, runs: int = 3
) -> AsyncIterator[TaskCheck]:
    """Check each task in turn. runs: how often a program is judged, at least 2 to find what is flaky.

    Raises :class:`sandbox.errors.SandboxUnavailable`, and ``ValueError`` for ``runs`` below 1.
    """
    if runs < 1:
        raise ValueError(f"runs is {runs}: judge each program at least once")
    for task in suite.tasks:
        yield await check_task(task, sandbox, references.get(task.name), runs=runs)


async def check_task(task: AnyTask, sandbox: Sandbox, reference: str | None = None, *, runs: int = 3) -> TaskCheck:
    """The findings about one task."""
    evaluator = make_evaluator(task, sandbox)
    programs = {"seed": task.seed_source} | ({REFERENCE: reference} if reference is not None else {})
    if isinstance(task, TestsTask):
        programs |= _thoughtless(task)
    judged: dict[str, list[Evaluation]] = {}
    for name, source in programs.items():
        judged[name] = [await evaluator.evaluate(source) for _ in range(runs if name in ("seed", REFERENCE) else 1)]
    count = len(task.tests) if isinstance(task, TestsTask) else len(judged["seed"][0].components)
    for name, evaluations in judged.items():
        broken = next((each.infrastructure for each in evaluations if each.infrastructure), None)
        if broken is not None:
            return TaskCheck(task=task.name, tests=count, problem=f"{name}: {broken}")
    first = {name: evaluations[0] for name, evaluations in judged.items()}
    return TaskCheck(
        task=task.name,
        tests=count,
        reference=first[REFERENCE].scalar if REFERENCE in first else None,
        seed=first["seed"].scalar,
        failed=_failed(first.get(REFERENCE)),
        flaky=tuple(sorted({name for evaluations in judged.values() for name in _changing(evaluations)})),
        blind=_blind(list(first.values())) if isinstance(task, TestsTask) else (),
        repeated=_repeated(task) if isinstance(task, TestsTask) else (),
        problem=_seed_problem(task, first["seed"]),
    )


def _seed_problem(task: AnyTask, evaluation: Evaluation) -> str | None:
    """Why an evaluator says nothing about the program that its search starts from."""
    if isinstance(task, OpenEvolveTask) and not evaluation.metrics:
        return f"the evaluator gives no metric for the seed program: {'; '.join(filter(None, evaluation.messages))}"
    return None


def _thoughtless(task: TestsTask) -> dict[str, str]:
    """Programs that pass only what any program passes; none for programs that are run."""
    if task.entry_point is None:
        return {}
    head = f"def {task.entry_point}(*args):\n    return "
    common = Counter(repr(test.expected) for test in task.call_tests).most_common(1)[0][0]
    return {"first argument": f"{head}args[0] if args else None\n", "commonest answer": f"{head}{common}\n"}


def _failed(evaluation: Evaluation | None) -> tuple[str, ...]:
    if evaluation is None:
        return ()
    return tuple(name for name, s in zip(evaluation.components, evaluation.statuses, strict=True) if s != "passed")


def _changing(evaluations: Sequence[Evaluation]) -> set[str]:
    """Components, or raw metrics, that differ between evaluations of one program."""
    first = evaluations[0]
    changing: set[str] = set()
    for other in evaluations[1:]:
        pairs = zip(first.components, first.statuses, other.statuses, strict=True)
        changing |= {name for name, before, after in pairs if before != after}
        names = first.metrics.keys() | other.metrics.keys()
        changing |= {name for name in names if first.metrics.get(name) != other.metrics.get(name)}
    return changing


def _blind(evaluations: Sequence[Evaluation]) -> tuple[str, ...]:
    if len(evaluations) < 2:
        return ()
    columns = zip(*(evaluation.statuses for evaluation in evaluations), strict=True)
    named = zip(evaluations[0].components, columns, strict=True)
    return tuple(name for name, statuses in named if all(status == "passed" for status in statuses))


def _repeated(task: TestsTask) -> tuple[str, ...]:
    seen: set[str] = set()
    repeated: list[str] = []
    for test, name in zip(task.tests, task.components, strict=True):
        content = json.dumps(test.model_dump(mode="json", exclude={"name", "visible"}), sort_keys=True, default=repr)
        if content in seen:
            repeated.append(name)
        seen.add(content)
    return tuple(repeated)
