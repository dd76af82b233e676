"""The library's front door: three lines, sync and async, callbacks, pauses, going on, data frames; the docs' example."""

from __future__ import annotations

import asyncio
import builtins
import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

import evolve
from evolve import Result, Search, SearchConfig, run, run_async
from evolve.models import ModelUnavailable
from evolve.program import IterationRecord, Reply, Usage
from evolve.request import Request
from tests.evolve.http_server import serving

ROOT = Path(__file__).parents[2]
TASK = {
    "format": "tests",
    "name": "absolute",
    "statement": "Return the absolute value.",
    "entry_point": "f",
    "tests": [{"args": [value], "expected": abs(value)} for value in (-2, -1, 3, 4)],
}
BODIES = ("return -x", "return x", "return x + 0", "return -x if x < 0 else x")


def text(iteration: int) -> str:
    return f"```python\ndef f(x):\n    {BODIES[min(iteration, len(BODIES)) - 1]}\n```"


class Model:
    """Solves the task in the fourth iteration; fails as often as told."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures

    async def complete(self, request: Request) -> Reply:
        if self.failures:
            self.failures -= 1
            raise ModelUnavailable("nobody is there", lost_calls=1)
        usage = Usage(calls=1, prompt_tokens=10, completion_tokens=5)
        return Reply(texts=(text(request.iteration),), finished=(True,), usage=usage)


async def test_a_search_in_a_running_loop() -> None:
    seen: list[int] = []

    async def note(record: IterationRecord) -> None:
        seen.append(record.iteration)

    result = await run_async(TASK, model=Model(), iterations=3, on_iteration=note)
    assert (result.summary.ended, seen) == ("completed", [1, 2, 3])
    assert [program.number for program in result.programs] == [0, 1, 2, 3]
    assert result.best.evaluation.scalar == 0.5
    assert result.best.number == 1
    later: list[int] = []
    result = await run_async(TASK, model=Model(), store=result.store, on_iteration=lambda r: later.append(r.iteration))
    assert (result.summary.ended, later) == ("solved", [4])
    assert result.trace.solved_at == 4
    assert result.trace.spent["tokens"].tolist() == [0, 15, 30, 45, 60]


def test_a_search_that_blocks_and_its_data_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(TASK, model=Model(), config={"budget": {"tokens": 30}}, seed=3)
    assert (result.summary.ended, result.summary.spent.tokens) == ("tokens", 30)
    frame = result.to_dataframe()
    assert list(frame["scalar"]) == [0.0, 0.5, 0.5]
    assert list(frame["reward.t00"]) == [0.0, 1.0, 0.0]
    assert "return -x" in frame["source"][1]

    def without_pandas(name: str, *rest: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return importing(name, *rest)

    importing = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(ImportError, match="pip install 'vpo-search"):
        result.to_dataframe()


async def test_run_works_where_a_loop_is_running_and_passes_errors_on() -> None:
    assert run(TASK, model=Model(), iterations=1).summary.iterations == 1
    with pytest.raises(ValueError, match="did you mean 'lag'"):
        run(TASK, model=Model(), config={"lagg": 1})


async def test_a_dead_endpoint_pauses_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evolve.library._FIRST_PAUSE_S", 0.01)
    pauses: list[float] = []
    result = await run_async(
        TASK, model=Model(failures=3), iterations=2, on_pause=lambda error, seconds: pauses.append(seconds)
    )
    assert pauses == [0.01, 0.02, 0.04]
    assert [record.iteration for record in result.records] == [1, 2]
    assert result.summary.usage.lost_calls == 3
    with pytest.raises(ModelUnavailable):
        await run_async(TASK, model=Model(failures=99), patience_s=0.02)
    stop = asyncio.Event()
    stop.set()
    stopped = await run_async(TASK, model=Model(failures=99), stop=stop)
    assert stopped.summary.ended == "stopped"


def test_an_interrupt_keeps_what_has_arrived() -> None:
    class Slow(Model):
        async def complete(self, request: Request) -> Reply:
            if request.iteration == 3:
                threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
                await asyncio.Event().wait()
            return await super().complete(request)

    result = run(TASK, model=Slow())
    assert (result.summary.ended, result.summary.iterations) == ("stopped", 2)
    assert isinstance(result, Result)


async def test_the_model_of_a_server_is_found_by_itself() -> None:
    models, keys = ["one"], []

    async def answer(body: dict[str, Any]) -> tuple[int, bytes]:
        if body["path"] == "/v1/models":
            return 200, json.dumps({"data": [{"id": name} for name in models]}).encode()
        keys.append(body["model"])
        found = {"index": 0, "message": {"content": text(4)}, "finish_reason": "stop"}
        return 200, json.dumps({"choices": [found], "usage": {"prompt_tokens": 9, "completion_tokens": 9}}).encode()

    async with serving(answer) as url:
        result = await run_async(TASK, model=url, api_key=SecretStr("key"))
        assert (result.summary.ended, keys) == ("solved", ["one"])
        models.append("two")
        with pytest.raises(ValueError, match="has the models one, two: choose one by model_name"):
            await run_async(TASK, model=url)
        assert (await run_async(TASK, model=url, model_name="two")).summary.solved
        assert keys == ["one", "two"]
    with pytest.raises(ValueError, match="give model_name"):
        await run_async(TASK, model="http://127.0.0.1:9/v1")


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server on a thread of its own, since the docs' example blocks."""
    ready, done = threading.Event(), threading.Event()
    place: list[str] = []

    async def answer(body: dict[str, Any]) -> tuple[int, bytes]:
        if body["path"] == "/v1/models":
            return 200, b'{"data": [{"id": "m"}]}'
        found = {"index": 0, "message": {"content": "```python\nprint('yes')\n```"}, "finish_reason": "stop"}
        return 200, json.dumps({"choices": [found], "usage": {"prompt_tokens": 9, "completion_tokens": 9}}).encode()

    async def serve() -> None:
        async with serving(answer) as url:
            place.append(url)
            ready.set()
            await asyncio.to_thread(done.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    ready.wait()
    monkeypatch.chdir(ROOT)
    yield place[0]
    done.set()
    thread.join()


def test_the_example_of_the_docs_runs(served: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "search.md").read_text(encoding="utf-8")
    example = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    assert len([line for line in example.splitlines() if line]) == 3
    exec(example.replace("http://127.0.0.1:8000/v1", served), {})
    assert "Spent(iterations=30" in capsys.readouterr().out


def test_the_docs_name_every_setting() -> None:
    page = (ROOT / "docs" / "search.md").read_text(encoding="utf-8")
    config = SearchConfig()
    for section in (config.selection, config.operators, config.budget):
        for name in type(section).model_fields:
            assert f"`{name}`" in page or f"`{name}:" in page or name == "bandit", name


def test_names_are_imported_when_they_are_used() -> None:
    assert evolve.Search is Search
    assert set(evolve.__all__) == set(evolve._HOMES)
    for name in evolve.__all__:
        assert getattr(evolve, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        evolve.nothing  # noqa: B018
