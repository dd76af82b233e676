"""Tasks in OpenEvolve's format (or any other task of the search) as a domain that trains on mutation prompts.

Every prompt shows a program to improve: the task's seed program at first, then answers of the model itself (the trainer
keeps a pool of them). The task's own evaluator judges in the jail; reward components and task scalar are those of a
search on the same task. ``heldout`` names other tasks for evaluation; without it the same tasks serve for both, which
is what one wants when a model is trained for a search of exactly these tasks, and says nothing about others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from evolve.strict import StrictModel
from evolve.suite import TaskError, load_suite
from evolve.task import OpenEvolveTask, TestsTask
from trainer.domains.base import DomainError
from trainer.domains.programs import ProgramDomain

AnyTask = TestsTask | OpenEvolveTask


class OpenEvolveOptions(StrictModel):
    """tasks, heldout: task folders, folders of tasks, or suite files. Else as :class:`ProgramDomain`."""

    tasks: Path
    heldout: Path | None = None
    concurrency: Annotated[int, Field(ge=1)] = 2
    answer_tokens: Annotated[int, Field(ge=1)] = 1024


class OpenEvolveDomain(ProgramDomain[AnyTask]):
    name = "openevolve"

    def __init__(self, options: OpenEvolveOptions) -> None:
        super().__init__(concurrency=options.concurrency, answer_tokens=options.answer_tokens)
        self._training = _load(options.tasks)
        self._heldout = self._training if options.heldout is None else _load(options.heldout)
        shared = {task.name for task in self._training} & {task.name for task in self._heldout}
        if options.heldout is not None and shared:
            raise DomainError(f"options of domain 'openevolve': {min(shared)!r} is in both tasks and heldout")

    def problem(self, rng: np.random.Generator, *, heldout: bool) -> AnyTask:
        side = self._heldout if heldout else self._training
        return side[int(rng.integers(len(side)))]

    def task(self, problem: AnyTask) -> AnyTask:
        return problem

    def components(self, problem: AnyTask) -> tuple[str, ...]:
        """Known once the task was asked about: they may depend on the metrics of its seed program."""
        if problem.components:
            return tuple(problem.components)
        if problem.name not in self._components:
            raise DomainError(
                f"task {problem.name}: its components are not known before the first prompt: declare its ranges"
            )
        return self._components[problem.name]


def _load(path: Path) -> tuple[AnyTask, ...]:
    try:
        return load_suite(path).tasks
    except TaskError as error:
        raise DomainError(str(error)) from None
