"""One service, one model server and one browser for the whole module; a fresh page per test that must stay clean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.model import PROBLEMS, ModelServer
from tests.e2e.stack import Service, running_browser, running_service

# Long, for slow and busy machines: nothing waits for longer than it has to.
PATIENCE_MS = 30_000
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer().serving() as server:
        yield server


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with running_service() as service:
        yield service


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as browser:
        yield browser


@pytest.fixture
def open_page(browser: Browser, service: Service) -> Iterator[Callable[..., Page]]:
    """Opens a view of the dashboard. The test fails if a page logs an error or asks another host for anything."""
    complaints: list[str] = []
    contexts = []

    def check_host(url: str) -> None:
        if urlsplit(url).scheme in ("http", "https", "ws", "wss") and not url.startswith(service.url):
            complaints.append(f"request to {url}")

    def open_page(view: str = "#/", *, quiet: bool = True, **options: Any) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("request", lambda request: check_host(request.url))
        page.on("pageerror", lambda error: complaints.append(f"page error: {error}"))
        if quiet:
            page.on("console", lambda message: _note(complaints, message.type, message.text))
        page.goto(service.dashboard + view)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def _note(complaints: list[str], kind: str, text: str) -> None:
    if kind in ("error", "warning"):
        complaints.append(f"console {kind}: {text}")


@pytest.fixture(scope="module")
def submit(service: Service, model: ModelServer) -> Callable[..., str]:
    """Posts a search and gives its id. arms: names of the model server's models."""

    def submit(name: str, *, arms: tuple[str, ...] = ("slow-3", "quick-1"), problems: int = 3, **more: Any) -> str:
        endpoint = model.endpoint()
        spec = {
            "name": name,
            "tasks": [problem.task() for problem in PROBLEMS[:problems]],
            "arms": [{"name": arm.partition("-")[0], "endpoint": endpoint, "model": arm, "samples": 2} for arm in arms],
            "iterations": 12,
        }
        return str(service.post("/search", spec | more)["id"])

    return submit
