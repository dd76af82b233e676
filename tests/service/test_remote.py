"""The same search here and on a service; following and cancelling one over real HTTP."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from service.client import RemoteSearcher, ServiceClient, ServiceError
from service.local import LocalSearcher
from service.schemas import RunState, RunStatus, SearchDetail
from service.spec import SearchSpec
from tests.service.bodies import arm, search, task
from tests.service.model_fake import FakeModel


def spec(model: FakeModel, **more: object) -> SearchSpec:
    each = {"endpoint": model.url, "model": "fake", "temperature": 0.5, "prompt_price": 2.0}
    several = [each | {"name": name} for name in ("x", "y")]
    arms = [arm(model.url, "a"), {"name": "b", "models": several}]
    body = {"tasks": [task("one"), task("two")], "arms": arms, "seeds": [0, 1]}
    return SearchSpec.model_validate(search(model.url, **body | more))


async def test_a_search_gives_the_same_here_and_on_a_service(api: httpx.AsyncClient, model: FakeModel) -> None:
    created: list[SearchDetail] = []
    seen: list[RunState] = []
    async with ServiceClient(str(api.base_url)) as client:
        ready = await client.ready()
        assert ready is not None
        assert ready.ready
        remote = await RemoteSearcher(client, created.append)(spec(model), seen.append, asyncio.Event())
        assert (await api.get(client.dashboard(created[0].id).partition("#")[0])).status_code == 200
        programs = await client.programs(created[0].id, remote.runs[0].id)
    local = await LocalSearcher()(spec(model), lambda _: None, asyncio.Event())
    assert remote.curve.arms == local.curve.arms
    assert remote.curve.status is local.curve.status is RunStatus.DONE

    def facts(run: RunState) -> tuple[object, ...]:
        counts = run.iteration, run.solved_at, run.evaluations, run.tokens
        return run.arm, run.task, run.seed, run.best, *counts, run.cost, run.ended

    assert sorted(map(facts, remote.runs)) == sorted(map(facts, local.runs))
    assert {run.ended for run in remote.runs} <= {"solved", "completed"}
    assert all((run.cost > 0) == (run.arm == "b") for run in remote.runs)
    assert sorted(remote.best.values()) == sorted(local.best.values())
    assert {run.iteration for run in seen if run.id == remote.runs[0].id} == set(range(7))
    assert [program.number for program in programs] == list(range(len(programs)))[::-1]


async def test_stopping_cancels_the_search_on_the_service(api: httpx.AsyncClient, model: FakeModel) -> None:
    stop = asyncio.Event()

    def watch(run: RunState) -> None:
        if run.iteration >= 2:
            stop.set()

    async with ServiceClient(str(api.base_url)) as client:
        outcome = await RemoteSearcher(client)(spec(model, iterations=100_000), watch, stop)
    assert outcome.curve.status is RunStatus.CANCELLED
    assert all(run.status is RunStatus.CANCELLED for run in outcome.runs)
    assert any(run.iteration >= 2 for run in outcome.runs)


async def test_a_cancelled_search_goes_on_where_it_was(api: httpx.AsyncClient, model: FakeModel) -> None:
    stop, created = asyncio.Event(), list[SearchDetail]()

    def watch(run: RunState) -> None:
        if run.iteration >= 2:
            stop.set()

    async with ServiceClient(str(api.base_url)) as client:
        first = await RemoteSearcher(client, created.append)(spec(model, iterations=25), watch, stop)
        assert first.curve.status is RunStatus.CANCELLED
        found = await client.resume(created[0].id)
        assert not found.status.over
        again = await RemoteSearcher(client).follow(found, lambda _: None, asyncio.Event())
        with pytest.raises(ServiceError, match="nothing to go on with"):
            await client.resume(created[0].id)
        assert [search.id for search in await client.searches(1)] == [created[0].id]
    whole = await LocalSearcher()(spec(model, iterations=25), lambda _: None, asyncio.Event())
    assert again.curve.status is RunStatus.DONE
    assert again.curve.arms == whole.curve.arms
