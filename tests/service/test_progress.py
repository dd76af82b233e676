"""What is shown while a search runs, and what Ctrl-C does."""

from __future__ import annotations

import asyncio
import io
import os
import signal
from typing import Any

import pytest
from rich.console import Console

from service.cli.progress import Progress, stop_on_signals
from service.schemas import RunState
from service.spec import SearchSpec


def spec(arms: int = 1) -> SearchSpec:
    task = {
        "format": "tests",
        "name": "p",
        "statement": "s",
        "entry_point": "f",
        "tests": [{"args": [], "expected": 1}],
    }
    listed = [{"name": f"arm{i}", "endpoint": "http://127.0.0.1:9/v1", "model": "m"} for i in range(arms)]
    return SearchSpec.model_validate({"name": "n", "tasks": [task], "arms": listed, "iterations": 3})


def run(**changes: Any) -> RunState:
    state = {
        "id": "1", "arm": "arm0", "task": "p", "seed": 0, "status": "running", "iteration": 0, "best": None,
        "solved_at": None, "evaluations": 0, "calls": 0, "lost_calls": 0, "prompt_tokens": 0, "completion_tokens": 0,
        "tokens": 0, "error": None, "started_at": None, "finished_at": None,
    }  # fmt: skip
    return RunState.model_validate(state | changes)


def test_lines_for_a_single_run_tell_every_iteration_once() -> None:
    output = io.StringIO()
    with Progress.of(Console(file=output, width=100), spec()) as progress:
        progress(run())
        progress(run(iteration=1, best=0.5, tokens=1200))
        progress(run(iteration=1, best=0.5, tokens=1200))
        progress(run(iteration=2, best=1.0, tokens=2400, solved_at=2))
        progress(run(iteration=2, best=1.0, tokens=2400, solved_at=2, status="done"))
    assert output.getvalue().splitlines() == [
        "iteration 1/3: best 0.500, tokens 1,200",
        "iteration 2/3: best 1.000, tokens 2,400",
        "arm0, p, seed 0: solved in iteration 2",
    ]


def test_lines_tell_why_a_run_waits_or_fails() -> None:
    output = io.StringIO()
    with Progress.of(Console(file=output, width=200), spec(2)) as progress:
        progress(run(status="waiting", error="the model is [down]"))
        progress(run(status="failed", error="404", iteration=1, best=0.25))
        progress(run(id="2", arm="arm1", status="done", iteration=3, best=0.25))
    assert output.getvalue().splitlines() == [
        "arm0, p, seed 0: waiting: the model is [down]",
        "arm0, p, seed 0: failed: 404",
        "arm1, p, seed 0: done after 3 iterations, best 0.250",
    ]


def test_a_terminal_gets_a_table() -> None:
    output = io.StringIO()
    with Progress.of(Console(file=output, width=100, force_terminal=True), spec(2)) as progress:
        progress(run(iteration=2, best=1.0, tokens=2400, solved_at=2, status="done"))
    assert "2,400" in output.getvalue()
    assert "3/3" in output.getvalue()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_first_signal_asks_and_the_second_cancels(number: signal.Signals) -> None:
    console, stop = Console(file=io.StringIO()), asyncio.Event()
    with stop_on_signals(console, stop, then="stopping"):
        os.kill(os.getpid(), number)
        async with asyncio.timeout(5):
            await stop.wait()
        os.kill(os.getpid(), number)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(5)
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()
    assert stop.is_set()
