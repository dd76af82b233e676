"""The code domain: one reward component per test, judged in the jail; d differs from problem to problem."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from evolve.chain import ChainFormat
from evolve.chat import render_chat
from evolve.humaneval import Skipped
from evolve.livecodebench import is_livecodebench, read_livecodebench
from evolve.strict import StrictModel
from evolve.suite import TaskError, load_suite
from evolve.task import TestsTask, prompt_context
from trainer.domains.base import DomainError, Example
from trainer.domains.code.deepcoder import is_deepcoder, read_deepcoder
from trainer.domains.minicode.problems import Problem, held_out, mutate, random_problem
from trainer.domains.minicode.suite import task_document
from trainer.domains.programs import ProgramDomain
from trainer.domains.records import Split, make_split, read_records

log = logging.getLogger(__name__)
_BLANKS = re.compile(r"\s+")


class CodeOptions(StrictModel):
    """training, heldout: files of DeepCoder, LiveCodeBench, HumanEval, or suites of tests tasks (codeio builds one).

    Without files, problems are minicode's, asked in chat. Without ``heldout``, LiveCodeBench problems published on or
    after ``since`` are held out and earlier ones trained on; else one of sixteen problems is held out by its statement.
    max_tests: components of a problem at most (the paper's 16). visible: tests that prompts may show of sources that
    do not say so themselves. concurrency, answer_tokens: as :class:`ProgramDomain`.
    """

    training: tuple[Path, ...] = ()
    heldout: tuple[Path, ...] = ()
    since: date | None = None
    max_tests: Annotated[int, Field(ge=1)] = 16
    visible: Annotated[int, Field(ge=0)] = 2
    concurrency: Annotated[int, Field(ge=1)] = 2
    answer_tokens: Annotated[int, Field(ge=1)] = 1024


@dataclass(frozen=True, slots=True)
class CodeProblem:
    """A task and, for synthetic ones, the problem that it was made of."""

    task: TestsTask
    source: Problem | None = None


class CodeDomain(ProgramDomain[CodeProblem]):
    name = "code"

    def __init__(self, options: CodeOptions) -> None:
        super().__init__(concurrency=options.concurrency, answer_tokens=options.answer_tokens)
        if options.heldout and not options.training:
            raise DomainError("options of domain 'code': heldout needs training: name files for both sides")
        self.skipped: list[Skipped] = []
        self._split = self._load(options) if options.training else None

    def problem(self, rng: np.random.Generator, *, heldout: bool) -> CodeProblem:
        if self._split is not None:
            return self._split.draw(rng, heldout=heldout)
        name = f"minicode-{int(rng.integers(2**62)):x}"
        problem = random_problem(rng, heldout=heldout)
        return CodeProblem(TestsTask.model_validate(task_document(problem, name)), problem)

    def task(self, problem: CodeProblem) -> TestsTask:
        return problem.task

    def components(self, problem: CodeProblem) -> tuple[str, ...]:
        return problem.task.components

    def example(self, rng: np.random.Generator, m: int) -> Example:
        """Synthetic problems only: the target program, and near misses in the other places of a chain."""
        problem = self.problem(rng, heldout=False)
        if problem.source is None:
            return super().example(rng, m)
        target = problem.source.target
        assert not held_out(target)
        programs = [target]
        while len(programs) < m:
            near = mutate(target, rng)
            if near not in programs:
                programs.insert(int(rng.integers(len(programs) + 1)), near)
        chain = ChainFormat(m=m)
        messages = render_chat(prompt_context(problem.task, m=m), chain)
        return Example(messages, "\n".join(f"{chain.open}\n{p.source}{chain.close}" for p in programs))

    def _load(self, options: CodeOptions) -> Split[CodeProblem]:
        where = ", ".join(map(str, options.training))
        training = self._read(options.training, options, before=options.since)
        heldout = self._read(options.heldout, options) if options.heldout else None
        if heldout is None and options.since is not None:
            heldout = self._read(options.training, options, since=options.since)
        _check_names([*training, *(heldout or ())])
        return make_split(training, heldout, _content, where=where)

    def _read(
        self, paths: Sequence[Path], options: CodeOptions, *, since: date | None = None, before: date | None = None
    ) -> list[CodeProblem]:
        problems: list[CodeProblem] = []
        for path in paths:
            tasks, skipped = _read_file(path, options, since, before)
            self.skipped += skipped
            if skipped:
                first = f"{skipped[0].name}: {skipped[0].reason}"
                log.warning(
                    "%s: %d of %d problems left out, such as %s", path, len(skipped), len(skipped) + len(tasks), first
                )
            problems += [CodeProblem(task) for task in tasks]
        return problems


def _read_file(
    path: Path, options: CodeOptions, since: date | None, before: date | None
) -> tuple[list[TestsTask], list[Skipped]]:
    """The tests tasks of a file of any understood format, named after the file, and what was left out."""
    records = read_records(path) if path.suffix == ".parquet" or ".jsonl" in path.suffixes else []
    if records and is_livecodebench(records[0]):
        tasks, skipped = read_livecodebench(records, since=since, before=before, max_tests=options.max_tests)
    elif records and is_deepcoder(records[0]):
        prefix = f"{path.parent.name}/{path.name.split('.')[0]}"
        tasks, skipped = read_deepcoder(records, prefix=prefix, max_tests=options.max_tests, visible=options.visible)
    else:
        try:
            suite = load_suite(path)
        except TaskError as error:
            raise DomainError(str(error)) from None
        tasks, skipped = [_cut(t, options.max_tests) for t in suite.tasks if isinstance(t, TestsTask)], [*suite.skipped]
    if since is not None and not (records and is_livecodebench(records[0])):
        return [], []
    return tasks, skipped


def _check_names(problems: Sequence[CodeProblem]) -> None:
    """Verdicts are kept by task name, so a name must mean one task."""
    seen: dict[str, CodeProblem] = {}
    for problem in problems:
        if seen.setdefault(problem.task.name, problem).task != problem.task:
            raise DomainError(f"options of domain 'code': two problems are named {problem.task.name!r}: rename a file")


def _cut(task: TestsTask, max_tests: int) -> TestsTask:
    return task.model_copy(update={"tests": task.tests[:max_tests]})


def _content(problem: CodeProblem) -> str:
    return _BLANKS.sub(" ", problem.task.statement).strip()
