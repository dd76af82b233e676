"""Hopeless candidates are judged by the first tests only, in the real jail; nothing that could solve a task is."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolve.cascade import CascadeEvaluator, hopeless, search_evaluator
from evolve.chain import ChainFormat
from evolve.chat import render_chat
from evolve.config import CascadeConfig, SearchConfig
from evolve.driver import MemoryStore, run_search
from evolve.evaluator import TestsEvaluator
from evolve.operators import OPERATORS
from evolve.program import Reply
from evolve.randomness import generator
from evolve.request import Request
from evolve.search import Search
from evolve.task import OpenEvolveTask, TestsTask, prompt_context
from sandbox.runner import Sandbox
from sandbox.verdict import Status, Verdict
from tests.evolve.builders import program
from tests.evolve.world import reply_to

BITS = 4
FIRST = 2


def task(**changes: Any) -> TestsTask:
    """f(i) is to be bit i of 15."""
    body = {
        "name": "bits",
        "statement": "Write f(i): bit i of a number whose bits are all set.",
        "entry_point": "f",
        "tests": [{"args": [i], "expected": 1, "visible": i != 3} for i in range(BITS)],
        "limits": {"wall_s": 2, "cpu_s": 2},
    }
    return TestsTask.model_validate(body | changes)


def bits(value: int) -> str:
    return f"def f(i):\n    return {value} >> i & 1\n"


def config(threshold: float = 0.5, first: int = FIRST) -> SearchConfig:
    return SearchConfig(cascade=CascadeConfig(first=first, threshold=threshold))


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(concurrency=2) as found:
        yield found


async def test_the_rest_is_run_for_those_that_reach_the_threshold(sandbox: Sandbox) -> None:
    evaluator = search_evaluator(task(), config(), sandbox)
    good, poor = await evaluator.evaluate(bits(0b1101)), await evaluator.evaluate(bits(0b1100))
    assert good == await _whole(sandbox, bits(0b1101), good.cpu_s, good.peak_mb)
    assert poor.components == good.components
    assert poor.reward == (0.0,) * BITS
    assert poor.statuses == (Status.WRONG,) * FIRST + (Status.SKIPPED,) * (BITS - FIRST)
    assert poor.messages[-1] == "not run: the first 2 tests decided against the program"
    assert (poor.scalar, poor.solved, poor.infrastructure) == (0.0, False, None)


async def _whole(sandbox: Sandbox, source: str, cpu_s: float, peak_mb: float) -> Any:
    found = await TestsEvaluator(task(), sandbox).evaluate(source)
    return replace(found, cpu_s=cpu_s, peak_mb=peak_mb)  # measurements differ from run to run


async def test_the_seed_program_is_judged_by_all_tests(sandbox: Sandbox) -> None:
    a_task = task(seed_program=bits(0b1000))
    found = await search_evaluator(a_task, config(), sandbox).evaluate(a_task.seed_source)
    assert found.reward == (0.0,) * 3 + (1.0,)


async def test_a_broken_judge_says_nothing_about_the_program() -> None:
    class Broken:
        async def grade_calls(self, source: str, entry: str, tests: Any, *_: Any, **__: Any) -> list[Verdict]:
            return [Verdict(name=test.name, status=Status.INFRASTRUCTURE, message="gone") for test in tests]

    found = await CascadeEvaluator(task(), config().cascade, Broken()).evaluate("x = 1\n")  # type: ignore[arg-type]
    assert found.infrastructure == "test t00: gone"


def test_only_tests_tasks_with_more_tests_have_stages(sandbox: Sandbox) -> None:
    files = {"evaluator.py": "def evaluate(path):\n    return {'a': 1.0}\n", "initial_program.py": "x = 1\n"}
    other = OpenEvolveTask.model_validate({"name": "t", "files": files})
    assert isinstance(search_evaluator(task(), config(), sandbox), CascadeEvaluator)
    for a_task, settings in ((other, config()), (task(), config(first=BITS)), (task(), SearchConfig())):
        assert not isinstance(search_evaluator(a_task, settings, sandbox), CascadeEvaluator)


@given(
    st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=2, max_size=12),
    st.integers(1, 11),
    st.floats(0.0, 1.0),
    st.sampled_from([0.3, 0.5, 2 / 3, 0.9, 1.0]),
)
def test_what_could_solve_the_task_is_never_cut_off(
    rewards: list[float], first: int, threshold: float, target: float
) -> None:
    first = min(first, len(rewards) - 1)
    a_task = task(tests=[{"args": [i], "expected": 1} for i in range(len(rewards))], target=target)
    verdicts = [
        Verdict(name=f"t{i:02d}", status=Status.PASSED if r == 1 else Status.WRONG, score=r % 1)
        for i, r in enumerate(rewards[:first])
    ]
    cut = hopeless(a_task, CascadeConfig(first=first, threshold=threshold), verdicts)
    if math.fsum(rewards) / len(rewards) >= target - 1e-9 or threshold == 0.0:
        assert not cut
    elif sum(rewards[:first]) + len(rewards) - first < target * len(rewards) - 1e-6:
        assert cut == (sum(rewards[:first]) / first < threshold - 1e-9 / first)


class _Bits:
    """A model that flips one bit of the parent's number, or begins anew."""

    async def complete(self, request: Request) -> Reply:
        rng = generator(request.seed, "bits")
        value = int(rng.integers(2**BITS))
        if request.parent_source is not None:
            value = int(re.findall(r"return (\d+)", request.parent_source)[0]) ^ (1 << int(rng.integers(BITS)))
        return Reply(texts=(f"```python\n{bits(value)}```\n",), finished=(True,), usage=reply_to(request).usage)


async def test_a_solution_is_still_found_and_fewer_tests_are_run(sandbox: Sandbox) -> None:
    spent, best = [], []
    for settings in (SearchConfig(), config(0.0), config(0.5)):
        search, store = Search(task(), settings, seed=1), MemoryStore()
        evaluator = search_evaluator(search.task, settings, sandbox)
        summary = await run_search(search, model=_Bits(), evaluator=evaluator, store=store, iterations=40)
        assert summary.solved
        spent.append(summary.spent)
        best.append([record.best_scalar for record in store.records])
    assert best[0] == best[1]  # at threshold 0 the search is the same
    assert spent[0].tests == spent[1].tests == spent[0].evaluations * BITS
    assert spent[2].tests < spent[2].evaluations * BITS


def test_prompts_say_nothing_about_tests_that_were_not_run() -> None:
    a_task = task()
    statuses = (Status.WRONG, Status.PASSED) + (Status.SKIPPED,) * 2
    found = program(1, [0, 1, 0, 0], statuses=statuses, messages=("a", "", "b", "b")).evaluation
    shown = a_task.prompt_tests(found)
    assert [(test.status, test.message) for test in shown] == [("wrong", "a"), ("passed", ""), (None, "")]
    assert a_task.hidden_failed(found) == 0
    assert OPERATORS["repair"].focus(shown, (), generator(0)) == ("t00",)
    better = a_task.prompt_tests(program(2, [1, 1, 1, 1]).evaluation)
    assert OPERATORS["crossover"].focus(shown, better, generator(0)) == ("t00",)
    text = render_chat(prompt_context(a_task, program(1, [0, 1, 0, 0], statuses=statuses)), ChainFormat(m=1))[-1]
    assert "in order (+ passed, ? not run): -+?" in text["content"]
