"""The real service as a process of its own, with embedded Postgres and Valkey, and a real browser to look at it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
START_S = 90
STOP_S = 30


@dataclass(frozen=True)
class Service:
    """A running service. url: without a slash at the end."""

    url: str

    @property
    def dashboard(self) -> str:
        return f"{self.url}/dashboard/"

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=30) as response:
            return json.load(response)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)

    def wait(self, search: str, limit_s: float = 120) -> dict[str, Any]:
        """The search, once it is over."""
        deadline = time.monotonic() + limit_s
        while (found := self.get(f"/search/{search}"))["status"] not in ("done", "failed", "cancelled"):
            assert time.monotonic() < deadline, f"search {search} is still {found['status']}"
            time.sleep(0.1)
        return found


@contextmanager
def running_service() -> Iterator[Service]:
    """``vpo serve`` on a free port, with data of its own that is gone afterwards."""
    data = Path(tempfile.mkdtemp(prefix="vpo-e2e-"))
    data.chmod(0o755)  # as root, the database runs as another user
    names = ("DATABASE_URL", "REDIS_URL")
    environment = {name: value for name, value in os.environ.items() if name not in names and name[:4] != "VPO_"}
    command = [sys.executable, "-m", "service.cli", "serve", "--port", "0", "--data-dir", str(data)]
    with (data / "service.log").open("w+") as log:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            yield Service(_url(process, data / "service.log"))
        finally:
            process.terminate()
            process.wait(STOP_S)
            assert process.stdout is not None
            process.stdout.close()
    shutil.rmtree(data)


def _url(process: subprocess.Popen[str], log: Path) -> str:
    assert process.stdout is not None
    timer = threading.Timer(START_S, process.kill)
    timer.start()
    try:
        for line in process.stdout:
            if line.split()[:1] == ["dashboard"]:
                return line.split()[1].removesuffix("/dashboard/")
    finally:
        timer.cancel()
    raise RuntimeError(f"the service did not start:\n{log.read_text()}")


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Debian's Chromium, without a window."""
    path = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if path is None:
        raise RuntimeError(f"none of {', '.join(CHROMIUM_NAMES)} is installed: sudo apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_FLAGS))
        try:
            yield browser
        finally:
            browser.close()
