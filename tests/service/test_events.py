"""The event stream: every event once and in order, whatever is interrupted, slow or forgotten."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import redis

from service.db.engine import Sessions
from service.db.events import append_event
from service.db.models import SearchRow
from service.events import EventHub
from service.schemas import RunStatus, SearchEvent
from tests.service.bodies import post, search, wait_for
from tests.service.model_fake import FakeModel


@dataclass
class Sent:
    id: int
    type: str
    data: dict[str, Any]


async def read(
    api: httpx.AsyncClient, search_id: str, *, last: int | None = None, count: int = 10**9, **query: int
) -> list[Sent]:
    """Events until the stream ends or ``count`` have come; a dropped connection where it is cut."""
    headers = {} if last is None else {"Last-Event-ID": str(last)}
    events: list[Sent] = []
    async with api.stream("GET", f"/search/{search_id}/events", headers=headers, params=query) as response:
        assert response.headers["Content-Type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        async for line in response.aiter_lines():
            name, _, value = line.partition(": ")
            if line and name:
                fields[name] = value
            elif fields:
                if "id" in fields:
                    events.append(Sent(int(fields["id"]), fields["event"], json.loads(fields["data"])))
                fields = {}
                if len(events) == count:
                    break
    return events


async def test_a_stream_tells_everything_and_ends_with_the_search(api: httpx.AsyncClient, model: FakeModel) -> None:
    created = await post(api, search(model.url, seeds=[0, 1]))
    events = await asyncio.wait_for(read(api, created["id"]), 60)
    assert [event.id for event in events] == list(range(1, len(events) + 1))
    assert events[-1].type == "search"
    assert events[-1].data == {"search": created["id"], "status": "done"}
    iterations = [event.data for event in events if event.type == "iteration"]
    for run in created["runs"]:
        of_run = [data for data in iterations if data["run"]["id"] == run["id"]]
        assert [data["iteration"] for data in of_run] == list(range(7))
        bests = [data["run"]["best"] for data in of_run]
        assert bests == sorted(bests)
    done = (await api.get(f"/search/{created['id']}")).json()
    assert done["last_event"] == events[-1].id
    changes = [event.data["run"]["status"] for event in events if event.type == "run"]
    assert sorted(changes) == ["done", "done", "running", "running"]


async def test_reconnecting_with_last_event_id_neither_loses_nor_repeats(
    api: httpx.AsyncClient, model: FakeModel
) -> None:
    model.delay_s = 0.05
    created = await post(api, search(model.url, iterations=12))
    events: list[Sent] = []
    async with asyncio.timeout(60):
        while not events or events[-1].data.get("status") != "done":
            events += await read(api, created["id"], last=events[-1].id if events else None, count=3)
    assert [event.id for event in events] == list(range(1, len(events) + 1))


async def test_after_a_finished_search_browsers_are_told_to_stay_away(api: httpx.AsyncClient, model: FakeModel) -> None:
    created = await post(api, search(model.url, iterations=1))
    done = await wait_for(api, created["id"])
    url = f"/search/{created['id']}/events"
    assert (await api.get(url, headers={"Last-Event-ID": str(done["last_event"])})).status_code == 204
    assert (await api.get(url, params={"after": done["last_event"]})).status_code == 204
    assert len(await read(api, created["id"], after=done["last_event"] - 2)) == 2


async def test_what_redis_forgot_comes_from_postgres(api: httpx.AsyncClient, model: FakeModel, redis_url: str) -> None:
    model.delay_s = 0.1
    created = await post(api, search(model.url, iterations=10))
    first = await read(api, created["id"], count=4)
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
        rest = await asyncio.wait_for(read(api, created["id"], last=4), 60)
        client.flushall()
    assert [event.id for event in first + rest] == list(range(1, 4 + len(rest) + 1))
    assert await read(api, created["id"]) == first + rest


async def _search(sessions: Sessions) -> int:
    async with sessions.begin() as session:
        documents = {"tasks": [], "task_summaries": [], "arms": [], "arm_summaries": [], "config": {}, "seeds": []}
        row = SearchRow(name="x", iterations=1, **documents)
        session.add(row)
        await session.flush()
        return row.id


async def _append(sessions: Sessions, search_id: int) -> Any:
    async with sessions.begin() as session:
        return await append_event(session, search_id, SearchEvent(search=str(search_id), status=RunStatus.RUNNING))


async def _collect(hub: EventHub, search_id: int, count: int) -> list[int]:
    ids: list[int] = []
    async for event in hub.follow(search_id, after=0):
        ids += [event.id] if event else []
        if len(ids) >= count:
            break
    return ids


async def test_many_writers_and_listeners_agree_on_the_order(sessions: Sessions, redis_url: str) -> None:
    search_id = await _search(sessions)
    async with EventHub(redis_url, sessions) as writer, EventHub(redis_url, sessions, poll_s=60) as reader:

        async def write() -> None:
            for _ in range(20):
                await writer.publish([await _append(sessions, search_id)])

        listening = [asyncio.create_task(_collect(reader, search_id, 100)) for _ in range(8)]
        await asyncio.gather(*(write() for _ in range(5)))
        await writer.publish([])
        for ids in await asyncio.wait_for(asyncio.gather(*listening), 30):
            assert ids == list(range(1, 101))


async def test_an_event_whose_publisher_died_is_found_by_looking(sessions: Sessions, redis_url: str) -> None:
    search_id = await _search(sessions)
    async with EventHub(redis_url, sessions, poll_s=0.1) as hub:
        listening = asyncio.create_task(_collect(hub, search_id, 2))
        await asyncio.sleep(0.2)
        await _append(sessions, search_id)
        await _append(sessions, search_id)
        assert await asyncio.wait_for(listening, 10) == [1, 2]


async def test_without_redis_events_still_arrive(sessions: Sessions) -> None:
    search_id = await _search(sessions)
    async with EventHub("redis://127.0.0.1:9/0", sessions, poll_s=0.1) as hub:
        listening = asyncio.create_task(_collect(hub, search_id, 3))
        for _ in range(3):
            await hub.publish([await _append(sessions, search_id)])
        assert await asyncio.wait_for(listening, 20) == [1, 2, 3]


@pytest.mark.parametrize("given", ["abc", "-1", "9" * 30])
async def test_an_odd_last_event_id_starts_from_the_beginning(
    api: httpx.AsyncClient, model: FakeModel, given: str
) -> None:
    created = await post(api, search(model.url, iterations=1))
    async with api.stream("GET", f"/search/{created['id']}/events", headers={"Last-Event-ID": given}) as response:
        async for line in response.aiter_lines():
            if line.startswith("id:"):
                assert line == "id: 1"
                break
