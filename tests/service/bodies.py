"""Request bodies and waiting, for the tests of the service."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from service.schemas import RunStatus

OVER = ("done", "failed", "cancelled")


def task(name: str = "reverse") -> dict[str, Any]:
    inputs = ([1, 2, 3], [], [3, 1], [5, 5, 1, 2])
    return {
        "format": "tests",
        "name": name,
        "statement": "Write f(xs): the list in reverse order.",
        "entry_point": "f",
        "tests": [{"args": [xs], "expected": xs[::-1]} for xs in inputs],
    }


def arm(url: str, name: str = "one", **more: Any) -> dict[str, Any]:
    return {"name": name, "endpoint": url, "model": "fake", **more}


def search(url: str, **more: Any) -> dict[str, Any]:
    body = {
        "name": "a test",
        "tasks": [task()],
        "arms": [arm(url)],
        "seeds": [0],
        "iterations": 6,
        "search": {"samples": 2, "stop_when_solved": False},
    }
    return body | more


async def post(api: httpx.AsyncClient, body: dict[str, Any]) -> dict[str, Any]:
    response = await api.post("/search", json=body)
    assert response.status_code == 202, response.text
    assert response.headers["Location"] == f"/search/{response.json()['id']}"
    return response.json()


async def wait_for(api: httpx.AsyncClient, search_id: str, *statuses: str, seconds: float = 90) -> dict[str, Any]:
    """The search once it has one of the statuses (default: any that is over)."""
    wanted = statuses or OVER
    async with asyncio.timeout(seconds):
        while True:
            found = (await api.get(f"/search/{search_id}")).json()
            if found["status"] in wanted:
                return found
            assert not RunStatus(found["status"]).over, found
            await asyncio.sleep(0.1)


async def wait_for_iteration(api: httpx.AsyncClient, search_id: str, iteration: int) -> dict[str, Any]:
    """The search once one of its runs has finished an iteration."""
    async with asyncio.timeout(60):
        while True:
            found = (await api.get(f"/search/{search_id}")).json()
            if max(run["iteration"] for run in found["runs"]) >= iteration:
                return found
            await asyncio.sleep(0.05)
