"""The asynchronous loop of one run: model calls and evaluations in flight, results told in order, everything stored.

Up to ``lag`` iterations are in flight. Each goes: stored reply or model call → store the reply → judge the children →
wait for its turn → tell → store the record. A candidate is judged once, also where two iterations in flight brought it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from evolve.ensemble import check_clients
from evolve.evaluator import Evaluator
from evolve.ledger import Ended, Spent
from evolve.models import ModelClient, ModelError, ModelRequestError
from evolve.program import Evaluation, IterationRecord, Program, Reply, Usage
from evolve.reading import Candidates, Child
from evolve.request import Request
from evolve.search import Search

MAX_REFUSALS_IN_A_ROW = 5
_ABOUT_THIS_REQUEST = frozenset({400, 413, 422})  # too long a prompt, say; 401 or 404 concern every request


Ending = Ended | Literal["completed", "seconds", "stopped"]


class EvaluationFailed(RuntimeError):  # noqa: N818 (the run's word for it)
    """A candidate could not be judged after several attempts; nothing was scored. The message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredRun:
    """What a store knows of a run.

    seed: the evaluated seed program, ``None`` before it was stored.
    records: iterations 1, 2, ... in order.
    replies: replies of iterations that have no record yet.
    lost_calls: per iteration without a reply, requests sent in vain.
    """

    seed: Program | None = None
    records: tuple[IterationRecord, ...] = ()
    replies: dict[int, Reply] = field(default_factory=dict)
    lost_calls: dict[int, int] = field(default_factory=dict)


class RunStore(Protocol):
    """Where a run is kept. Every method returns when the data is safe."""

    async def load(self) -> StoredRun: ...

    async def save_seed(self, program: Program) -> None: ...

    async def save_lost_calls(self, iteration: int, count: int) -> None:
        """Set (not add to) the number of requests of an iteration that are lost unless a reply is stored."""
        ...

    async def save_reply(self, iteration: int, reply: Reply) -> None:
        """Keep a reply. Called before anything of it is evaluated."""
        ...

    async def save_iteration(self, record: IterationRecord) -> None:
        """Append a finished iteration, its programs included, in one step. Iterations come in order, each once."""
        ...


class MemoryStore:
    """A :class:`RunStore` in memory."""

    def __init__(self) -> None:
        self.seed: Program | None = None
        self.records: list[IterationRecord] = []
        self.replies: dict[int, Reply] = {}
        self.lost_calls: dict[int, int] = {}

    async def load(self) -> StoredRun:
        return StoredRun(
            seed=self.seed,
            records=tuple(self.records),
            replies=dict(self.replies),
            lost_calls=dict(self.lost_calls),
        )

    async def save_seed(self, program: Program) -> None:
        self.seed = program

    async def save_lost_calls(self, iteration: int, count: int) -> None:
        self.lost_calls[iteration] = count

    async def save_reply(self, iteration: int, reply: Reply) -> None:
        self.replies[iteration] = reply
        self.lost_calls.pop(iteration, None)

    async def save_iteration(self, record: IterationRecord) -> None:
        if record.iteration != len(self.records) + 1:
            raise ValueError(f"iteration {record.iteration} cannot follow {len(self.records)}")
        self.records.append(record)
        self.replies.pop(record.iteration, None)
        self.lost_calls.pop(record.iteration, None)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSummary:
    """How a call of :func:`run_search` ended.

    iterations: finished in all. evaluations, usage, spent: of all iterations, the seed program's evaluation not
        counted.
    ended: ``completed`` (all iterations), ``solved`` or ``target`` (nothing more to do), the limit of
        :class:`evolve.config.BudgetConfig` that was reached, or ``stopped`` (on request).
    """

    iterations: int
    best_scalar: float
    solved: bool
    first_solved: int | None
    evaluations: int
    usage: Usage
    spent: Spent
    ended: Ending


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """How often a candidate that could not be judged is tried, and the seconds between (doubled each time)."""

    attempts: int = 3
    delay_s: float = 1.0


async def run_search(
    search: Search,
    *,
    model: ModelClient,
    evaluator: Evaluator,
    store: RunStore,
    iterations: int,
    on_iteration: Callable[[IterationRecord], Awaitable[None]] | None = None,
    stop: asyncio.Event | None = None,
    patience: Patience | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> RunSummary:
    """Run ``search`` (fresh: neither begun nor restored) from what ``store`` has of it up to iteration ``iterations``.

    on_iteration: awaited after each record is stored. stop: once set, nothing new is asked; iterations whose reply has
    arrived are finished, calls still in flight are cancelled (and count as lost when the run goes on). A limit of the
    search's budget that is reached ends it otherwise: what is in flight is finished and kept.
    clock: seconds, for the limit on wall time and the records' ``elapsed_s``.

    Raises :class:`evolve.models.ModelError` when the endpoint is down, refuses its key or model, or refuses five
    requests in a row; :class:`EvaluationFailed` when a candidate cannot be judged; whatever the store raises. All that
    was stored stays valid: calling again with a fresh search goes on from there.
    """
    check_clients(search.config, model)
    run = _Run(search, model, evaluator, store, iterations, on_iteration, stop or asyncio.Event(), patience, clock)
    try:
        return await run.go()
    finally:
        await run.close()


@dataclass(slots=True)
class _Flight:
    """One iteration on its way. ``calling``: the model has the request, and no reply has arrived yet."""

    request: Request
    task: asyncio.Task[_Landing] | None = None
    calling: bool = False


@dataclass(frozen=True, slots=True)
class _Landing:
    """What came of a flight: a judged reply, or the model's refusal."""

    reply: Reply | None = None
    candidates: Candidates | None = None
    evaluations: tuple[Evaluation, ...] = ()
    refusal: ModelRequestError | None = None


class _Run:
    def __init__(
        self,
        search: Search,
        model: ModelClient,
        evaluator: Evaluator,
        store: RunStore,
        iterations: int,
        on_iteration: Callable[[IterationRecord], Awaitable[None]] | None,
        stop: asyncio.Event,
        patience: Patience | None,
        clock: Callable[[], float],
    ) -> None:
        self._search, self._model, self._evaluator, self._store = search, model, evaluator, store
        self._iterations, self._on_iteration, self._stop = iterations, on_iteration, stop
        self._patience = patience or Patience()
        self._clock, self._started, self._before = clock, clock(), 0.0
        self._replies: dict[int, Reply] = {}
        self._lost: dict[int, int] = {}
        self._flights: dict[int, _Flight] = {}
        self._judging: dict[str, asyncio.Task[Evaluation]] = {}
        self._refusals = 0
        self._usage = Usage()

    async def go(self) -> RunSummary:
        await self._take_up()
        stopping = asyncio.create_task(self._stop.wait())
        try:
            while self._more():
                self._launch()
                flight = self._flights.get(self._search.told + 1)
                if flight is None or flight.task is None:
                    break  # stopped or out of time, and the next iteration's call was not under way
                if not self._stop.is_set():
                    await asyncio.wait({flight.task, stopping}, return_when=asyncio.FIRST_COMPLETED)
                if self._stop.is_set() and not flight.task.done():
                    self._cancel_calls()
                    await asyncio.wait({flight.task})
                if flight.task.cancelled():
                    break
                await self._land(flight.request, flight.task.result())
        finally:
            stopping.cancel()
        return self._summary()

    async def close(self) -> None:
        """Cancel whatever is still in flight, and wait until it is gone."""
        tasks = [flight.task for flight in self._flights.values() if flight.task] + list(self._judging.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _take_up(self) -> None:
        stored = await self._store.load()
        self._replies, self._lost = dict(stored.replies), dict(stored.lost_calls)
        for record in stored.records:
            self._account(record)
        if stored.seed is not None:
            self._search.restore(stored.seed, stored.records)
            self._before = self._search.spent.seconds
            return
        evaluation = await self._judge(self._search.task.seed_source, "the seed program")
        await self._store.save_seed(self._search.begin(evaluation))

    def _more(self) -> bool:
        return self._search.told < self._iterations and not self._search.finished

    def _elapsed(self) -> float:
        return round(self._before + self._clock() - self._started, 3)

    def _late(self) -> bool:
        seconds = self._search.config.budget.seconds
        return seconds is not None and self._elapsed() >= seconds

    def _launch(self) -> None:
        while (
            self._search.can_ask
            and not self._stop.is_set()
            and not self._late()
            and self._search.told + len(self._flights) < self._iterations
        ):
            flight = _Flight(self._search.ask())
            flight.task = asyncio.create_task(self._fly(flight))
            self._flights[flight.request.iteration] = flight

    def _cancel_calls(self) -> None:
        for flight in self._flights.values():
            if flight.calling and flight.task:
                flight.task.cancel()

    async def _fly(self, flight: _Flight) -> _Landing:
        request = flight.request
        reply = self._replies.pop(request.iteration, None)
        if reply is None:
            try:
                reply = await self._call(flight)
            except ModelRequestError as refusal:
                if refusal.status not in _ABOUT_THIS_REQUEST:
                    raise
                return _Landing(refusal=refusal)
        candidates = self._search.read(request, reply)
        judging = [self._start_judging(request, child) for child in candidates.children]
        evaluations = await asyncio.gather(*(asyncio.shield(task) for task in judging))  # others may wait for them too
        return _Landing(reply, candidates, tuple(evaluations))

    async def _call(self, flight: _Flight) -> Reply:
        """Ask the model, and store its reply. A call in vain is counted whether it fails, is cancelled or dies."""
        request = flight.request
        lost = self._lost.get(request.iteration, 0)
        flight.calling = True
        await self._store.save_lost_calls(request.iteration, lost + 1)
        try:
            reply = await self._model.complete(request)
        except ModelError as error:
            flight.calling = False
            await self._store.save_lost_calls(request.iteration, lost + error.lost_calls)
            raise
        flight.calling = False
        reply = replace(reply, usage=reply.usage + Usage(lost_calls=lost))
        await self._store.save_reply(request.iteration, reply)
        return reply

    def _start_judging(self, request: Request, child: Child) -> asyncio.Task[Evaluation]:
        """The judging of a child; the one under way, where another iteration in flight brought the same program."""
        key = self._judging_key(request, child)
        if key not in self._judging:
            what = f"candidate {child.index} of iteration {request.iteration}"
            self._judging[key] = asyncio.create_task(self._judge(child.source, what))
        return self._judging[key]

    def _judging_key(self, request: Request, child: Child) -> str:
        return child.digest if self._search.config.dedupe else f"{request.iteration}/{child.index}"

    async def _judge(self, source: str, what: str) -> Evaluation:
        """An evaluation that says something about the program. Raises :class:`EvaluationFailed`."""
        evaluation = await self._evaluator.evaluate(source)
        for attempt in range(1, self._patience.attempts):
            if evaluation.infrastructure is None:
                break
            await asyncio.sleep(self._patience.delay_s * 2.0 ** (attempt - 1))
            evaluation = await self._evaluator.evaluate(source)
        if evaluation.infrastructure is not None:
            raise EvaluationFailed(
                f"{what} could not be judged in {self._patience.attempts} attempts: {evaluation.infrastructure}; "
                "nothing was scored, and the run can go on when the sandbox works again"
            )
        return evaluation

    async def _land(self, request: Request, landing: _Landing) -> None:
        record = self._record(request, landing)
        await self._store.save_iteration(record)
        self._account(record)
        del self._flights[request.iteration]
        for child in landing.candidates.children if landing.candidates else ():  # the search itself knows them now
            self._judging.pop(self._judging_key(request, child), None)
        if self._on_iteration:
            await self._on_iteration(record)

    def _record(self, request: Request, landing: _Landing) -> IterationRecord:
        if landing.refusal is not None:
            if self._refusals + 1 >= MAX_REFUSALS_IN_A_ROW:
                raise landing.refusal
            return self._search.fail(request, str(landing.refusal), elapsed_s=self._elapsed())
        assert landing.reply is not None  # a landing is one or the other
        assert landing.candidates is not None
        return self._search.tell(
            request, landing.reply, landing.candidates, landing.evaluations, elapsed_s=self._elapsed()
        )

    def _account(self, record: IterationRecord) -> None:
        self._refusals = self._refusals + 1 if record.error is not None else 0
        if record.reply is not None:
            self._usage += record.reply.usage

    def _summary(self) -> RunSummary:
        search = self._search
        return RunSummary(
            iterations=search.told,
            best_scalar=search.best.evaluation.scalar if search.best else 0.0,
            solved=search.solved,
            first_solved=search.first_solved,
            evaluations=search.spent.evaluations,
            usage=self._usage,
            spent=search.spent,
            ended=self._ended(),
        )

    def _ended(self) -> Ending:
        search = self._search
        if search.finished and search.ended is not None:
            return search.ended
        if search.told >= self._iterations:
            return "completed"
        return "seconds" if self._late() and not self._stop.is_set() else "stopped"
