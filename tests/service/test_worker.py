"""What a worker does when its model, its key or another worker fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

import httpx
import psutil
import pytest
from sqlalchemy import text

from service.db.engine import Sessions
from service.db.leases import find_suspects, is_alive, open_lease_connection, take_number
from service.db.runs import RunBusy, claim_run
from service.embedded.folder import prepare
from service.embedded.postgres import EmbeddedPostgres
from service.settings import Settings
from tests.service.bodies import arm, post, search, wait_for, wait_for_iteration
from tests.service.model_fake import FakeModel
from tests.service.test_embedded import processes

Serve = Callable[[Settings], AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up on a model quickly, and wait for it for a second at most."""
    monkeypatch.setattr("evolve.models.RetryPolicy.delay", lambda *_: 0.05)
    monkeypatch.setattr("service.execution._FIRST_WAIT_S", 1)
    monkeypatch.setattr("service.execution._LONGEST_WAIT_S", 1)


@pytest.mark.usefixtures("impatient")
async def test_a_run_waits_for_its_model_and_goes_on_when_it_is_back(api: httpx.AsyncClient, model: FakeModel) -> None:
    model.status = 503
    created = await post(api, search(model.url, iterations=3))
    waiting = await wait_for(api, created["id"], "waiting")
    assert waiting["runs"][0]["status"] == "waiting"
    assert "503" in waiting["runs"][0]["error"]
    assert waiting["runs"][0]["iteration"] == 0
    model.status = 200
    done = await wait_for(api, created["id"])
    assert done["status"] == "done"
    assert done["runs"][0]["iteration"] == 3
    assert done["runs"][0]["error"] is None
    assert done["runs"][0]["calls"] == 3


async def test_a_waiting_search_can_be_cancelled(api: httpx.AsyncClient) -> None:
    created = await post(api, search("http://127.0.0.1:9/v1", iterations=3))
    waiting = await wait_for(api, created["id"], "waiting")
    assert "is the server running" in waiting["runs"][0]["error"]
    cancelled = (await api.post(f"/search/{created['id']}/cancel")).json()
    assert cancelled["runs"][0]["status"] == "cancelled"


async def test_a_model_that_refuses_for_good_fails_the_run(api: httpx.AsyncClient, model: FakeModel) -> None:
    model.status = 401
    failed = await wait_for(api, (await post(api, search(model.url)))["id"])
    assert failed["status"] == "failed"
    assert "answered 401" in failed["runs"][0]["error"]


async def test_keys_come_from_the_workers_environment_and_are_stored_nowhere(
    api: httpx.AsyncClient, model: FakeModel, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_ONE_API_KEY", "sk-very-secret")
    body = search(model.url, iterations=1, arms=[arm(model.url, api_key_env="TEST_ONE_API_KEY")])
    assert (await wait_for(api, (await post(api, body))["id"]))["status"] == "done"
    assert set(model.keys) == {"Bearer sk-very-secret"}
    async with sessions() as session:
        for table in ("searches", "runs", "iterations", "programs", "events", "procrastinate_jobs"):
            found = await session.scalar(text(f"SELECT count(*) FROM {table} t WHERE t::text LIKE '%very-secret%'"))
            assert found == 0
    body["arms"][0]["api_key_env"] = "TEST_MISSING_API_KEY"
    failed = await wait_for(api, (await post(api, body))["id"])
    assert failed["status"] == "failed"
    assert "TEST_MISSING_API_KEY" in failed["runs"][0]["error"]


async def test_a_stopped_service_goes_on_where_it_was(serve: Serve, settings: Settings, model: FakeModel) -> None:
    model.delay_s = 0.1
    async with serve(settings) as api:
        created = await post(api, search(model.url, iterations=15))
        await wait_for_iteration(api, created["id"], 3)
    async with serve(settings) as api:
        done = await wait_for(api, created["id"])
        programs = (await api.get(f"/search/{created['id']}/programs?limit=500")).json()["programs"]
    assert done["status"] == "done"
    assert done["runs"][0]["iteration"] == 15
    assert len({program["number"] for program in programs}) == len(programs)
    assert done["runs"][0]["calls"] == 15


async def test_two_workers_share_the_runs_of_a_search(serve: Serve, settings: Settings, model: FakeModel) -> None:
    narrow = settings.model_copy(update={"concurrency": 2})
    model.delay_s = 0.05
    async with serve(narrow) as api, serve(narrow):
        created = await post(api, search(model.url, seeds=list(range(8)), iterations=5))
        done = await wait_for(api, created["id"])
    assert done["status"] == "done"
    assert [run["calls"] for run in done["runs"]] == [5] * 8


async def test_only_a_living_worker_keeps_its_runs(
    serve: Serve, settings: Settings, sessions: Sessions, database_url: str
) -> None:
    quiet = settings.model_copy(update={"worker": False})
    async with serve(quiet) as api:
        created = await post(api, search("http://127.0.0.1:9/v1"))
    run_id = int(created["runs"][0]["id"])
    async with sessions.begin() as session:
        await session.execute(text("UPDATE procrastinate_jobs SET status = 'doing'"))
    async with await open_lease_connection(database_url) as lease:
        number = await take_number(lease)
        claim, _ = await claim_run(sessions, run_id, number)
        assert claim is not None
        async with sessions() as session:
            assert await is_alive(session, number)
            assert await find_suspects(session, own=0) == []
            assert [suspect.run_id for suspect in await find_suspects(session, own=number)] == [run_id]
        with pytest.raises(RunBusy):
            await claim_run(sessions, run_id, number + 1)
    async with sessions() as session:
        for _ in range(200):
            if not await is_alive(session, number):
                break
            await asyncio.sleep(0.05)
        assert [suspect.run_id for suspect in await find_suspects(session, own=0)] == [run_id]
    assert (await claim_run(sessions, run_id, number + 1))[0] is not None


async def test_a_run_whose_job_is_lost_gets_a_new_one(
    serve: Serve, settings: Settings, sessions: Sessions, model: FakeModel
) -> None:
    async with serve(settings.model_copy(update={"worker": False})) as api:
        created = await post(api, search(model.url, iterations=2, seeds=[0, 1]))
    async with sessions.begin() as session:
        first = "(SELECT min(id) FROM procrastinate_jobs)"
        await session.execute(text(f"DELETE FROM procrastinate_jobs WHERE id = {first}"))
        await session.execute(text("UPDATE procrastinate_jobs SET status = 'failed'"))
    async with serve(settings) as api:
        assert (await wait_for(api, created["id"]))["status"] == "done"


@pytest.mark.soak
async def test_a_database_that_restarts_in_the_middle_costs_nothing(
    serve: Serve, data_dir: Path, redis_url: str, model: FakeModel
) -> None:
    folder = prepare(data_dir)
    model.delay_s = 0.05
    async with EmbeddedPostgres(folder) as url:
        own = Settings(database_url=url, redis_url=redis_url, concurrency=4, sandbox_concurrency=2)
        async with serve(own) as api:
            created = await post(api, search(model.url, seeds=[0, 1, 2], iterations=20))
            await wait_for_iteration(api, created["id"], 3)
            for pid in list(processes(data_dir)):
                with suppress(psutil.NoSuchProcess):
                    psutil.Process(pid).kill()
            async with EmbeddedPostgres(folder):
                assert (await api.get("/healthz")).status_code == 200
                done = await wait_for(api, created["id"])
                assert done["status"] == "done"
                assert [run["iteration"] for run in done["runs"]] == [20, 20, 20]
                assert [run["calls"] for run in done["runs"]] == [20, 20, 20]
                events = [event async for event in _event_ids(api, created["id"])]
                assert events == list(range(1, len(events) + 1))


async def _event_ids(api: httpx.AsyncClient, search_id: str) -> AsyncIterator[int]:
    async with api.stream("GET", f"/search/{search_id}/events") as response:
        async for line in response.aiter_lines():
            if line.startswith("id: "):
                yield int(line[4:])


async def test_an_openevolve_task_runs_as_it_is(api: httpx.AsyncClient, model: FakeModel) -> None:
    evaluator = (
        "import importlib.util\n\n\ndef evaluate(path):\n"
        "    spec = importlib.util.spec_from_file_location('candidate', path)\n"
        "    module = importlib.util.module_from_spec(spec)\n    spec.loader.exec_module(module)\n"
        "    good = [module.f(xs) == xs[::-1] for xs in ([1, 2, 3], [], [3, 1])]\n"
        "    return {'right': sum(good) / 3, 'nonempty': (good[0] + good[2]) / 2}\n"
    )
    files = {"initial_program.py": "def f(xs):\n    return xs\n", "evaluator.py": evaluator}
    body = search(model.url, iterations=4, tasks=[{"format": "openevolve", "name": "two files", "files": files}])
    done = await wait_for(api, (await post(api, body))["id"])
    assert done["status"] == "done", done["runs"]
    programs = (await api.get(f"/search/{done['id']}/programs?order=newest")).json()["programs"]
    assert len(programs) == 1 + 8
    seed = programs[-1]
    assert seed["components"] == ["nonempty", "right"]
    assert seed["reward"] == pytest.approx([0.0, 1 / 3])
    assert seed["metrics"] == pytest.approx({"nonempty": 0.0, "right": 1 / 3})
