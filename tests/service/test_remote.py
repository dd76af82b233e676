"""The same search here and on a service; following and cancelling one over real HTTP."""

from __future__ import annotations

import asyncio

import httpx

from service.client import RemoteSearcher, ServiceClient
from service.local import LocalSearcher
from service.schemas import RunState, RunStatus, SearchDetail
from service.spec import SearchSpec
from tests.service.bodies import arm, search, task
from tests.service.model_fake import FakeModel


def spec(model: FakeModel, **more: object) -> SearchSpec:
    body = {"tasks": [task("one"), task("two")], "arms": [arm(model.url, "a"), arm(model.url, "b")], "seeds": [0, 1]}
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
        return run.arm, run.task, run.seed, run.iteration, run.best, run.solved_at, run.evaluations, run.tokens

    assert sorted(map(facts, remote.runs)) == sorted(map(facts, local.runs))
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
