"""A search in this process, without service or database.

Its results live in memory and end with it or, given a folder (:mod:`service.folder`), in one journal per run: then the
same search goes on from there.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from evolve.cascade import search_evaluator
from evolve.driver import EvaluationFailed, MemoryStore, run_search
from evolve.endpoints import open_client
from evolve.ensemble import Ensemble
from evolve.journal import JournalError
from evolve.ledger import Spent
from evolve.models import ModelClient, ModelError, OpenAIModel
from evolve.program import IterationRecord, Program, Usage
from evolve.search import Search
from evolve.task import OpenEvolveTask, TestsTask
from sandbox.errors import SandboxError
from sandbox.runner import Sandbox
from sandbox.tiers import Tier
from service.curves import RunHistory, arm_curve
from service.folder import SearchFolder
from service.outcome import Outcome, Watch
from service.schemas import Curve, RunState, RunStatus
from service.spec import Arm, SearchSpec

RUNS_AT_ONCE = 16


class _Told:
    """A store that tells about the seed program, which no iteration record mentions."""

    def __init__(self, store: MemoryStore, run: _Run) -> None:
        self._store, self._run = store, run
        self.load, self.save_lost_calls = store.load, store.save_lost_calls
        self.save_reply, self.save_iteration = store.save_reply, store.save_iteration

    async def save_seed(self, program: Program) -> None:
        await self._store.save_seed(program)
        self._run.begun(program)


@dataclass(slots=True)
class _Run:
    """One run and what it went through."""

    id: str
    arm: Arm
    task: TestsTask | OpenEvolveTask
    seed: int
    search: Search
    watch: Watch
    status: RunStatus = RunStatus.QUEUED
    error: str | None = None
    ended: str | None = None
    usage: Usage = field(default_factory=Usage)
    spent: Spent = field(default_factory=Spent)
    history: RunHistory = field(default_factory=RunHistory)
    rejected: Counter[str] = field(default_factory=Counter)
    best: Program | None = None
    started: datetime | None = None
    finished: datetime | None = None

    def take_up(self, store: MemoryStore) -> None:
        """Note what a stored run went through so far."""
        if store.seed is not None:
            self._begin(store.seed)
            for record in store.records:
                self._note(record)

    def begun(self, seed: Program) -> None:
        self._begin(seed)
        self.watch(self.state())

    async def iterated(self, record: IterationRecord) -> None:
        self._note(record)
        self.watch(self.state())

    def _begin(self, seed: Program) -> None:
        self.best = seed
        self._append(seed.evaluation.scalar, 0, 0, solved=seed.evaluation.solved)

    def _note(self, record: IterationRecord) -> None:
        usage = record.reply.usage if record.reply else Usage()
        self.usage += usage
        self.spent = self.spent.plus(record, self.search.config.models)
        self.rejected.update(answer.reason for answer in record.rejected)
        for program in record.programs:
            if self.best is None or program.evaluation.scalar > self.best.evaluation.scalar:
                self.best = program
        tokens = usage.prompt_tokens + usage.completion_tokens
        self._append(record.best_scalar, record.evaluations, tokens, solved=record.solved)

    def _append(self, best: float, evaluations: int, tokens: int, *, solved: bool) -> None:
        if solved and self.history.solved_at is None:
            self.history.solved_at = len(self.history.best)
        self.history.best.append(best)
        self.history.evaluations.append(evaluations)
        self.history.tokens.append(tokens)

    def change(self, status: RunStatus, error: str | None = None, ended: str | None = None) -> None:
        self.status, self.error, self.ended = status, error, ended
        if status is RunStatus.RUNNING:
            self.started = datetime.now(UTC)
        if status.over:
            self.finished = datetime.now(UTC)
            self.history.over = True
        self.watch(self.state())

    def state(self) -> RunState:
        history, usage = self.history, self.usage
        return RunState(
            id=self.id,
            arm=self.arm.name,
            task=self.task.name,
            seed=self.seed,
            status=self.status,
            iteration=max(0, len(history.best) - 1),
            best=history.best[-1] if history.best else None,
            solved_at=history.solved_at,
            evaluations=sum(history.evaluations),
            calls=usage.calls,
            lost_calls=usage.lost_calls,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            tokens=usage.prompt_tokens + usage.completion_tokens,
            cost=self.spent.cost,
            error=self.error,
            ended=self.ended,
            started_at=self.started,
            finished_at=self.finished,
        )


class LocalSearcher:
    """Searches here. sandbox_concurrency: jails alive at once. model_timeout_s: for one whole answer.

    min_tier: the weakest isolation that programs may run in. folders: what evaluators may ask to see, by name.
    kept: where the search is kept, and goes on from; ``None`` keeps nothing.
    """

    def __init__(
        self,
        *,
        sandbox_concurrency: int | None = None,
        model_timeout_s: float = 300.0,
        min_tier: Tier = Tier.JAIL,
        folders: Mapping[str, Path] | None = None,
        kept: SearchFolder | None = None,
    ) -> None:
        self._concurrency = sandbox_concurrency or os.cpu_count() or 2
        self._sandbox = partial(Sandbox, self._concurrency, minimum_tier=min_tier, folders=folders)
        self._timeout_s, self._kept = model_timeout_s, kept

    async def __call__(self, spec: SearchSpec, watch: Watch, stop: asyncio.Event) -> Outcome:
        """See :class:`service.outcome.Searcher`. Raises :class:`sandbox.errors.SandboxUnavailable`, ``ValueError``."""
        runs = _make_runs(spec, watch)
        models = {arm.name: self._client(arm) for arm in spec.arms}
        gate = asyncio.Semaphore(RUNS_AT_ONCE)
        try:
            async with self._sandbox() as sandbox, asyncio.TaskGroup() as group:
                for run in runs:
                    group.create_task(self._carry_out(run, models[run.arm.name], sandbox, spec.iterations, gate, stop))
        except* (SandboxError, JournalError) as errors:
            raise errors.exceptions[0] from None
        finally:
            for model in models.values():
                await model.aclose()
        return _outcome(spec, runs, stopped=stop.is_set())

    async def _carry_out(
        self,
        run: _Run,
        model: ModelClient,
        sandbox: Sandbox,
        iterations: int,
        gate: asyncio.Semaphore,
        stop: asyncio.Event,
    ) -> None:
        async with gate:
            with self._kept.open_run(run.id) if self._kept else nullcontext(MemoryStore()) as store:
                run.take_up(store)
                if stop.is_set():
                    return run.change(RunStatus.CANCELLED)
                run.change(RunStatus.RUNNING)
                try:
                    summary = await run_search(
                        run.search,
                        model=model,
                        evaluator=search_evaluator(run.task, run.search.config, sandbox),
                        store=_Told(store, run),
                        iterations=iterations,
                        on_iteration=run.iterated,
                        stop=stop,
                    )
                except (ModelError, EvaluationFailed) as error:
                    return run.change(RunStatus.FAILED, str(error))
                if summary.ended == "stopped":
                    return run.change(RunStatus.CANCELLED)
                return run.change(RunStatus.DONE, ended=summary.ended)

    def _client(self, arm: Arm) -> OpenAIModel | Ensemble:
        clients = {endpoint.name: open_client(endpoint, timeout_s=self._timeout_s) for endpoint in arm.endpoints}
        return Ensemble(clients) if arm.models else next(iter(clients.values()))


def _make_runs(spec: SearchSpec, watch: Watch) -> list[_Run]:
    runs: list[_Run] = []
    for task, seed, arm in spec.runs:
        search = Search(task, arm.config(spec.search, task), seed=seed, manifest=arm.manifest)
        runs.append(_Run(str(len(runs) + 1), arm, task, seed, search, watch))
    return runs


def _outcome(spec: SearchSpec, runs: list[_Run], *, stopped: bool) -> Outcome:
    reached = max((len(run.history.best) - 1 for run in runs), default=0)
    horizon = max(reached, 0) if stopped else spec.iterations
    arms = [arm_curve(arm.name, [run.history for run in runs if run.arm is arm], horizon) for arm in spec.arms]
    failed = any(run.status is RunStatus.FAILED for run in runs)
    status = RunStatus.CANCELLED if stopped else RunStatus.FAILED if failed else RunStatus.DONE
    return Outcome(
        curve=Curve(search="local", status=status, iterations=spec.iterations, arms=arms),
        runs=[run.state() for run in runs],
        best={run.id: run.best.source for run in runs if run.best},
        rejected={arm.name: sum((run.rejected for run in runs if run.arm is arm), Counter()) for arm in spec.arms},
    )


def stored_outcome(spec: SearchSpec, folder: SearchFolder) -> Outcome:
    """What a folder holds of a search, whether or not a process is working on it; changes nothing.

    A run without all its iterations counts as cancelled. Raises :class:`evolve.journal.JournalError`.
    """
    runs = _make_runs(spec, lambda _: None)
    for run in runs:
        store = folder.read_run(run.id)
        run.take_up(store)
        if store.seed is not None:
            run.search.restore(store.seed, store.records)
        ended = run.search.ended if run.search.finished else None
        if ended is None and store.seed is not None and run.search.told >= spec.iterations:
            ended = "completed"
        run.change(RunStatus.DONE if ended else RunStatus.CANCELLED, ended=ended)
    return _outcome(spec, runs, stopped=any(run.status is not RunStatus.DONE for run in runs))
