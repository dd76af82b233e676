"""``PostgresStore``: where :func:`evolve.driver.run_search` keeps a run. One transaction per call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import ScalarSelect, func, insert, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import undefer

from evolve.config import ModelConfig
from evolve.driver import StoredRun
from evolve.ledger import Spent
from evolve.program import Evaluation, IterationRecord, Program, Rejected, Reply, Usage
from sandbox.verdict import Status as VerdictStatus
from service.db.engine import Sessions
from service.db.events import Event, append_event
from service.db.models import IterationRow, ProgramRow, RunRow
from service.db.runs import Claim, LeaseLost, changed_events, update_claimed
from service.db.states import run_state
from service.schemas import IterationEvent, RunStatus

_ELAPSED = "elapsed_s"  # beside what the search itself notes in info

Publish = Callable[[Sequence[Event]], Awaitable[None]]


class PostgresStore:
    """A :class:`evolve.driver.RunStore` for one claimed run. Every write raises ``LeaseLost`` once the claim is gone.

    publish: told the events after each commit; what it fails to deliver is in the events table all the same.
    models: with the prices that the run's cost is counted by.
    """

    def __init__(
        self, sessions: Sessions, claim: Claim, publish: Publish, *, models: tuple[ModelConfig, ...] = ()
    ) -> None:
        self._sessions, self._claim, self._publish, self._models = sessions, claim, publish, models
        self._waiting = claim.failures > 0

    async def load(self) -> StoredRun:
        """Everything stored of the run."""
        async with self._sessions() as session:
            programs = await self._programs(session)
            query = (
                select(IterationRow)
                .where(IterationRow.run_id == self._claim.run_id)
                .order_by(IterationRow.iteration)
                .options(undefer(IterationRow.reply))
            )
            rows = (await session.scalars(query)).all()
        seed = next((program for program in programs[0] if program.operator == "seed"), None)
        open_rows = [row for row in rows if row.finished_at is None]
        return StoredRun(
            seed=seed,
            records=tuple(_record(row, programs[row.iteration]) for row in rows if row.finished_at is not None),
            replies={row.iteration: _reply(row.reply) for row in open_rows if row.reply is not None},
            lost_calls={row.iteration: row.lost_calls for row in open_rows if row.reply is None and row.lost_calls},
        )

    async def save_seed(self, program: Program) -> None:
        """Keep the seed program, which is iteration 0."""
        values: dict[str, Any] = {"best": program.evaluation.scalar}
        if program.evaluation.solved:
            values["solved_at"] = 0
        async with self._sessions.begin() as session:
            run = await update_claimed(session, self._claim, values)
            await self._insert_programs(session, [program])
            events = [await self._iteration_event(session, run, iteration=0, programs=1, error=None)]
        await self._publish(events)

    async def save_lost_calls(self, iteration: int, count: int) -> None:
        """Set the iteration's number of requests that are lost unless a reply is stored."""
        async with self._sessions.begin() as session:
            total = RunRow.lost_calls + count - self._lost_before(iteration)
            await update_claimed(session, self._claim, {"lost_calls": total})
            await self._upsert(session, iteration, {"lost_calls": count})

    async def save_reply(self, iteration: int, reply: Reply) -> None:
        """Keep a reply; from here on it is never asked for again."""
        usage = reply.usage
        counts: dict[str, Any] = {
            "calls": RunRow.calls + usage.calls,
            "lost_calls": RunRow.lost_calls + usage.lost_calls - self._lost_before(iteration),
            "prompt_tokens": RunRow.prompt_tokens + usage.prompt_tokens,
            "completion_tokens": RunRow.completion_tokens + usage.completion_tokens,
        }
        values = {
            "reply": asdict(reply),
            "lost_calls": usage.lost_calls,
            "tokens": usage.prompt_tokens + usage.completion_tokens,
        }
        events: list[Event] = []
        async with self._sessions.begin() as session:
            if self._waiting:  # the model is back
                counts |= {"status": str(RunStatus.RUNNING), "message": None, "failures": 0}
            run = await update_claimed(session, self._claim, counts)
            await self._upsert(session, iteration, values)
            if self._waiting:
                events = await changed_events(session, run, self._claim.search)
        self._waiting = False
        await self._publish(events)

    async def save_iteration(self, record: IterationRecord) -> None:
        """Append a finished iteration with its programs."""
        async with self._sessions.begin() as session:
            run = await update_claimed(session, self._claim, self._progress(record))
            await self._upsert(session, record.iteration, _iteration_values(record))
            await self._insert_programs(session, record.programs)
            event = await self._iteration_event(
                session, run, iteration=record.iteration, programs=record.evaluations, error=record.error
            )
        await self._publish([event])

    def _lost_before(self, iteration: int) -> ScalarSelect[int]:
        """The calls of an iteration that the run's total counts as lost already."""
        return (
            select(func.coalesce(func.max(IterationRow.lost_calls), 0))
            .where(IterationRow.run_id == self._claim.run_id, IterationRow.iteration == iteration)
            .scalar_subquery()
        )

    def _progress(self, record: IterationRecord) -> dict[str, Any]:
        values: dict[str, Any] = {
            "iteration": record.iteration,
            "best": record.best_scalar,
            "evaluations": RunRow.evaluations + record.evaluations,
            "cost": RunRow.cost + Spent().plus(record, self._models).cost,
        }
        if record.solved:
            values["solved_at"] = func.coalesce(RunRow.solved_at, record.iteration)
        return values

    async def _upsert(self, session: AsyncSession, iteration: int, values: dict[str, Any]) -> None:
        """Write to the iteration's row, which must not be finished: an iteration is told exactly once."""
        query = (
            upsert(IterationRow)
            .values(run_id=self._claim.run_id, iteration=iteration, **values)
            .on_conflict_do_update(
                index_elements=[IterationRow.run_id, IterationRow.iteration],
                set_=values,
                where=IterationRow.finished_at.is_(None),
            )
            .returning(IterationRow.iteration)
        )
        if await session.scalar(query) is None:
            raise LeaseLost(f"iteration {iteration} of run {self._claim.run_id} is stored already")

    async def _insert_programs(self, session: AsyncSession, programs: Sequence[Program]) -> None:
        if programs:
            claim = self._claim
            await session.execute(
                insert(ProgramRow), [_program_values(claim.run_id, claim.search.id, program) for program in programs]
            )

    async def _iteration_event(
        self, session: AsyncSession, run: RunRow, *, iteration: int, programs: int, error: str | None
    ) -> Event:
        search = self._claim.search
        content = IterationEvent(
            search=str(search.id), run=run_state(run, search), iteration=iteration, programs=programs, error=error
        )
        return await append_event(session, search.id, content)

    async def _programs(self, session: AsyncSession) -> defaultdict[int, list[Program]]:
        """The run's programs by iteration, in order."""
        query = select(ProgramRow).where(ProgramRow.run_id == self._claim.run_id).order_by(ProgramRow.number)
        programs: defaultdict[int, list[Program]] = defaultdict(list)
        for row in await session.scalars(query):
            programs[row.iteration].append(_program(row))
        return programs


def _iteration_values(record: IterationRecord) -> dict[str, Any]:
    return {
        "island": record.island,
        "parents": list(record.parents),
        "rejected": [[item.index, item.reason, _storable(item.detail)] for item in record.rejected],
        "evaluations": record.evaluations,
        "best_scalar": record.best_scalar,
        "solved": record.solved,
        "error": None if record.error is None else _storable(record.error),
        "info": {**record.info, _ELAPSED: record.elapsed_s},
        "finished_at": func.now(),
    }


def _program_values(run_id: int, search_id: int, program: Program) -> dict[str, Any]:
    evaluation = program.evaluation
    return {
        "run_id": run_id,
        "search_id": search_id,
        "number": program.number,
        "iteration": program.iteration,
        "index": program.index,
        "island": program.island,
        "parents": list(program.parents),
        "operator": program.operator,
        "source": program.source,
        "digest": program.digest,
        "scalar": evaluation.scalar,
        "solved": evaluation.solved,
        "components": list(evaluation.components),
        "reward": list(evaluation.reward),
        "statuses": [str(status) for status in evaluation.statuses],
        "messages": list(evaluation.messages),
        "metrics": evaluation.metrics,
        "artifacts": evaluation.artifacts,
        "cpu_s": evaluation.cpu_s,
        "peak_mb": evaluation.peak_mb,
    }


def _program(row: ProgramRow) -> Program:
    evaluation = Evaluation(
        components=tuple(row.components),
        reward=tuple(row.reward),
        statuses=tuple(VerdictStatus(status) for status in row.statuses),
        messages=tuple(row.messages),
        scalar=row.scalar,
        solved=row.solved,
        metrics=row.metrics,
        artifacts=row.artifacts,
        cpu_s=row.cpu_s,
        peak_mb=row.peak_mb,
    )
    return Program(
        number=row.number,
        iteration=row.iteration,
        index=row.index,
        island=row.island,
        parents=tuple(row.parents),
        source=row.source,
        digest=row.digest,
        operator=row.operator,
        evaluation=evaluation,
    )


def _record(row: IterationRow, programs: Sequence[Program]) -> IterationRecord:
    info = dict(row.info or {})
    return IterationRecord(
        iteration=row.iteration,
        island=row.island or 0,
        parents=tuple(row.parents or ()),
        reply=None if row.reply is None else _reply(row.reply),
        programs=tuple(programs),
        rejected=tuple(Rejected(index=i, reason=reason, detail=detail) for i, reason, detail in row.rejected or ()),
        evaluations=row.evaluations,
        best_scalar=row.best_scalar or 0.0,
        solved=bool(row.solved),
        error=row.error,
        elapsed_s=info.pop(_ELAPSED, 0.0),
        info=info,
    )


def _reply(document: dict[str, Any]) -> Reply:
    return Reply(texts=tuple(document["texts"]), finished=tuple(document["finished"]), usage=Usage(**document["usage"]))


def _storable(text: str) -> str:
    """The text without what a Postgres text cannot hold."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
