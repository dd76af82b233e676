"""What a cascade saves and costs: one candidate of each kind, judged by all tests and in two stages.

The task has 16 instant tests with a limit of a fifth of a second each; the first stage has 3 and a threshold of 0.5.
``good`` passes every test, ``poor`` fails every test at once, ``hanging`` never returns. CPU time is measured as in
:mod:`benchmarks.sandbox`; wall time, of the one kind that it says something about, is that of the quicker round of two.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial

from benchmarks.figures import Figure, run
from benchmarks.sandbox import slope_ms
from evolve.cascade import search_evaluator
from evolve.config import CascadeConfig, SearchConfig
from evolve.tests_task import TestsTask
from sandbox.runner import Sandbox

PEER = "all tests at once"
CANDIDATES = {
    "good": "def f(x):\n    return x + 1\n",
    "poor": "def f(x):\n    return x\n",
    "hanging": "def f(x):\n    while True:\n        pass\n",
}
TASK = TestsTask.model_validate(
    {
        "name": "successor",
        "statement": "Write f(x): the number after x.",
        "entry_point": "f",
        "tests": [{"args": [x], "expected": x + 1} for x in range(16)],
        "limits": {"wall_s": 0.2, "cpu_s": 1},
    }
)
WHOLE = SearchConfig()
CASCADE = SearchConfig(cascade=CascadeConfig(first=3, threshold=0.5))


def measure() -> list[Figure]:
    """Every figure of the cascade; the peer is judging by all tests at once."""
    found = []
    for name, large in (("good", 9), ("poor", 9), ("hanging", 2)):
        staged, whole = (
            slope_ms(partial(_judge_all, name, config), small=1, large=large) for config in (CASCADE, WHOLE)
        )
        found.append(Figure(name=f"{name}_cpu_ms", value=staged, unit="ms", peer=PEER, peer_value=whole))
    staged, whole = (min(_judge_all("hanging", config, 1) for _ in range(2)) for config in (CASCADE, WHOLE))
    found.append(Figure(name="hanging_wall_s", value=staged, unit="s", peer=PEER, peer_value=whole))
    return found


def _judge_all(name: str, config: SearchConfig, count: int) -> float:
    """Judge ``count`` candidates of a kind, one after the other; the wall seconds of that."""
    return asyncio.run(_judge(name, config, count))


async def _judge(name: str, config: SearchConfig, count: int) -> float:
    async with Sandbox(concurrency=1) as sandbox:
        evaluator = search_evaluator(TASK, config, sandbox)
        start = time.perf_counter()
        for _ in range(count):
            await evaluator.evaluate(CANDIDATES[name])
        return time.perf_counter() - start


if __name__ == "__main__":
    run("cascade: judging hopeless candidates by the first tests only", measure)
