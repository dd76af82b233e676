"""The API's client against exact bytes: event streams that break, problem documents, services that are not there."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from service.client import ServiceClient, ServiceError
from tests.service.openai_server import openai_server

RUNNING = {
    "id": "5", "name": "n", "status": "running", "created_at": "2026-01-01T00:00:00Z", "started_at": None,
    "finished_at": None, "iterations": 3, "progress": 0.0, "arms": [], "tasks": [], "seeds": [0], "search": {},
    "runs": [], "last_event": 0,
}  # fmt: skip


def event(number: int, kind: str, **data: Any) -> str:
    return f"id: {number}\nevent: {kind}\ndata: {json.dumps(data)}\n\n"


async def test_a_broken_stream_is_taken_up_where_it_broke(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.client._RECONNECT_S", 0.0)
    parts = [
        event(1, "run", a=1) + ": nothing new\n\n" + "id: 2\nevent: iteration\ndata: {",
        httpx.ConnectError("down"),
        event(2, "iteration", b=2) + event(3, "search", status="running"),
        'id: 4\nevent: search\ndata: {"status":\ndata: "done"}\n\n' + event(5, "never", x=1),
    ]
    asked: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/events"):
            return httpx.Response(200, json=RUNNING)
        asked.append(request.headers["Last-Event-ID"])
        part = parts.pop(0)
        if isinstance(part, Exception):
            raise part
        return httpx.Response(200, text=part)

    async with ServiceClient("http://service", transport=httpx.MockTransport(handle)) as client:
        seen = [(found.id, found.type) async for found in client.events("5")]
    assert seen == [("1", "run"), ("2", "iteration"), ("3", "search"), ("4", "search")]
    assert asked == ["0", "1", "1", "3"]


async def test_a_stream_without_content_ends_with_the_search() -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/events"):
            return httpx.Response(204)
        return httpx.Response(200, json=RUNNING | {"status": "cancelled"})

    async with ServiceClient("http://service", transport=httpx.MockTransport(handle)) as client:
        assert [found async for found in client.events("5")] == []


async def test_problems_are_passed_on_with_their_fields() -> None:
    problem = {
        "title": "t",
        "status": 422,
        "detail": "not valid",
        "errors": [{"field": "arms[0].samples", "message": "m"}],
    }
    transport = httpx.MockTransport(lambda _: httpx.Response(422, json=problem))
    async with ServiceClient("http://service", transport=transport) as client:
        with pytest.raises(ServiceError, match=r"422: not valid\n  arms\[0\]\.samples: m"):
            await client.show("5")


async def test_a_missing_service_is_said_to_be_missing() -> None:
    async with ServiceClient("http://127.0.0.1:9") as client:
        assert await client.ready() is None
        with pytest.raises(ServiceError, match="start it with `vpo serve`"):
            await client.show("5")


async def test_cancelling_what_is_over_is_no_error() -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return httpx.Response(409, json={"title": "over"})
        return httpx.Response(200, json=RUNNING | {"status": "done"})

    async with ServiceClient("http://service", transport=httpx.MockTransport(handle)) as client:
        await client.cancel("5")


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "http://localhost:9", "http://[::1]:9"])
async def test_no_proxy_is_asked_for_a_service_on_this_machine(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with openai_server(lambda _: "a program") as elsewhere:
        port = elsewhere.rsplit(":", 1)[1].partition("/")[0]
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        async with ServiceClient(url) as client:
            with pytest.raises(ServiceError, match="nothing answers"):
                await client.show("5")
