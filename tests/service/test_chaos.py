"""``kill -9`` of the whole service in the middle of a search, as a user would see it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest

from service.cli.serve import RUNNING, running_service
from tests.service.bodies import post, search, wait_for, wait_for_iteration
from tests.service.model_fake import FakeModel

VPO = (sys.executable, "-m", "service.cli")


@contextmanager
def service(data_dir: Path) -> Iterator[subprocess.Popen[bytes]]:
    """``vpo serve`` as a process of its own, on a free port; killed at the end if it still runs."""
    environment = {**os.environ, "VPO_DATA_DIR": str(data_dir), "VPO_PORT": "0", "DATABASE_URL": "", "REDIS_URL": ""}
    (data_dir / RUNNING).unlink(missing_ok=True)
    with (data_dir / "serve.log").open("ab") as log:
        process = subprocess.Popen([*VPO, "serve"], env=environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


async def address(process: subprocess.Popen[bytes], data_dir: Path, seconds: float = 90) -> str:
    """The service's URL once it answers."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert process.poll() is None, (data_dir / "serve.log").read_text()
        if (url := running_service(data_dir)) is not None:
            return url
        await asyncio.sleep(0.1)
    raise AssertionError((data_dir / "serve.log").read_text())


def client(url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, timeout=60, trust_env=False)


@pytest.mark.slow
async def test_a_killed_service_goes_on_with_nothing_lost_or_done_twice(data_dir: Path, model: FakeModel) -> None:
    iterations, seeds = 30, [0, 1, 2]
    model.delay_s = 0.1
    with service(data_dir) as process:
        async with client(await address(process, data_dir)) as api:
            body = search(model.url, iterations=iterations, seeds=seeds)
            created = await post(api, body | {"search": {"samples": 2, "lag": 3, "stop_when_solved": False}})
            await wait_for_iteration(api, created["id"], 5)
            process.send_signal(signal.SIGKILL)
            process.wait()
    with service(data_dir) as process:
        async with client(await address(process, data_dir)) as api:
            during = (await api.get(f"/search/{created['id']}")).json()
            assert during["status"] == "running"
            assert min(run["iteration"] for run in during["runs"]) < iterations
            model.delay_s = 0.0
            done = await wait_for(api, created["id"])
            rows = _iterations(data_dir)
            programs = (await api.get(f"/search/{created['id']}/programs?limit=500")).json()["programs"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM)
    assert done["status"] == "done"
    for run in done["runs"]:
        assert [row[1] for row in rows if str(row[0]) == run["id"]] == list(range(1, iterations + 1))
        numbers = sorted(program["number"] for program in programs if program["run"] == run["id"])
        assert len(set(numbers)) == len(numbers)
        assert run["calls"] == iterations
    lost = sum(run["lost_calls"] for run in done["runs"])
    assert 0 < lost <= 3 * len(seeds)
    # A stored reply is never asked for again. A call is counted before it is sent: the kill may have come in between.
    assert len(seeds) * iterations <= len(model.seeds) <= len(seeds) * iterations + lost
    assert len(set(model.seeds)) == len(seeds) * iterations
    assert not (data_dir / RUNNING).exists()
    assert not (data_dir / "postgres" / "postmaster.pid").exists()


def _iterations(data_dir: Path) -> list[tuple[int, int, float]]:
    query = "SELECT run_id, iteration, best_scalar FROM iterations WHERE finished_at IS NOT NULL ORDER BY 1, 2"
    with psycopg.connect(host=str(data_dir / "run"), user="postgres", dbname="vpo") as connection:
        return connection.execute(query).fetchall()


@pytest.mark.slow
async def test_a_second_service_on_the_same_data_says_who_has_it(data_dir: Path) -> None:
    with service(data_dir) as first:
        await address(first, data_dir)
        said = json.loads((data_dir / RUNNING).read_text())
        second = await asyncio.create_subprocess_exec(
            *VPO, "serve", "--port", "0", "--data-dir", str(data_dir), stderr=subprocess.PIPE
        )
        errors = (await second.communicate())[1].decode()
        assert second.returncode == 3
        assert f"another service (process {first.pid}) uses the data folder" in errors
        assert "Traceback" not in errors
        assert json.loads((data_dir / RUNNING).read_text()) == said
        first.send_signal(signal.SIGINT)
        assert first.wait(60) in (0, -signal.SIGINT, 130)
    assert not (data_dir / "postgres" / "postmaster.pid").exists()
