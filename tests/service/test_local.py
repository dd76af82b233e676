"""A search in this process: real jail, real protocol, a model whose answers are known."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from evolve.tests_task import TestsTask
from service.local import LocalSearcher
from service.schemas import RunState, RunStatus
from service.spec import Arm, SearchSpec
from tests.service.openai_server import openai_server

RIGHT = "```python\ndef f(x):\n    return x + x\n```"
HALF = "```python\ndef f(x):\n    return 4\n```"


def spec(url: str, **changes: Any) -> SearchSpec:
    tests = [{"args": [2], "expected": 4}, {"args": [3], "expected": 6}]
    tasks = [
        TestsTask.model_validate({"name": name, "statement": "Double.", "entry_point": "f", "tests": tests})
        for name in ("one", "two")
    ]
    arms = (Arm(name="a", endpoint=url, model="m"), Arm(name="b", endpoint=url, model="m"))
    return SearchSpec.model_validate({"name": "s", "tasks": tasks, "arms": arms, "iterations": 4, **changes})


async def test_every_run_is_searched_watched_and_summed_up() -> None:
    asked: list[dict[str, Any]] = []

    def answer(body: dict[str, Any]) -> str:
        asked.append(body)
        return HALF if len(asked) <= 4 else RIGHT

    seen: list[RunState] = []
    async with openai_server(answer) as url:
        outcome = await LocalSearcher()(spec(url), seen.append, asyncio.Event())
    assert outcome.curve.status is RunStatus.DONE
    assert [arm.solved for arm in outcome.curve.arms] == [[0, 0, 2, 2, 2]] * 2
    assert [arm.best_at_t for arm in outcome.curve.arms] == [[0.0, 0.5, 1.0, 1.0, 1.0]] * 2
    assert [arm.tokens[-1] for arm in outcome.curve.arms] == [60, 60]
    assert [arm.evaluations[-1] for arm in outcome.curve.arms] == [4, 4]
    assert all(run.status is RunStatus.DONE and run.solved_at == 2 and run.ended == "solved" for run in outcome.runs)
    assert all("x + x" in source for source in outcome.best.values())
    assert outcome.rejected == {"a": {}, "b": {}}
    assert [run.iteration for run in seen if run.id == "1"] == [0, 0, 1, 2, 2]


async def test_stopping_keeps_what_was_found() -> None:
    stop = asyncio.Event()
    reached: dict[str, int] = {}

    def watch(run: RunState) -> None:
        reached[run.id] = run.iteration
        if len(reached) == 4 and min(reached.values()) >= 2:
            stop.set()

    async with openai_server(lambda _: HALF) as url:
        outcome = await LocalSearcher()(spec(url, iterations=500), watch, stop)
    assert outcome.curve.status is RunStatus.CANCELLED
    assert all(run.status is RunStatus.CANCELLED and run.iteration < 500 for run in outcome.runs)
    assert min(run.iteration for run in outcome.runs) >= 2
    assert outcome.curve.arms[0].best_at_t[-1] == 0.5


async def test_a_model_that_refuses_fails_its_runs_and_no_others() -> None:
    async with openai_server(lambda _: RIGHT) as url:
        arms = (Arm(name="good", endpoint=url, model="m"), Arm(name="lost", endpoint=f"{url}/nothing", model="m"))
        outcome = await LocalSearcher()(spec(url, arms=arms), lambda _: None, asyncio.Event())
    assert outcome.curve.status is RunStatus.FAILED
    states = {(run.arm, run.status) for run in outcome.runs}
    assert states == {("good", RunStatus.DONE), ("lost", RunStatus.FAILED)}
    assert all("404" in (run.error or "") for run in outcome.runs if run.arm == "lost")


async def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MISSING_API_KEY", raising=False)
    arms = (Arm(name="a", endpoint="http://127.0.0.1:9/v1", model="m", api_key_env="MISSING_API_KEY"),)
    with pytest.raises(ValueError, match="MISSING_API_KEY is not set: export it"):
        await LocalSearcher()(spec("http://127.0.0.1:9/v1", arms=arms), lambda _: None, asyncio.Event())
