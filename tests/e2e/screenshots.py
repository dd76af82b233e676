"""Pictures of the dashboard for the documentation.

``python -m tests.e2e.screenshots docs/images`` runs a service and searches of its own, against the scripted model of
the tests. ``--url http://127.0.0.1:8080 --search 7`` shows a search of a service that is already running.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from tests.e2e.model import PROBLEMS, ModelServer
from tests.e2e.stack import Service, running_browser, running_service

ITERATIONS = 24
FINISHED = (("smoke test", ("quick-2",), 3), ("three paces", ("slow-4", "even-2", "quick-1"), 8))


@dataclass(frozen=True)
class Shot:
    """One picture. view: ``list`` or ``search``."""

    name: str
    view: str
    width: int = 1280
    height: int = 1040
    scheme: str = "light"


SHOTS = (
    Shot("dashboard-list", "list", height=560),
    Shot("dashboard-search", "search"),
    Shot("dashboard-search-dark", "search", scheme="dark"),
    Shot("dashboard-phone", "search", width=390, height=844),
)


def take(browser: Browser, service: Service, search: str, folder: Path) -> Iterator[Path]:
    """Take every picture; gives the path of each."""
    for shot in SHOTS:
        page = browser.new_page(
            viewport={"width": shot.width, "height": shot.height},
            color_scheme="dark" if shot.scheme == "dark" else "light",
            device_scale_factor=2 if shot.width < 600 else 1,
        )
        page.goto(service.dashboard + ("#/" if shot.view == "list" else f"#/search/{search}"))
        _settle(page, shot)
        path = folder / f"{shot.name}.png"
        page.screenshot(path=path)
        page.close()
        yield path


def _settle(page: Page, shot: Shot) -> None:
    """Wait until everything is drawn, and point at a curve where there is a pointer."""
    if shot.view == "list":
        page.locator(".search-card").first.wait_for()
        return
    page.locator(".source").wait_for()
    page.locator(".reward-row").first.wait_for()
    box = page.get_by_role("figure", name="best@t").get_by_role("slider").bounding_box()
    if box and shot.width > 600:
        page.mouse.move(box["x"] + 0.42 * box["width"], box["y"] + 150)
        page.locator(".read-out").first.wait_for()
    page.wait_for_timeout(600)  # the progress bar's and the fetched rows' transitions


@contextmanager
def scripted_searches() -> Iterator[tuple[Service, str]]:
    """A service with a search that is under way, and two that are over."""
    with ModelServer().serving() as model, running_service() as service:
        for name, arms, problems in FINISHED:
            service.wait(_submit(service, model, name, arms, problems))
        model.close_gate()
        search = _submit(service, model, "slow against quick, eight problems", ("slow-4", "quick-2"), 8)
        # Enough answers for the quick arm to have solved some problems, and for all runs to be on their way.
        wanted = 0.55
        while service.get(f"/search/{search}")["progress"] < wanted:
            model.allow(8)
            time.sleep(0.3)
        yield service, search
        model.open()
        service.post(f"/search/{search}/cancel", {})


def _submit(service: Service, model: ModelServer, name: str, arms: tuple[str, ...], problems: int) -> str:
    endpoint = model.endpoint()
    spec: dict[str, Any] = {
        "name": name,
        "tasks": [problem.task() for problem in PROBLEMS[:problems]],
        "arms": [{"name": arm.partition("-")[0], "endpoint": endpoint, "model": arm, "samples": 2} for arm in arms],
        "iterations": ITERATIONS,
    }
    return str(service.post("/search", spec)["id"])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.screenshots", description="Pictures of the dashboard.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--url", help="a running service (needs --search)")
    parser.add_argument("--search", help="id of one of its searches")
    given = parser.parse_args()
    if (given.url is None) != (given.search is None):
        parser.error("--url and --search belong together")
    given.folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        if given.url:
            service, search = Service(given.url.rstrip("/")), given.search
        else:
            service, search = stack.enter_context(scripted_searches())
        browser = stack.enter_context(running_browser())
        for path in take(browser, service, search, given.folder):
            print(path)


if __name__ == "__main__":
    main()
