"""What a run has spent, and whether that ends it: from its records alone, so that a resumed run knows the same.

A limit that is reached ends the asking, not what is under way: up to ``lag - 1`` iterations are in flight then, and
they are told and kept (so the last iteration is decided by the records and the lag, not by speed). A target that is
reached, or a solved task, ends the run at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from evolve.config import BudgetConfig, ModelConfig, SearchConfig
from evolve.program import IterationRecord, Usage
from sandbox.verdict import Status

Ended = Literal["solved", "target", "calls", "tokens", "cost", "stagnation"]

_PER_PRICE = 1e6


@dataclass(frozen=True, kw_only=True, slots=True)
class Spent:
    """What finished iterations have cost.

    evaluations: candidates judged, the seed program not counted. tests: components of these that were judged, which a
    cascade keeps down. calls: model requests, those in vain included.
    cost: in the currency of the configured prices. seconds: wall time while the run was being worked on.
    """

    iterations: int = 0
    evaluations: int = 0
    tests: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def plus(self, record: IterationRecord, models: tuple[ModelConfig, ...]) -> Spent:
        """This and one more iteration."""
        usage = record.reply.usage if record.reply else Usage()
        return Spent(
            iterations=record.iteration,
            evaluations=self.evaluations + record.evaluations,
            tests=self.tests + _tests_run(record),
            calls=self.calls + usage.calls + usage.lost_calls,
            prompt_tokens=self.prompt_tokens + usage.prompt_tokens,
            completion_tokens=self.completion_tokens + usage.completion_tokens,
            cost=self.cost + cost_of(usage, _priced(record, models)),
            seconds=max(self.seconds, record.elapsed_s),
        )


def _tests_run(record: IterationRecord) -> int:
    judged = [program.evaluation.statuses for program in record.programs[: record.evaluations]]
    return sum(status is not Status.SKIPPED for statuses in judged for status in statuses)


def cost_of(usage: Usage, model: ModelConfig | None) -> float:
    """Price of a reply, in the currency of the model's prices; 0 without any."""
    if model is None:
        return 0.0
    tokens = usage.prompt_tokens * model.prompt_price + usage.completion_tokens * model.completion_price
    return tokens / _PER_PRICE


def _priced(record: IterationRecord, models: tuple[ModelConfig, ...]) -> ModelConfig | None:
    """The model that answered; the first where the record does not say (there is only one)."""
    name = record.info.get("model")
    return next((model for model in models if name is None or model.name == name), None)


class Ledger:
    """The running account of one run. ``add`` its records in order."""

    def __init__(self, config: SearchConfig) -> None:
        self._config, self._budget = config, config.budget
        self.spent = Spent()
        self.ended: Ended | None = None
        self.last_iteration: int | None = None
        self._best = 0.0
        self._improved = 0

    def begin(self, scalar: float, *, solved: bool) -> None:
        """Note the seed program's task scalar."""
        self._best = scalar
        self._close(solved, 0)

    def add(self, record: IterationRecord) -> None:
        """Note a finished iteration."""
        self.spent = self.spent.plus(record, self._config.models)
        if record.best_scalar > self._best:
            self._best, self._improved = record.best_scalar, record.iteration
        self._close(record.solved, record.iteration)
        reason = exhausted(self._budget, self.spent, record.iteration - self._improved)
        if reason is not None and self.last_iteration is None:
            self.ended, self.last_iteration = reason, record.iteration + self._config.lag - 1

    def _close(self, solved: bool, iteration: int) -> None:
        """End the run here if it has what it is for."""
        target = self._budget.target
        if solved and self._config.stop_when_solved:
            self.ended, self.last_iteration = "solved", iteration
        elif target is not None and self._best >= target:
            self.ended, self.last_iteration = "target", iteration


def exhausted(budget: BudgetConfig, spent: Spent, idle: int) -> Literal["calls", "tokens", "cost", "stagnation"] | None:
    """The limit that is reached, if any. idle: iterations since the best task scalar rose."""
    if budget.calls is not None and spent.calls >= budget.calls:
        return "calls"
    if budget.tokens is not None and spent.tokens >= budget.tokens:
        return "tokens"
    if budget.cost is not None and spent.cost >= budget.cost:
        return "cost"
    if budget.stagnation is not None and idle >= budget.stagnation:
        return "stagnation"
    return None
