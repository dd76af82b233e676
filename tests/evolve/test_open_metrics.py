"""Metrics that nobody declared a range for and that are not in [0, 1]: their order counts, and nothing is solved early."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from evolve.evaluator import OpenEvolveEvaluator, open_metrics, squashed
from evolve.openevolve_task import OpenEvolveTask
from sandbox.runner import Sandbox

EVALUATOR = """
def evaluate(path):
    value = float(open(path).read().split("=")[1])
    return {"combined_score": value, "loss": -value, "share": min(1.0, value / 10), "odd": float("nan")}
"""


def task(**values: object) -> OpenEvolveTask:
    files = {"evaluator.py": EVALUATOR, "initial_program.py": "VALUE = 1.0\n"}
    return OpenEvolveTask.model_validate({"name": "t", "files": files, **values})


def test_which_metrics_are_open() -> None:
    seed = {"combined_score": 1.0, "speed": 1.0, "loss": -0.5, "sum": 2.6, "share": 0.5}
    assert open_metrics(task(), seed) == {"combined_score", "loss", "sum"}
    assert open_metrics(task(ranges={"combined_score": [0, 2], "sum": [0, 3]}), seed) == {"loss"}
    assert open_metrics(task(), {"combined_score": 0.9}) == frozenset()


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
def test_order_is_kept_in_the_unit_interval(a: float, b: float) -> None:
    assert 0.0 <= squashed(a) <= 1.0
    assert a > b or squashed(a) <= squashed(b)
    assert math.isclose(squashed(a) + squashed(-a), 1.0)


async def test_a_score_that_starts_at_one_goes_on() -> None:
    async with Sandbox(concurrency=1) as sandbox:
        evaluator = OpenEvolveEvaluator(task(), sandbox)
        seed = await evaluator.evaluate("VALUE = 1.0\n")
        better = await evaluator.evaluate("VALUE = 1.5\n")
    assert (seed.scalar, seed.solved, seed.components) == (0.75, False, ("loss", "share"))
    assert (better.scalar, better.solved) == (0.8, False)
    assert better.reward == (squashed(-1.5), 0.15)
    assert better.metrics == {"combined_score": 1.5, "loss": -1.5, "share": 0.15}
    assert better.artifacts["dropped_metrics"].startswith("odd=")
