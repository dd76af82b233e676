"""From POST /search to curves and programs, with everything real but the model's weights."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from tests.service.bodies import arm, post, search, task, wait_for, wait_for_iteration
from tests.service.model_fake import FakeModel


async def test_a_search_runs_to_its_end(api: httpx.AsyncClient, model: FakeModel) -> None:
    body = search(model.url, tasks=[task("one"), task("two")], seeds=[0, 1])
    body["arms"] = [arm(model.url, "pairs", samples=2), arm(model.url, "cold", samples=2, temperature=0.2)]
    created = await post(api, body)
    assert created["status"] == "queued"
    assert len(created["runs"]) == 8
    done = await wait_for(api, created["id"])
    assert done["status"] == "done"
    assert done["progress"] == 1.0
    assert all(run["iteration"] == 6 and run["status"] == "done" for run in done["runs"])
    for summary in done["arms"]:
        assert summary["evaluations_per_iteration"] == 2
        assert (summary["runs"], summary["finished"]) == (4, 4)
        assert summary["tokens"] == 4 * 6 * 140
    curve = (await api.get(f"/search/{created['id']}/curve")).json()
    for line, summary in zip(curve["arms"], done["arms"], strict=True):
        assert line["t"] == list(range(7))
        assert line["complete_to"] == 6
        assert line["solved"][-1] == summary["solved"]
        assert line["pass_at_t"] == [solved / 4 for solved in line["solved"]]
        assert line["best_at_t"] == sorted(line["best_at_t"])
        assert line["best_at_t"][-1] == pytest.approx(summary["best"])
        assert line["evaluations"][-1] == summary["evaluations"]
        assert line["tokens"] == [4 * 140 * t for t in range(7)]
    assert (await api.get("/search")).json()["searches"][0] == {
        key: value for key, value in done.items() if key not in ("tasks", "seeds", "search", "runs", "last_event")
    }


async def test_programs_come_best_or_newest_first_page_by_page(api: httpx.AsyncClient, model: FakeModel) -> None:
    created = await post(api, search(model.url))
    await wait_for(api, created["id"])
    for order in ("best", "newest"):
        programs = await _all_programs(api, f"/search/{created['id']}/programs?order={order}&limit=4")
        assert len({program["id"] for program in programs}) == len(programs) == 1 + 2 * 6
        keys = [(-p["scalar"], int(p["id"])) if order == "best" else -int(p["id"]) for p in programs]
        assert keys == sorted(keys)
    best = (await api.get(f"/search/{created['id']}/programs?limit=1")).json()["programs"][0]
    assert best["components"] == ["t00", "t01", "t02", "t03"]
    assert len(best["reward"]) == len(best["statuses"]) == len(best["messages"]) == 4
    assert best["scalar"] == pytest.approx(sum(best["reward"]) / 4)
    assert [status == "passed" for status in best["statuses"]] == [reward == 1.0 for reward in best["reward"]]
    of_run = await api.get(f"/search/{created['id']}/programs?run={created['runs'][0]['id']}&order=newest")
    assert len(of_run.json()["programs"]) == 13
    assert (await api.get(f"/search/{created['id']}/programs?order=best&after=nonsense")).status_code == 422


async def test_a_run_stops_when_it_is_solved(api: httpx.AsyncClient, model: FakeModel) -> None:
    body = search(model.url, iterations=100, search={"samples": 6})
    done = await wait_for(api, (await post(api, body))["id"])
    run = done["runs"][0]
    assert done["status"] == "done"
    assert run["solved_at"] == run["iteration"] < 100
    curve = (await api.get(f"/search/{done['id']}/curve")).json()["arms"][0]
    assert curve["t"][-1] == curve["complete_to"] == 100
    assert curve["solved"][run["solved_at"] - 1 : run["solved_at"] + 1] == [0, 1]


async def test_searches_are_listed_newest_first(api: httpx.AsyncClient, model: FakeModel) -> None:
    ids = [(await post(api, search(model.url, iterations=1)))["id"] for _ in range(3)]
    first = (await api.get("/search?limit=2")).json()
    second = (await api.get(first["next"])).json()
    assert [found["id"] for page in (first, second) for found in page["searches"]] == ids[::-1]
    assert second["next"] is None


async def test_cancelling_stops_at_once_and_keeps_what_was_found(api: httpx.AsyncClient, model: FakeModel) -> None:
    model.delay_s = 0.2
    created = await post(api, search(model.url, iterations=10_000, seeds=[0, 1, 2, 3, 4, 5]))
    await wait_for_iteration(api, created["id"], 2)
    cancelled = (await api.post(f"/search/{created['id']}/cancel")).json()
    assert cancelled["status"] == "cancelled"
    assert {run["status"] for run in cancelled["runs"]} == {"cancelled"}
    await asyncio.sleep(0.5)
    asked = len(model.seeds)
    await asyncio.sleep(1.0)
    assert len(model.seeds) == asked
    again = (await api.post(f"/search/{created['id']}/cancel")).json()
    assert again == (await api.get(f"/search/{created['id']}")).json() == cancelled
    assert (await api.get(f"/search/{created['id']}/programs")).json()["programs"]


async def test_what_is_over_cannot_be_cancelled(api: httpx.AsyncClient, model: FakeModel) -> None:
    created = await post(api, search(model.url, iterations=1))
    await wait_for(api, created["id"])
    response = await api.post(f"/search/{created['id']}/cancel")
    assert response.status_code == 409
    assert "done already" in response.json()["detail"]


@pytest.mark.parametrize("path", ["/search/999", "/search/abc", "/search/0/curve", f"/search/{10**30}/events"])
async def test_an_unknown_search_is_a_404_problem(api: httpx.AsyncClient, path: str) -> None:
    response = await api.get(path)
    assert response.status_code == 404
    assert response.headers["Content-Type"] == "application/problem+json"
    assert response.json()["status"] == 404


def _with(body: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    place: Any = body
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in parents:
        place = place[part]
    place[last] = value
    return body


INVALID = [
    ("iterations", 0, "iterations", "greater than or equal to 1"),
    ("iterations", "many", "iterations", "not 'many'"),
    ("iteration", 5, "iteration", "did you mean 'iterations'"),
    ("seeds", [1, 1], "seeds", "repeats seeds[0]"),
    ("arms.0.endpoint", "127.0.0.1:8000", "arms[0].endpoint", "http://127.0.0.1:8000/v1"),
    ("arms.0.endpoint", "http://me:secret-pw@127.0.0.1/v1", "arms[0].endpoint", "use api_key_env"),
    ("arms.0.api_key_env", "sk-secret-pw", "arms[0].api_key_env", "ends in _API_KEY"),
    ("arms.0.api_key_env", "DATABASE_URL", "arms[0].api_key_env", "ends in _API_KEY"),
    ("arms.0.api_key", "sk-secret-pw", "arms[0]", "did you mean 'api_key_env'"),
    ("arms.0.search", {"lags": 2}, "body", "arms[0].search: unknown key 'lags': did you mean 'lag'?"),
    ("arms.0.search", {"samples": 2}, "arms[0].search", "field of the arm itself"),
    ("search.lag", 0, "search.lag", "greater than or equal to 1"),
    ("tasks.0.tests", [], "tasks[0].tests.tests", "at least 1 item"),
    ("tasks.0.name", "a\x00b", "name", "pattern"),
    ("tasks", [], "tasks", "at least 1 item"),
]


@pytest.mark.parametrize(("path", "value", "field", "message"), INVALID)
async def test_an_invalid_search_is_refused_with_field_value_and_fix(
    api: httpx.AsyncClient, path: str, value: Any, field: str, message: str
) -> None:
    response = await api.post("/search", json=_with(search("http://127.0.0.1:9/v1"), path, value))
    assert response.status_code == 422, response.text
    problem = response.json()
    assert field in problem["detail"]
    assert message in problem["detail"]
    assert "secret-pw" not in response.text
    assert (await api.get("/search")).json()["searches"] == []


async def test_compared_arms_get_the_same_number_of_evaluations(api: httpx.AsyncClient) -> None:
    url = "http://127.0.0.1:9/v1"
    body = search(url, arms=[arm(url, "a", samples=3), arm(url, "b", samples=1, answers=2)])
    detail = (await api.post("/search", json=body)).json()["detail"]
    assert "a 3, b 2" in detail
    assert "set samples" in detail
    body["arms"][1]["answers"] = 3
    created = await post(api, body)
    await api.post(f"/search/{created['id']}/cancel")


async def test_health_and_readiness(api: httpx.AsyncClient) -> None:
    assert (await api.get("/healthz")).json()["status"] == "ok"
    ready = await api.get("/readyz")
    assert ready.status_code == 200, ready.text
    assert {name for name, check in ready.json()["checks"].items() if check["ok"]} == {"database", "redis", "sandbox"}
    assert ready.json()["tier"] in ("jail", "full")


async def test_unknown_paths_are_problems_and_only_the_dashboard_falls_back_to_html(api: httpx.AsyncClient) -> None:
    missing = await api.get("/nothing/here")
    assert missing.status_code == 404
    assert missing.headers["Content-Type"] == "application/problem+json"
    assert (await api.get("/")).headers["Location"] == "/dashboard/"
    for path in ("/dashboard/", "/dashboard/some/view"):
        page = await api.get(path)
        assert page.status_code == 200
        assert page.headers["Content-Type"].startswith("text/html")
    assert (await api.get("/dashboard/assets/none.js")).status_code == 404


async def test_openapi_describes_everything_with_an_example(api: httpx.AsyncClient) -> None:
    schema = (await api.get("/openapi.json")).json()
    assert schema["components"]["schemas"]["SearchSpec"]["examples"]
    assert {"Problem", "IterationEvent", "RunEvent", "SearchEvent"} <= set(schema["components"]["schemas"])
    example = schema["components"]["schemas"]["SearchSpec"]["examples"][0]
    created = await post(api, example)
    await api.post(f"/search/{created['id']}/cancel")


async def test_every_answer_is_accounted_for(api: httpx.AsyncClient, model: FakeModel) -> None:
    model.texts = ["```python\ndef f(xs):\n    return [\n```", "```python\ndef f(xs):\n    return xs\n```"]
    created = await post(api, search(model.url, seeds=[0, 1], iterations=3))
    await wait_for(api, created["id"])
    found, url = [], f"/search/{created['id']}/iterations?limit=2&replies=true"
    while url:
        page = (await api.get(url)).json()
        found += page["iterations"]
        url = page["next"]
    runs = [run["id"] for run in created["runs"]]
    assert [(row["run"], row["iteration"]) for row in found] == [(run, t) for run in runs for t in (1, 2, 3)]
    for row in found:
        assert row["evaluations"] + len(row["rejected"]) == 2
        assert row["reply"] == model.texts
        assert row["rejected"][0]["reason"] == "unparsable"
        assert "never closed" in row["rejected"][0]["detail"]
    assert [row["evaluations"] for row in found[:3]] == [1, 0, 0]
    assert found[1]["rejected"][1]["reason"] == "known"
    plain = (await api.get(f"/search/{created['id']}/iterations?run={runs[1]}")).json()
    assert plain["next"] is None
    assert [(row["run"], row["reply"]) for row in plain["iterations"]] == [(runs[1], None)] * 3
    assert (await api.get(f"/search/{created['id']}/iterations?after=7")).status_code == 422


async def _all_programs(api: httpx.AsyncClient, url: str | None) -> list[dict[str, Any]]:
    programs = []
    while url:
        page = (await api.get(url)).json()
        programs += page["programs"]
        url = page["next"]
    return programs
