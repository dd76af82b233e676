"""What the API answers. Ids are strings without meaning to clients; numbers of tokens and evaluations are totals."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from sandbox.tiers import Tier
from sandbox.verdict import Status as VerdictStatus


class RunStatus(StrEnum):
    """Of a search or a run. ``waiting``: something it needs (its model, say) is down; it goes on when that is back."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def over(self) -> bool:
        return self in OVER


OVER = frozenset({RunStatus.DONE, RunStatus.FAILED, RunStatus.CANCELLED})


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class RunState(_Answer):
    """One run.

    iteration: the last finished one. best: best task scalar so far, in [0, 1]; null before anything was judged.
    solved_at: the iteration that first solved the task (0: its seed program did). error: why it failed or waits.
    ended: why it is done: ``completed`` (all iterations), ``solved``, ``target``, or the limit of its budget that it
    reached (``calls``, ``tokens``, ``cost``, ``seconds``, ``stagnation``).
    calls, lost_calls: model requests answered, and sent in vain. cost: of its tokens, by the models' prices.
    """

    id: str
    arm: str
    task: str
    seed: int
    status: RunStatus
    iteration: int
    best: float | None
    solved_at: int | None
    evaluations: int
    calls: int
    lost_calls: int
    prompt_tokens: int
    completion_tokens: int
    tokens: int
    cost: float = 0.0
    error: str | None
    ended: str | None = None
    started_at: datetime | None
    finished_at: datetime | None


class ArmSummary(_Answer):
    """One arm: its model, and totals over its runs. best: mean over its runs of the best task scalar."""

    name: str
    model: str
    endpoint: str
    estimator: str | None
    evaluations_per_iteration: int
    runs: int
    finished: int
    solved: int
    best: float | None
    evaluations: int
    tokens: int
    cost: float = 0.0


class SearchSummary(_Answer):
    """One search. progress: share of all iterations that are finished or not needed any more, in [0, 1]."""

    id: str
    name: str
    status: RunStatus
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    iterations: int
    progress: float
    arms: list[ArmSummary]


class TaskSummary(_Answer):
    """One task of a search. statement: for people; components: names of the tests, where they are known beforehand."""

    name: str
    format: str
    statement: str
    components: list[str]


class SearchDetail(SearchSummary):
    """One search with its tasks and runs. last_event: follow ``/events?after=`` it to hear what happens next."""

    tasks: list[TaskSummary]
    seeds: list[int]
    search: dict[str, Any]
    runs: list[RunState]
    last_event: int


class SearchPage(_Answer):
    """Searches, newest first. next: URL of the following page, null at the end."""

    searches: list[SearchSummary]
    next: str | None


class ArmCurve(_Answer):
    """The curves of one arm, one value per iteration t (0 is the seed program).

    solved: runs solved by t; pass_at_t: their share. best_at_t: mean over the runs of the best task scalar by t.
    evaluations, tokens: spent by t, over all runs. complete_to: the last t that every run has reached or does not need
    to reach; later values can still rise.
    """

    arm: str
    runs: int
    complete_to: int
    t: list[int]
    solved: list[int]
    pass_at_t: list[float]
    best_at_t: list[float]
    evaluations: list[int]
    tokens: list[int]


class Curve(_Answer):
    """The curves of a search, per arm in the order of the request."""

    search: str
    status: RunStatus
    iterations: int
    arms: list[ArmCurve]


class ProgramState(_Answer):
    """One evaluated program. parents: numbers of programs of the same run. The lists are per reward component."""

    id: str
    run: str
    arm: str
    task: str
    seed: int
    number: int
    iteration: int
    index: int
    island: int
    parents: list[int]
    operator: str
    source: str
    digest: str
    scalar: float
    solved: bool
    components: list[str]
    reward: list[float]
    statuses: list[VerdictStatus]
    messages: list[str]
    metrics: dict[str, float]
    artifacts: dict[str, str]
    created_at: datetime


class ProgramPage(_Answer):
    """Programs in the order asked for. next: URL of the following page, null at the end."""

    programs: list[ProgramState]
    next: str | None


class RejectedAnswer(_Answer):
    """An answer of a reply that became no program. index: its place in the reply. reason, detail: why."""

    index: int
    reason: str
    detail: str


class IterationState(_Answer):
    """One finished iteration: what the model answered, and what became of it.

    parents: numbers of programs. evaluations: answers judged. tokens: of prompt and answer. rejected: other answers.
    error: why it brought nothing. reply: the model's texts, where they were asked for. best, solved: of the run by now.
    """

    run: str
    iteration: int
    island: int
    parents: list[int]
    evaluations: int
    lost_calls: int
    tokens: int
    rejected: list[RejectedAnswer]
    error: str | None
    best: float
    solved: bool
    reply: list[str] | None
    finished_at: datetime


class IterationPage(_Answer):
    """Iterations in the order of runs and time. next: URL of the following page, null at the end."""

    iterations: list[IterationState]
    next: str | None


class IterationEvent(_Answer):
    """Data of an ``iteration`` event. programs: judged in this iteration. error: why it brought nothing."""

    search: str
    run: RunState
    iteration: int
    programs: int
    error: str | None


class RunEvent(_Answer):
    """Data of a ``run`` event: a run's status changed."""

    search: str
    run: RunState


class SearchEvent(_Answer):
    """Data of a ``search`` event: a search's status changed. After one that is over, the stream ends."""

    search: str
    status: RunStatus


class FieldProblem(_Answer):
    """field: like ``arms[0].samples``. value: what was given (left out where it could be a secret or is large)."""

    field: str
    message: str
    value: Any = None


class Problem(BaseModel):
    """An error (RFC 9457, ``application/problem+json``). detail says what to do about it."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    instance: str | None = None
    errors: list[FieldProblem] = Field(default_factory=list)


class Health(_Answer):
    """The process is alive."""

    status: Literal["ok"] = "ok"
    version: str


class Check(_Answer):
    """One thing the service needs. detail: what is wrong and what to do."""

    ok: bool
    detail: str = ""


class Readiness(_Answer):
    """Whether searches can run here. tier: how strongly programs are isolated; ``none`` where none can be run."""

    ready: bool
    tier: Tier
    checks: dict[str, Check]
