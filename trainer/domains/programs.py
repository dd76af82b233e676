"""What domains share whose answers are programs: tasks of the search, judged by its evaluators in the jail.

Prompts are the search's own chat prompts, from scratch or with a parent and its verdicts, so what is trained is what a
search asks. Verdicts are deterministic, so those of parents are kept only to save time.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import OrderedDict
from typing import Any, Generic, TypeVar

import numpy as np

from evolve.chain import ChainFormat
from evolve.chat import render_chat
from evolve.evaluator import Evaluator, make_evaluator
from evolve.manifest import PromptFormat
from evolve.program import Evaluation, Program, source_digest
from evolve.task import OpenEvolveTask, TestsTask, prompt_context
from sandbox import Sandbox
from trainer.domains.base import Domain, DomainError, Judged, Messages, Prompt, goal_text

P = TypeVar("P")
_ATTEMPTS, _PAUSE_S = 3, 0.5
_KEPT = 4096


class ProgramDomain(Domain, Generic[P]):
    """A domain over tasks.

    concurrency: jails alive at once. answer_tokens: room for one program.
    """

    mutates = True

    def __init__(self, *, concurrency: int, answer_tokens: int) -> None:
        self._sandbox = Sandbox(concurrency=concurrency)
        self._answer_tokens = answer_tokens
        self._evaluators: dict[str, Evaluator] = {}
        self._kept: OrderedDict[tuple[str, str], Evaluation] = OrderedDict()
        self._components: dict[str, tuple[str, ...]] = {}

    @abstractmethod
    def task(self, problem: P) -> TestsTask | OpenEvolveTask:
        """The task of a problem; tasks have different names."""

    def prompt_format(self, m: int) -> PromptFormat:
        return PromptFormat(kind="chat", max_tokens=m * self._answer_tokens)

    async def ask(self, problem: P, m: int, *, parent: str | None = None, goal: np.ndarray | None = None) -> Prompt:
        """A task in OpenEvolve's format is never asked without a program: its seed program is the first parent."""
        task = self.task(problem)
        if parent is None and isinstance(task, OpenEvolveTask):
            parent = task.seed_source
        program = None if parent is None else _as_program(parent, await self._evaluated(task, parent))
        messages = render_chat(prompt_context(task, parent=program, m=m), ChainFormat(m=m))
        return messages if goal is None else _with_goal(messages, goal_text(self.components(problem), goal))

    async def judge(self, problem: P, answer: str) -> Judged:
        task = self.task(problem)
        evaluation = await self.evaluate(task, answer)
        reward = np.array(evaluation.reward)
        return Judged(reward, evaluation.scalar, evaluation.infrastructure)

    async def evaluate(self, task: TestsTask | OpenEvolveTask, source: str) -> Evaluation:
        """The search's evaluation; what the judge could not do after some attempts is in ``infrastructure``."""
        key = task.name, source_digest(source)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        evaluator = self._evaluator(task)
        evaluation = await evaluator.evaluate(source)
        for attempt in range(1, _ATTEMPTS):
            if evaluation.infrastructure is None:
                break
            await asyncio.sleep(_PAUSE_S * attempt)
            evaluation = await evaluator.evaluate(source)
        if evaluation.infrastructure is None:
            if isinstance(task, OpenEvolveTask):
                self._components[task.name] = evaluation.components
            self._kept[key] = evaluation
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return evaluation

    async def close(self) -> None:
        await self._sandbox.close()

    def _evaluator(self, task: TestsTask | OpenEvolveTask) -> Evaluator:
        """Only those of OpenEvolve's tasks are kept: they know the metrics of the seed program."""
        if isinstance(task, TestsTask):
            return make_evaluator(task, self._sandbox)
        return self._evaluators.setdefault(task.name, make_evaluator(task, self._sandbox))

    async def _evaluated(self, task: TestsTask | OpenEvolveTask, parent: str) -> Evaluation:
        evaluation = await self.evaluate(task, parent)
        if evaluation.infrastructure is not None:
            raise DomainError(f"task {task.name}: the parent of a prompt cannot be judged: {evaluation.infrastructure}")
        return evaluation


def _as_program(source: str, evaluation: Evaluation) -> Program:
    """A parent as a search holds it; where it stands in a run does not show in a prompt."""
    return Program(
        number=1,
        iteration=1,
        index=0,
        island=0,
        parents=(0,),
        source=source,
        digest=source_digest(source),
        operator="scratch",
        evaluation=evaluation,
    )


def _with_goal(messages: Messages, text: str) -> Messages:
    last: dict[str, Any] = messages[-1]
    return [*messages[:-1], {**last, "content": f"{last['content']}\n\n{text}"}]
