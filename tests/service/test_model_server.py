"""Real vLLM servers: ready when they generate, gone when stopped or orphaned, explained when they fail."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from evolve.models import OpenAIModel
from evolve.request import Request
from service.model_server import ModelServer, ModelServerError
from tests.tiny_checkpoint import write_tiny_checkpoint

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


async def test_serves_seeded_completions_with_several_samples(model_server: ModelServer) -> None:
    request = Request(iteration=1, island=0, text="= 3\n", n=3, seed=7, max_tokens=24)
    async with OpenAIModel(model_server.url, model_server.name) as model:
        first, again = await model.complete(request), await model.complete(request)
    assert len(first.texts) == 3
    assert len(set(first.texts)) > 1
    assert first.texts == again.texts
    assert first.usage.completion_tokens > 0


async def test_survives_many_seeded_requests_at_once(model_server: ModelServer) -> None:
    """Seeds together with chunked prefill kill this engine; prompts of different lengths must not."""
    bodies = [
        {"model": model_server.name, "prompt": [5 + i % 90] * (1 + 3 * i), "n": 2, "seed": i, "max_tokens": 16}
        for i in range(64)
    ]
    async with httpx.AsyncClient(trust_env=False, timeout=120, limits=httpx.Limits(max_connections=64)) as client:
        answers = await asyncio.gather(*(client.post(f"{model_server.url}/completions", json=body) for body in bodies))
    assert [answer.status_code for answer in answers] == [200] * 64
    assert all(len(answer.json()["choices"]) == 2 for answer in answers)


async def test_refuses_a_prompt_beyond_the_context(model_server: ModelServer) -> None:
    body = {"model": model_server.name, "prompt": [5] * (model_server.plan.context + 1), "max_tokens": 1}
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        answer = await client.post(f"{model_server.url}/completions", json=body)
    assert answer.status_code == 400


def test_one_server_is_small(model_server: ModelServer) -> None:
    assert sum(process.memory_info().rss for process in _tree(model_server.pid)) < 3 * 2**30


async def test_a_server_that_cannot_start_shows_its_log(tmp_path: Path) -> None:
    checkpoint = write_tiny_checkpoint(tmp_path / "broken")
    weights = checkpoint / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    server = ModelServer(checkpoint)
    with pytest.raises(
        ModelServerError, match=r"(?s)broken ended with status [1-9].*Errors in its log:\n[^\n]*afetensor"
    ) as caught:
        await server.start()
    assert "The end of its log" in str(caught.value)
    assert server.pid is None
    await server.stop()


def test_the_command_says_where_the_model_is_and_stops_on_ctrl_c(tiny_checkpoint: Path) -> None:
    with _serving("--name", "other", tiny_checkpoint) as (command, url, tree):
        listed = httpx.get(f"{url}/models", trust_env=False).json()
        assert listed["data"][0]["id"] == "other"
        command.send_signal(signal.SIGINT)
        assert command.wait(timeout=60) == 0
        assert not any(map(_runs, tree))


def test_the_server_dies_with_the_command(tiny_checkpoint: Path) -> None:
    with _serving(tiny_checkpoint) as (command, _, tree):
        command.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + 60
        while any(map(_runs, tree)) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert not any(map(_runs, tree))


@contextmanager
def _serving(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[str], str, list[psutil.Process]]]:
    """``vpo model serve`` once it is ready: its process, its URL, and all processes below it."""
    command = [sys.executable, "-m", "service.cli", "model", "serve", "--port", "0", *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": "80"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    ) as process:
        try:
            assert process.stdout is not None
            said: list[str] = []
            while "Ctrl-C stops it" not in "".join(said[-1:]) and (line := process.stdout.readline()):
                said.append(line)
            ready = next((line for line in said if "is ready at" in line), "")
            assert ready, (said, process.stderr and process.stderr.read())
            url = ready.split()[-1]
            assert f"  vpo search TASK --model {url}#{ready.split()[0]}\n" in said
            yield process, url, psutil.Process(process.pid).children(recursive=True)
        finally:
            process.kill()


def _tree(pid: int | None) -> list[psutil.Process]:
    """A server's process and all below it."""
    assert pid is not None
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
