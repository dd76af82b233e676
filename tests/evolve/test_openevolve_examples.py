"""The task folders in OpenEvolve's format that are shipped: loaded, judged in the real jail, searched with a stub."""

from __future__ import annotations

from pathlib import Path

import pytest

from evolve import run_async
from evolve.program import Reply, Usage
from evolve.request import Request
from evolve.suite import load_suite
from evolve.task import OpenEvolveTask

FOLDER = Path(__file__).parents[2] / "examples" / "openevolve"
TASKS = {task.name: task for task in load_suite(FOLDER).tasks if isinstance(task, OpenEvolveTask)}
START = "# EVOLVE-BLOCK-START\n"


class Stub:
    """Deterministic: the seed program with another constant each time; every third reply has no code."""

    def __init__(self, seed: str) -> None:
        self._seed = seed

    async def complete(self, request: Request) -> Reply:
        text = f"<think>\n```python\nx = 1\n```\n</think>\n```python\n{self._variant(request.iteration)}```"
        if request.iteration % 3 == 0:
            text = "Nothing comes to mind."
        return Reply(texts=(text,) * request.n, finished=(True,) * request.n, usage=Usage(calls=1))

    def _variant(self, number: int) -> str:
        return self._seed.replace(START, f"{START}VARIANT = {number}\n")


def test_there_are_ten_of_them() -> None:
    assert len(TASKS) >= 10
    for task in TASKS.values():
        assert START in task.seed_source
        assert not [key for key in task.ignored if key != "checkpoint_interval"]


@pytest.mark.parametrize("name", sorted(TASKS))
async def test_a_few_iterations(name: str) -> None:
    await searched(TASKS[name], 3)


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(TASKS))
async def test_twenty_iterations(name: str) -> None:
    await searched(TASKS[name], 20)


async def searched(task: OpenEvolveTask, iterations: int) -> None:
    result = await run_async(task, model=Stub(task.seed_source), iterations=iterations, concurrency=1)
    seed = result.programs[0].evaluation
    assert "combined_score" in seed.metrics
    assert 0.0 <= seed.scalar < 1.0
    assert result.summary.iterations == iterations
    assert len(result.programs) == 1 + iterations - iterations // 3
    assert all(program.evaluation.metrics == seed.metrics for program in result.programs)
    rejected = [answer.reason for record in result.records for answer in record.rejected]
    assert rejected == ["missing"] * (iterations // 3)
