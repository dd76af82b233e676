"""The ``vpo`` command's frame, ``vpo worker``, and the compose file that starts both on real servers."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from service.cli import main
from service.settings import Settings
from tests.service.bodies import post, search, wait_for
from tests.service.model_fake import FakeModel

COMPOSE = Path(__file__).parents[2] / "docker-compose.yml"


def test_help_lists_every_command_without_importing_any(capsys: pytest.CaptureFixture[str]) -> None:
    before = set(sys.modules)
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    for command in ("demo", "doctor", "model", "search", "serve", "worker"):
        assert f" {command} " in printed
    assert not {name for name in set(sys.modules) - before if name.startswith("service.cli.")}


def test_help_of_serve_names_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    printed = capsys.readouterr().out
    for option in ("--host", "--port", "--data-dir", "DATABASE_URL"):
        assert option in printed


def test_wrong_settings_end_with_one_line_and_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["serve", "--port", "99999"])
    assert ended.value.code == 2
    assert "port" in capsys.readouterr().err


def test_a_worker_needs_the_servers_of_its_service(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    with pytest.raises(SystemExit) as ended:
        main(["worker"])
    assert ended.value.code == 2
    assert "DATABASE_URL and REDIS_URL" in capsys.readouterr().err


@pytest.mark.slow
async def test_a_separate_worker_does_the_work_and_stops_on_sigterm(
    serve: Callable[[Settings], AbstractAsyncContextManager[httpx.AsyncClient]], settings: Settings, model: FakeModel
) -> None:
    assert settings.database_url
    assert settings.redis_url
    environment = {**os.environ, "DATABASE_URL": settings.database_url, "REDIS_URL": settings.redis_url}
    async with serve(settings.model_copy(update={"worker": False})) as api:
        created = await post(api, search(model.url, iterations=3))
        await asyncio.sleep(0.5)
        assert (await api.get(f"/search/{created['id']}")).json()["status"] == "queued"
        worker = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "service.cli", "worker", env=environment, stderr=subprocess.PIPE
        )
        assert (await wait_for(api, created["id"]))["status"] == "done"
    worker.send_signal(signal.SIGTERM)
    errors = (await worker.communicate())[1].decode()
    assert worker.returncode == 0, errors
    assert "Traceback" not in errors


@pytest.mark.slow
async def test_an_unreachable_database_is_said_in_one_sentence() -> None:
    environment = {
        **os.environ,
        "DATABASE_URL": "postgresql://me:hidden-pw@127.0.0.1:9/x",
        "REDIS_URL": "redis://127.0.0.1:9",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "service.cli", "serve", "--port", "0", env=environment, stderr=subprocess.PIPE
    )
    errors = (await process.communicate())[1].decode()
    assert process.returncode == 3
    assert "cannot start: the database does not answer" in errors
    assert "DATABASE_URL" in errors
    assert "Traceback" not in errors
    assert "hidden-pw" not in errors


def test_the_compose_file_fits_the_service() -> None:
    document: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    services = document["services"]
    assert set(services) == {"postgres", "redis", "service", "worker"}
    known = {"DATABASE_URL", "REDIS_URL", "OPENAI_API_KEY"} | {f"VPO_{name.upper()}" for name in Settings.model_fields}
    for name in ("service", "worker"):
        assert set(services[name]["environment"]) <= known
        assert services[name]["command"][0] == "vpo"
        assert set(services[name]["depends_on"]) == {"postgres", "redis"}
    assert "${POSTGRES_PASSWORD:?" in services["postgres"]["environment"]["POSTGRES_PASSWORD"]
    assert all(port.startswith("127.0.0.1:") for port in services["service"]["ports"])
    root = COMPOSE.parent
    copied = [
        line.split()[1:-1] for line in services["service"]["build"]["dockerfile_inline"].splitlines() if "COPY" in line
    ]
    assert all((root / source).exists() for sources in copied for source in sources)
