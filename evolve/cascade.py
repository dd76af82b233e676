"""A cascade over a task's tests: a hopeless candidate is judged by the first few of them, and no further.

Racing candidates on a part of the tests is what OpenEvolve's ``evaluate_stage1`` to ``3`` do in a task's own evaluator;
here it is done with the tests of a tests task. Tests that were not run have the status ``skipped`` and count 0: a
reward component keeps its meaning (the share of the test that is known to pass), and what is stored says which were
run. A program is never judged again for the rest.

No candidate that could still solve its task is cut off, whatever the threshold.
"""

from __future__ import annotations

from collections.abc import Sequence

from evolve.config import CascadeConfig, SearchConfig
from evolve.evaluator import Evaluator, TestsEvaluator, evaluation_of_tests, make_evaluator
from evolve.openevolve_task import OpenEvolveTask
from evolve.program import Evaluation
from evolve.tests_task import TestsTask
from sandbox.runner import Sandbox
from sandbox.verdict import Status, Verdict

_ROUNDING = 1e-9


def search_evaluator(task: TestsTask | OpenEvolveTask, config: SearchConfig, sandbox: Sandbox) -> Evaluator:
    """The evaluator of a search: in stages where it is configured to, and the task has tests for two of them."""
    cascade = config.cascade
    if cascade is None or isinstance(task, OpenEvolveTask) or cascade.first >= len(task.tests):
        return make_evaluator(task, sandbox)
    return CascadeEvaluator(task, cascade, sandbox)


class CascadeEvaluator:
    """Judges the first tests, and the rest unless the candidate is hopeless. The seed program is judged by all."""

    def __init__(self, task: TestsTask, cascade: CascadeConfig, sandbox: Sandbox) -> None:
        self._task, self._cascade = task, cascade
        parts = task.tests[: cascade.first], task.tests[cascade.first :]
        self._first, self._rest = (TestsEvaluator(task.model_copy(update={"tests": tests}), sandbox) for tests in parts)

    async def evaluate(self, source: str) -> Evaluation:
        """See the module; a program costs a second jail where it is judged by the rest as well."""
        verdicts = list(await self._first.verdicts(source))
        broken = any(verdict.status is Status.INFRASTRUCTURE for verdict in verdicts)
        if broken or (source != self._task.seed_source and hopeless(self._task, self._cascade, verdicts)):
            return evaluation_of_tests(self._task, [*verdicts, *self._skipped()])
        return evaluation_of_tests(self._task, [*verdicts, *await self._rest.verdicts(source)])

    def _skipped(self) -> list[Verdict]:
        reason = f"not run: the first {self._cascade.first} tests decided against the program"
        names = self._task.components[self._cascade.first :]
        return [Verdict(name=name, status=Status.SKIPPED, message=reason) for name in names]


def hopeless(task: TestsTask, cascade: CascadeConfig, first: Sequence[Verdict]) -> bool:
    """Whether the verdicts on the first tests are below the threshold, and the task's target is out of reach too."""
    reached = sum(verdict.reward for verdict in first)
    within_reach = reached + len(task.tests) - len(first) >= task.target * len(task.tests) - _ROUNDING
    return not within_reach and reached < cascade.threshold * len(first) - _ROUNDING
