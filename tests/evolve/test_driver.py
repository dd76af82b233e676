"""The loop: what is in flight, what is stored when, and that a run survives whatever ends it."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evolve.config import BudgetConfig, SearchConfig
from evolve.driver import EvaluationFailed, MemoryStore, Patience, RunSummary, run_search
from evolve.models import ModelRequestError, ModelUnavailable
from evolve.program import Evaluation, IterationRecord, Reply
from evolve.randomness import generator
from evolve.request import Request
from tests.evolve.builders import evaluation
from tests.evolve.world import BITS, SEED_SOURCE, ToyEvaluator, answer, judge, new_search, reply_to, run

OPEN_END = SearchConfig(lag=3, answers=2, stop_when_solved=False)
AT_ONCE = Patience(attempts=3, delay_s=0.0)


class ToyModel:
    """The world's model; answers after a number of turns of the loop that depends on the iteration."""

    def __init__(self, *, shuffle: int = 0) -> None:
        self.shuffle = shuffle
        self.asked: Counter[int] = Counter()
        self.busy = self.most_busy = 0
        self.failures: dict[int, list[Exception]] = {}

    async def complete(self, request: Request) -> Reply:
        self.asked[request.iteration] += 1
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        try:
            turns = int(generator(self.shuffle, request.iteration).integers(12)) if self.shuffle else 1
            for _ in range(turns):
                await asyncio.sleep(0)
            failures = self.failures.get(request.iteration, [])
            if failures:
                raise failures.pop(0)
            return reply_to(request)
        finally:
            self.busy -= 1


async def drive(store: MemoryStore, config: SearchConfig, *, iterations: int = 15, **given: object) -> RunSummary:
    values: dict[str, object] = {"model": ToyModel(), "evaluator": ToyEvaluator(), "patience": AT_ONCE}
    return await run_search(new_search(config), store=store, iterations=iterations, **(values | given))  # type: ignore[arg-type]


def expected(config: SearchConfig, iterations: int = 15) -> list[IterationRecord]:
    search = new_search(config)
    search.begin(judge(SEED_SOURCE))
    return run(search, iterations)


async def test_a_run_from_beginning_to_end() -> None:
    store, model, evaluator = MemoryStore(), ToyModel(), ToyEvaluator()
    seen: list[int] = []

    async def note(record: IterationRecord) -> None:
        assert store.records[-1] is record  # stored before it is announced
        seen.append(record.iteration)

    summary = await drive(store, OPEN_END, model=model, evaluator=evaluator, on_iteration=note)
    assert store.records == expected(OPEN_END)
    assert store.seed is not None
    assert seen == list(range(1, 16))
    assert summary.ended == "completed"
    assert summary.iterations == 15
    assert summary.evaluations == sum(record.evaluations for record in store.records) == len(evaluator.judged) - 1
    assert summary.usage.calls == 15
    assert summary.best_scalar == store.records[-1].best_scalar
    assert (store.replies, store.lost_calls) == ({}, {})


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 5), st.integers(1, 1000))
def test_speed_changes_nothing_and_the_lag_bounds_what_is_in_flight(lag: int, shuffle: int) -> None:
    config = SearchConfig(lag=lag, answers=2, stop_when_solved=False)
    store, model, evaluator = MemoryStore(), ToyModel(shuffle=shuffle), ToyEvaluator()
    asyncio.run(drive(store, config, model=model, evaluator=evaluator))
    assert store.records == expected(config)
    assert model.most_busy <= lag
    assert max(Counter(evaluator.judged).values()) == 1  # never judged twice, in flight or not


async def test_as_many_calls_are_in_flight_as_the_lag_allows() -> None:
    model = ToyModel()
    await drive(MemoryStore(), OPEN_END, model=model)
    assert model.most_busy == 3


async def test_a_solved_run_ends_and_resuming_it_asks_nothing() -> None:
    store = MemoryStore()
    config = SearchConfig(lag=2, answers=3)
    summary = await drive(store, config, iterations=300)
    assert summary.solved
    assert summary.ended == "solved"
    assert summary.first_solved == summary.iterations == store.records[-1].iteration
    model = ToyModel()
    again = await drive(store, config, iterations=300, model=model)
    assert not model.asked
    assert again == summary


class DyingStore(MemoryStore):
    """A store whose process dies at the ``fuse``-th write: before it, or after it."""

    def __init__(self, fuse: int, *, after: bool) -> None:
        super().__init__()
        self.fuse, self.after, self.armed = fuse, after, True

    async def _write(self, write: object) -> None:
        self.fuse -= self.armed
        dies = self.armed and self.fuse <= 0
        if dies and not self.after:
            write.close()  # type: ignore[attr-defined]
            raise ConnectionError("killed")
        await write  # type: ignore[misc]
        if dies:
            raise ConnectionError("killed")

    async def save_seed(self, program: object) -> None:
        await self._write(super().save_seed(program))  # type: ignore[arg-type]

    async def save_lost_calls(self, iteration: int, count: int) -> None:
        await self._write(super().save_lost_calls(iteration, count))

    async def save_reply(self, iteration: int, reply: Reply) -> None:
        await self._write(super().save_reply(iteration, reply))

    async def save_iteration(self, record: IterationRecord) -> None:
        await self._write(super().save_iteration(record))


def _without_usage(records: list[IterationRecord]) -> list[object]:
    return [(r.iteration, r.programs, r.rejected, r.reply.texts if r.reply else None) for r in records]


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 46), st.booleans(), st.integers(0, 100))
def test_killed_at_any_write_the_run_goes_on_as_if_nothing_had_happened(fuse: int, after: bool, shuffle: int) -> None:
    store, first, second = DyingStore(fuse, after=after), ToyModel(shuffle=shuffle), ToyModel()
    with pytest.raises(ConnectionError):
        asyncio.run(drive(store, OPEN_END, model=first))
    stored, done = set(store.replies), len(store.records)
    store.armed = False
    asyncio.run(drive(store, OPEN_END, model=second))
    assert _without_usage(store.records) == _without_usage(expected(OPEN_END))
    assert not stored & set(second.asked)  # a stored reply is never requested again
    assert not set(range(1, done + 1)) & set(second.asked)
    used = sum(record.reply.usage.calls + record.reply.usage.lost_calls for record in store.records if record.reply)
    # Every call is accounted for; one that was noted but never sent may be counted as lost.
    assert first.asked.total() + second.asked.total() <= used <= first.asked.total() + second.asked.total() + 3


async def test_a_graceful_stop_keeps_what_has_arrived() -> None:
    store, stop, answered = MemoryStore(), asyncio.Event(), asyncio.Event()

    class SlowModel(ToyModel):
        async def complete(self, request: Request) -> Reply:
            if request.iteration > 4:  # 4 arrives, 5 and 6 never do
                self.asked[request.iteration] += 1
                answered.set()
                await asyncio.Event().wait()
            return await super().complete(request)

    model = SlowModel()
    running = asyncio.create_task(drive(store, OPEN_END, model=model, stop=stop))
    await answered.wait()
    for _ in range(50):
        await asyncio.sleep(0)
    stop.set()
    summary = await running
    assert summary.ended == "stopped"
    assert summary.iterations == len(store.records) == 4
    assert set(store.lost_calls) == {5, 6, 7}
    stop.clear()
    summary = await drive(store, OPEN_END, stop=stop)
    assert _without_usage(store.records) == _without_usage(expected(OPEN_END))
    assert summary.usage.lost_calls == 3


async def test_a_stop_keeps_replies_that_are_out_of_turn() -> None:
    store, stop = MemoryStore(), asyncio.Event()

    class FirstNeverComes(ToyModel):
        async def complete(self, request: Request) -> Reply:
            if request.iteration == 1:
                await asyncio.Event().wait()
            return await super().complete(request)

    running = asyncio.create_task(drive(store, OPEN_END, model=FirstNeverComes(), stop=stop))
    for _ in range(50):
        await asyncio.sleep(0)
    assert set(store.replies) == {2, 3}
    stop.set()
    assert (await running).iterations == 0
    model = ToyModel()
    await drive(store, OPEN_END, model=model)
    assert set(model.asked) == {1, *range(4, 16)}
    assert _without_usage(store.records) == _without_usage(expected(OPEN_END))


async def test_a_run_that_is_stopped_before_it_begins_asks_nothing() -> None:
    stop, model = asyncio.Event(), ToyModel()
    stop.set()
    summary = await drive(MemoryStore(), OPEN_END, model=model, stop=stop)
    assert (summary.iterations, summary.ended) == (0, "stopped")
    assert not model.asked


async def test_cancelling_leaves_nothing_running() -> None:
    before = asyncio.all_tasks()

    class Endless(ToyModel):
        async def complete(self, request: Request) -> Reply:
            await asyncio.Event().wait()
            raise AssertionError

    running = asyncio.create_task(drive(MemoryStore(), OPEN_END, model=Endless()))
    await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_a_dead_endpoint_burns_no_iterations() -> None:
    store, model = MemoryStore(), ToyModel()
    model.failures = {3: [ModelUnavailable("down", lost_calls=2)], 4: [ModelUnavailable("down")]}
    with pytest.raises(ModelUnavailable):
        await drive(store, OPEN_END, model=model)
    assert [record.iteration for record in store.records] == [1, 2]
    assert store.lost_calls[3] == 2
    summary = await drive(store, OPEN_END, model=model)
    assert _without_usage(store.records) == _without_usage(expected(OPEN_END))
    assert summary.usage.lost_calls >= 2


async def test_a_refused_request_is_recorded_and_the_run_goes_on() -> None:
    store, model = MemoryStore(), ToyModel()
    model.failures = {2: [ModelRequestError("the prompt is too long", status=400)]}
    summary = await drive(store, OPEN_END, model=model)
    assert summary.iterations == 15
    assert store.records[1].error == "the prompt is too long"
    assert store.records[1].programs == ()
    assert store.records[2].error is None


async def test_five_refusals_in_a_row_end_the_run_also_over_restarts() -> None:
    store = MemoryStore()
    for _ in range(2):
        model = ToyModel()
        model.failures = {t: [ModelRequestError("too long", status=400)] for t in range(1, 30)}
        with pytest.raises(ModelRequestError):
            await drive(store, OPEN_END, model=model)
        assert len(store.records) == 4


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_wrong_key_or_model_ends_the_run_at_once(status: int) -> None:
    store, model = MemoryStore(), ToyModel()
    model.failures = {1: [ModelRequestError("no", status=status)]}
    with pytest.raises(ModelRequestError):
        await drive(store, OPEN_END, model=model)
    assert store.records == []


class ShakyEvaluator(ToyEvaluator):
    """Cannot judge the first ``failures`` times."""

    def __init__(self, failures: int, *, spare_seed: bool = True) -> None:
        super().__init__()
        self.failures, self.spare_seed = failures, spare_seed

    async def evaluate(self, source: str) -> Evaluation:
        self.judged.append(source)
        if self.failures and not (self.spare_seed and source == SEED_SOURCE):
            self.failures -= 1
            return evaluation([0.0] * BITS, infrastructure="no jail")
        return judge(source)


async def test_what_could_not_be_judged_is_tried_again_and_never_scored() -> None:
    store = MemoryStore()
    await drive(store, OPEN_END, evaluator=ShakyEvaluator(2))
    assert store.records == expected(OPEN_END)


async def test_when_nothing_can_be_judged_the_run_ends_clearly_and_keeps_the_replies() -> None:
    store = MemoryStore()
    with pytest.raises(
        EvaluationFailed, match=r"candidate \d of iteration 1 could not be judged in 3 attempts: no jail"
    ):
        await drive(store, OPEN_END, evaluator=ShakyEvaluator(1000))
    assert store.records == []
    assert 1 in store.replies
    model = ToyModel()
    await drive(store, OPEN_END, model=model)
    assert 1 not in model.asked
    assert _without_usage(store.records) == _without_usage(expected(OPEN_END))


async def test_a_seed_program_that_cannot_be_judged_ends_the_run_clearly() -> None:
    store = MemoryStore()
    with pytest.raises(EvaluationFailed, match="the seed program could not be judged"):
        await drive(store, OPEN_END, evaluator=ShakyEvaluator(1000, spare_seed=False))
    assert store.seed is None


async def test_without_dedupe_every_candidate_is_judged() -> None:
    evaluator = ToyEvaluator()
    config = OPEN_END.model_copy(update={"dedupe": False})
    summary = await drive(MemoryStore(), config, iterations=40, evaluator=evaluator)
    assert len(evaluator.judged) == summary.evaluations + 1
    assert max(Counter(evaluator.judged).values()) > 1


async def test_the_memory_store_refuses_gaps() -> None:
    store = MemoryStore()
    with pytest.raises(ValueError, match="cannot follow"):
        await store.save_iteration(expected(OPEN_END)[1])


async def test_a_solved_run_cancels_what_is_in_flight() -> None:
    store, cancelled = MemoryStore(), []

    class Slow(ToyModel):
        async def complete(self, request: Request) -> Reply:
            if request.iteration == 1:
                return replace(reply_to(request), texts=(answer(2**BITS - 1),))
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.append(request.iteration)
            raise AssertionError

    summary = await drive(store, SearchConfig(lag=3), model=Slow())
    assert (summary.ended, summary.iterations, cancelled) == ("solved", 1, [2, 3])


@pytest.mark.parametrize("shuffle", [0, 5])
async def test_a_spent_budget_keeps_what_is_in_flight(shuffle: int) -> None:
    config = OPEN_END.model_copy(update={"budget": BudgetConfig(tokens=60)})
    store = MemoryStore()
    summary = await drive(store, config, model=ToyModel(shuffle=shuffle))
    assert store.records == expected(config)
    assert (summary.ended, summary.iterations, summary.spent.tokens) == ("tokens", 6, 90)
    assert not store.lost_calls


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 22), st.booleans())
def test_killed_on_the_way_a_spent_budget_ends_at_the_same_iteration(fuse: int, after: bool) -> None:
    config = OPEN_END.model_copy(update={"budget": BudgetConfig(tokens=60)})
    store = DyingStore(fuse, after=after)
    try:
        asyncio.run(drive(store, config))
    except ConnectionError:
        store.armed = False
        asyncio.run(drive(store, config))
    assert _without_usage(store.records) == _without_usage(expected(config))


async def test_wall_time_ends_a_run_and_counts_over_restarts() -> None:
    now = 0.0

    class Ticking(ToyModel):
        async def complete(self, request: Request) -> Reply:
            nonlocal now
            now += 10.0
            return await super().complete(request)

    config = SearchConfig(stop_when_solved=False, budget=BudgetConfig(seconds=50))
    store, stop = MemoryStore(), asyncio.Event()

    async def stop_after_two(record: IterationRecord) -> None:
        if record.iteration == 2:
            stop.set()

    summary = await drive(
        store, config, model=Ticking(), clock=lambda: now, stop=stop, on_iteration=stop_after_two, iterations=99
    )
    assert (summary.ended, summary.spent.seconds) == ("stopped", 20.0)
    now += 1000.0  # nobody works on it
    summary = await drive(store, config, model=Ticking(), clock=lambda: now, iterations=99)
    assert (summary.ended, summary.iterations, summary.spent.seconds) == ("seconds", 5, 50.0)
    assert [record.elapsed_s for record in store.records] == [10.0, 20.0, 30.0, 40.0, 50.0]
    again = await drive(store, config, model=Ticking(), clock=lambda: now, iterations=99)
    assert again == summary
