"""``PostgresStore`` keeps a run exactly, and each iteration once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from evolve.config import SearchConfig
from evolve.driver import MemoryStore, run_search
from evolve.evaluator import make_evaluator
from evolve.program import Reply, Usage
from evolve.request import Request
from evolve.search import Search
from sandbox.runner import Sandbox
from service.db.engine import Sessions
from service.db.models import RunRow
from service.db.runs import Claim, LeaseLost, claim_run, set_status
from service.db.searches import create_search
from service.db.store import PostgresStore
from service.execution import ExactEvaluator
from service.schemas import RunStatus
from service.spec import SearchSpec
from tests.service.bodies import search
from tests.service.model_fake import answer

SPEC = SearchSpec.model_validate(search("http://127.0.0.1:9/v1"))
CONFIG = SearchConfig(samples=2, lag=2, islands=2, migration_interval=2, stop_when_solved=False)


class OddModel:
    """Answers from the seed alone, and now and then with what databases choke on."""

    async def complete(self, request: Request) -> Reply:
        texts = [answer(request.seed, i) for i in range(request.n)]
        if request.iteration % 3 == 0:
            texts[0] = "NUL \x00, a lone surrogate \ud800, and 'quotes' \\u0000 \u2028"
        usage = Usage(calls=1, prompt_tokens=10, completion_tokens=5, seconds=0.25)
        return Reply(texts=tuple(texts), finished=(True,) * request.n, usage=usage)


async def ignore(events: Any) -> None:
    pass


async def claimed(sessions: Sessions, worker: int = 1) -> Claim:
    async with sessions.begin() as session:
        row = await create_search(session, SPEC)
    async with sessions() as session:
        run = (await session.execute(RunRow.__table__.select().where(RunRow.search_id == row.id))).one()
    claim, _ = await claim_run(sessions, run.id, worker)
    assert claim is not None
    return claim


async def run(store: Any, sandbox: Sandbox, iterations: int) -> None:
    evaluator = ExactEvaluator(make_evaluator(SPEC.tasks[0], sandbox))
    fresh = Search(SPEC.tasks[0], CONFIG, seed=3)
    await run_search(fresh, model=OddModel(), evaluator=evaluator, store=store, iterations=iterations)


def comparable(record: Any) -> Any:
    """A record without the times that differ from one evaluation to the next."""
    programs = tuple(replace(p, evaluation=replace(p.evaluation, cpu_s=0.0, peak_mb=0.0)) for p in record.programs)
    rejected = tuple(replace(r, detail=r.detail.replace("\x00", "\ufffd")) for r in record.rejected)
    return replace(record, programs=programs, rejected=rejected)


async def test_a_run_in_pieces_from_postgres_is_the_run_in_memory_in_one_go(sessions: Sessions) -> None:
    claim = await claimed(sessions)
    memory = MemoryStore()
    async with Sandbox(2) as sandbox:
        await run(memory, sandbox, 9)
        for iterations in (1, 4, 9):
            await run(PostgresStore(sessions, claim, ignore), sandbox, iterations)
    stored = await PostgresStore(sessions, claim, ignore).load()
    assert [comparable(record) for record in stored.records] == [comparable(record) for record in memory.records]
    elapsed = [record.elapsed_s for record in stored.records]
    assert elapsed == sorted(elapsed)
    assert elapsed[0] > 0.0
    assert not stored.replies
    assert not stored.lost_calls


async def test_replies_and_lost_calls_survive_until_their_iteration_is_told(sessions: Sessions) -> None:
    claim = await claimed(sessions)
    store = PostgresStore(sessions, claim, ignore)
    reply = Reply(texts=("a\x00\ud800b",), finished=(False,), usage=Usage(calls=1, lost_calls=2, prompt_tokens=7))
    await store.save_lost_calls(1, 1)
    await store.save_lost_calls(1, 2)
    await store.save_lost_calls(2, 1)
    await store.save_reply(1, reply)
    stored = await store.load()
    assert stored.replies == {1: reply}
    assert stored.lost_calls == {2: 1}
    async with sessions() as session:
        row = await session.get_one(RunRow, claim.run_id)
    assert (row.calls, row.lost_calls, row.prompt_tokens) == (1, 3, 7)


async def test_an_iteration_is_stored_once(sessions: Sessions) -> None:
    claim = await claimed(sessions)
    memory = MemoryStore()
    async with Sandbox(2) as sandbox:
        await run(memory, sandbox, 1)
    store = PostgresStore(sessions, claim, ignore)
    await store.save_seed(memory.seed)
    outcomes = await asyncio.gather(
        *(store.save_iteration(memory.records[0]) for _ in range(4)), return_exceptions=True
    )
    assert sum(outcome is None for outcome in outcomes) == 1
    assert all(isinstance(outcome, LeaseLost) for outcome in outcomes if outcome is not None)
    stored = await store.load()
    assert len(stored.records) == 1
    assert len(stored.records[0].programs) == len(memory.records[0].programs)


async def test_a_worker_that_lost_its_run_stores_nothing_more(sessions: Sessions) -> None:
    old = await claimed(sessions, worker=1)
    new, _ = await claim_run(sessions, old.run_id, 2)  # worker 1 holds no lock: it is dead
    assert new is not None
    assert new.lease > old.lease
    with pytest.raises(LeaseLost):
        await PostgresStore(sessions, old, ignore).save_lost_calls(1, 1)
    await PostgresStore(sessions, new, ignore).save_lost_calls(1, 1)
    await set_status(sessions, new, RunStatus.DONE)
    with pytest.raises(LeaseLost):
        await PostgresStore(sessions, new, ignore).save_lost_calls(2, 1)
    assert await claim_run(sessions, old.run_id, 3) == (None, [])
