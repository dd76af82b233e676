"""From a candidate's source to its :class:`~evolve.program.Evaluation`, through the sandbox.

A bad candidate never raises: it gets zeros and messages. What the judge itself could not do is in
``Evaluation.infrastructure``, and then nothing was scored. A machine that cannot isolate at all raises
:class:`sandbox.errors.SandboxUnavailable`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from evolve.openevolve_task import COMBINED, EVALUATOR, OpenEvolveTask
from evolve.program import Evaluation
from evolve.tests_task import TestsTask
from sandbox.cases import EvaluatorResult
from sandbox.languages import LANGUAGES
from sandbox.runner import Sandbox
from sandbox.verdict import Status, Verdict

log = logging.getLogger(__name__)

MAX_METRICS = 64
_NAME_CHARS = 200
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_SLACK = 1e-9  # metrics are floats that often miss their bound by rounding


class Evaluator(Protocol):
    """Judges candidates of one task. Several evaluations may be in flight at once."""

    async def evaluate(self, source: str) -> Evaluation: ...


def make_evaluator(task: TestsTask | OpenEvolveTask, sandbox: Sandbox) -> Evaluator:
    """The evaluator for a task."""
    return TestsEvaluator(task, sandbox) if isinstance(task, TestsTask) else OpenEvolveEvaluator(task, sandbox)


class TestsEvaluator:
    """One reward component per test: 1 if it passes, else 0 or a checker's partial credit; the scalar is their mean."""

    __test__ = False  # not a test class for pytest

    def __init__(self, task: TestsTask, sandbox: Sandbox) -> None:
        self._task, self._sandbox = task, sandbox
        self._calls, self._stdio = task.call_tests, task.stdio_tests

    async def evaluate(self, source: str) -> Evaluation:
        return evaluation_of_tests(self._task, await self.verdicts(source))

    async def verdicts(self, source: str) -> Sequence[Verdict]:
        """One verdict per test, in order."""
        task, limits = self._task, self._task.sandbox_limits
        if task.entry_point is not None:
            return await self._sandbox.grade_calls(
                source, task.entry_point, self._calls, limits, preamble=task.preamble, checker=task.checker
            )
        return await self._sandbox.grade_stdio(
            source,
            self._stdio,
            limits,
            preamble=task.preamble,
            checker=task.checker,
            language=LANGUAGES[task.language],
        )


def evaluation_of_tests(task: TestsTask, verdicts: Sequence[Verdict]) -> Evaluation:
    """What the verdicts (one per test, in order) say about a candidate."""
    broken = next((verdict for verdict in verdicts if verdict.status is Status.INFRASTRUCTURE), None)
    if broken is not None:
        message = f"test {broken.name}: {broken.message}"
        return failed_evaluation(task.components, Status.INFRASTRUCTURE, message, infrastructure=True)
    reward = tuple(verdict.reward for verdict in verdicts)
    scalar = math.fsum(reward) / len(reward)
    return Evaluation(
        components=task.components,
        reward=reward,
        statuses=tuple(verdict.status for verdict in verdicts),
        messages=tuple("" if verdict.passed else clean(verdict.message) for verdict in verdicts),
        scalar=scalar,
        solved=scalar >= task.target - _SLACK,
        cpu_s=math.fsum(verdict.cpu_s for verdict in verdicts),
        peak_mb=max(verdict.peak_mb for verdict in verdicts),
    )


class OpenEvolveEvaluator:
    """Runs the task's own evaluator beside the candidate.

    The reward components are fixed before any other candidate is judged: by the task's ``ranges`` or, where they name
    none, by the metrics of the seed program, which is evaluated once for that if it is not the first to come. So is
    which metrics are open (:func:`open_metrics`).
    """

    def __init__(self, task: OpenEvolveTask, sandbox: Sandbox) -> None:
        self._task, self._sandbox = task, sandbox
        self._components = task.components
        self._open: frozenset[str] = frozenset()
        self._fixing = asyncio.Lock()
        self._warned = False

    async def evaluate(self, source: str) -> Evaluation:
        if not self._components:
            async with self._fixing:
                if not self._components:
                    seed = await self._run(self._task.seed_source)
                    if seed.verdict.status is Status.INFRASTRUCTURE:
                        return evaluation_of_metrics(self._task, (COMBINED,), seed)
                    self._open = open_metrics(self._task, seed.metrics)
                    stage = f"{seed.artifacts.get('failure_stage')}_passed"  # only a failure gives this metric
                    self._components = component_names(self._task, [n for n in seed.metrics if n != stage])
                    if source == self._task.seed_source:
                        return self.judge(seed)
        return self.judge(await self._run(source))

    async def _run(self, source: str) -> EvaluatorResult:
        task = self._task
        try:
            candidate = task.candidate(source)
        except ValueError as error:
            return EvaluatorResult(verdict=Verdict(name=EVALUATOR, status=Status.ERROR, message=str(error)))
        return await self._sandbox.run_evaluator(
            candidate, task.support_files, task.suffix, task.sandbox_limits, task.evaluator_settings
        )

    def judge(self, result: EvaluatorResult) -> Evaluation:
        """What a result says of a candidate; only after :meth:`evaluate` has fixed the components."""
        beyond = _beyond_default_range(self._task, result.metrics)
        if beyond and beyond not in self._open and not self._warned:
            self._warned = True
            log.warning(
                "task %s: metric %s is %g, outside of [0, 1]: it is clamped and cannot solve the task; declare its "
                "range in the task's 'ranges'",
                self._task.name,
                beyond,
                result.metrics[beyond],
            )
        return evaluation_of_metrics(self._task, self._components, result, self._open)


def open_metrics(task: OpenEvolveTask, seed: Mapping[str, float]) -> frozenset[str]:
    """Metrics without a declared range that [0, 1] cannot be the range of, as the seed program shows.

    They lie outside of it there; ``combined_score`` also where the seed program has reached 1, for then there would be
    nothing to search for. The whole line is their range (:func:`squashed`).
    """
    names = [name for name in _bounded(seed) if name not in task.ranges]
    outside = {name for name in names if not -_SLACK <= seed[name] <= 1.0 + _SLACK}
    return frozenset(outside | {name for name in names if name == COMBINED and seed[name] >= 1.0 - _SLACK})


def squashed(value: float) -> float:
    """A number of the whole line in (0, 1), larger for larger ones: 0 gives 0.5, 1 gives 0.75, -1 gives 0.25."""
    return 0.5 + value / (2.0 * (1.0 + abs(value)))


def component_names(task: OpenEvolveTask, metrics: Iterable[str]) -> tuple[str, ...]:
    """The reward components of a task whose ``ranges`` name none, from the metrics of its seed program."""
    features = task.config.database.feature_dimensions or ()
    names = sorted(name for name in _bounded(metrics) if name != COMBINED)
    return tuple(name for name in names if name not in features) or tuple(names) or (COMBINED,)


def evaluation_of_metrics(
    task: OpenEvolveTask, components: tuple[str, ...], result: EvaluatorResult, opened: frozenset[str] = frozenset()
) -> Evaluation:
    """What an evaluator's result says of a candidate; a component that it did not give is 0. opened: open metrics."""
    verdict = result.verdict
    artifacts = {clean(name)[:_NAME_CHARS]: clean(text) for name, text in result.artifacts.items()}
    if verdict.status is not Status.PASSED:
        return failed_evaluation(
            components,
            verdict.status,
            verdict.message,
            infrastructure=verdict.status is Status.INFRASTRUCTURE,
            artifacts=artifacts,
            cpu_s=verdict.cpu_s,
            peak_mb=verdict.peak_mb,
        )
    metrics = {name: result.metrics[name] for name in _bounded(result.metrics)}
    metrics = {clean(name): value for name, value in metrics.items() if math.isfinite(value)}
    judged = [_component(task, name, metrics.get(name), opened) for name in components]
    reward = tuple(value for value, _, _ in judged)
    combined = metrics.get(COMBINED)
    scalar = math.fsum(reward) / len(reward) if combined is None else _reward(task, COMBINED, combined, opened)
    return Evaluation(
        components=components,
        reward=reward,
        statuses=tuple(status for _, status, _ in judged),
        messages=tuple(message for _, _, message in judged),
        scalar=scalar,
        solved=scalar >= task.target - _SLACK and _beyond_default_range(task, metrics) is None,
        metrics=metrics,
        artifacts=artifacts,
        cpu_s=verdict.cpu_s,
        peak_mb=verdict.peak_mb,
    )


def _component(
    task: OpenEvolveTask, name: str, value: float | None, opened: frozenset[str]
) -> tuple[float, Status, str]:
    """Reward in [0, 1], status and message of one component."""
    if value is None:
        return 0.0, Status.ERROR, f"the evaluator gave no finite number for {name}"
    reward = _reward(task, name, value, opened)
    if name in opened:
        return reward, Status.WRONG, f"{name} is {value:.6g}; higher is better"
    low, high = task.ranges.get(name, (0.0, 1.0))
    if reward >= 1.0 - _SLACK:
        return reward, Status.PASSED, ""
    return reward, Status.WRONG, f"{name} is {value:.6g}; {low:g} is worst and {high:g} is best"


def _reward(task: OpenEvolveTask, name: str, value: float, opened: frozenset[str]) -> float:
    return squashed(value) if name in opened else scaled(value, task.ranges.get(name))


def scaled(value: float, bounds: tuple[float, float] | None = None) -> float:
    """``value`` on the way from ``bounds[0]`` (0) to ``bounds[1]`` (1), clamped; bounds default to [0, 1]. NaN is 0."""
    low, high = bounds or (0.0, 1.0)
    share = value - low if high - low == 1.0 else (value - low) / (high - low)
    return min(1.0, max(0.0, share)) if share == share else 0.0


def _beyond_default_range(task: OpenEvolveTask, metrics: dict[str, float]) -> str | None:
    """A metric that makes the task scalar and lies above a range that nobody declared."""
    deciding = [COMBINED] if COMBINED in metrics else sorted(_bounded(metrics))
    features = task.config.database.feature_dimensions or ()
    for name in deciding:
        if name not in task.ranges and name not in features and metrics[name] > 1.0 + _SLACK:
            return name
    return None


def _bounded(metrics: Iterable[str]) -> list[str]:
    """At most ``MAX_METRICS`` names: a candidate shares the evaluator's jail and may make it say anything."""
    return sorted(name for name in metrics if len(name) <= _NAME_CHARS)[:MAX_METRICS]


def failed_evaluation(
    components: tuple[str, ...],
    status: Status,
    message: str,
    *,
    infrastructure: bool = False,
    artifacts: dict[str, str] | None = None,
    cpu_s: float = 0.0,
    peak_mb: float = 0.0,
) -> Evaluation:
    """Zeros for every component, for one reason. infrastructure: whether the judge, not the candidate, failed."""
    message = clean(message)
    return Evaluation(
        components=components,
        reward=(0.0,) * len(components),
        statuses=(status,) * len(components),
        messages=(message,) * len(components),
        scalar=0.0,
        solved=False,
        artifacts=artifacts or {},
        infrastructure=(message or "the sandbox failed") if infrastructure else None,
        cpu_s=cpu_s,
        peak_mb=peak_mb,
    )


def clean(text: str) -> str:
    """``text`` without NUL characters and lone surrogates, which no database stores."""
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)
