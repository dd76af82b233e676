"""Evaluations: reward vectors from verdicts and from OpenEvolve's evaluators, in the real jail."""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from evolve.evaluator import (
    MAX_METRICS,
    OpenEvolveEvaluator,
    component_names,
    evaluation_of_metrics,
    evaluation_of_tests,
    failed_evaluation,
    make_evaluator,
    scaled,
)
from evolve.openevolve_task import OpenEvolveTask
from evolve.task import TestsTask, load_task
from sandbox.cases import EvaluatorResult
from sandbox.errors import SandboxUnavailable
from sandbox.runner import Sandbox
from sandbox.verdict import Status, Verdict

EXAMPLES = Path(__file__).parents[2] / "examples"
REVERSE = TestsTask.model_validate(
    {
        "name": "reverse",
        "statement": "Reverse the list.",
        "entry_point": "f",
        "tests": [{"args": [[1, 1]], "expected": [1, 1]}, {"args": [[1, 2]], "expected": [2, 1]}],
        "limits": {"wall_s": 2, "cpu_s": 2},
    }
)


def openevolve(evaluator: str = "def evaluate(path):\n    return {}\n", **values: Any) -> OpenEvolveTask:
    files = {"evaluator.py": evaluator, "initial_program.py": "VALUE = 0.25\n"}
    return OpenEvolveTask.model_validate({"name": "t", "files": files, **values})


def result(metrics: dict[str, float], status: Status = Status.PASSED, **values: Any) -> EvaluatorResult:
    return EvaluatorResult(verdict=Verdict(name="evaluator", status=status, message="why"), metrics=metrics, **values)


def verdicts(*statuses: Status) -> list[Verdict]:
    return [
        Verdict(name=f"t{i:02d}", status=status, message=f"m{i}", cpu_s=0.5, peak_mb=10.0 + i)
        for i, status in enumerate(statuses)
    ]


def test_one_component_per_test() -> None:
    evaluation = evaluation_of_tests(REVERSE, verdicts(Status.PASSED, Status.WRONG))
    assert evaluation.components == ("t00", "t01")
    assert evaluation.reward == (1.0, 0.0)
    assert evaluation.messages == ("", "m1")
    assert (evaluation.scalar, evaluation.solved) == (0.5, False)
    assert (evaluation.cpu_s, evaluation.peak_mb) == (1.0, 11.0)
    assert evaluation_of_tests(REVERSE, verdicts(Status.PASSED, Status.PASSED)).solved


def test_the_target_decides_when_a_task_is_solved() -> None:
    easy = REVERSE.model_copy(update={"target": 0.5})
    assert evaluation_of_tests(easy, verdicts(Status.PASSED, Status.WRONG)).solved


def test_an_infrastructure_failure_scores_nothing() -> None:
    evaluation = evaluation_of_tests(REVERSE, verdicts(Status.PASSED, Status.INFRASTRUCTURE))
    assert evaluation.infrastructure == "test t01: m1"
    assert not evaluation.solved
    broken = evaluation_of_metrics(openevolve(), ("a",), result({}, Status.INFRASTRUCTURE))
    assert broken.infrastructure == "why"


def test_metrics_are_scaled_and_kept_raw() -> None:
    task = openevolve(ranges={"loss": [10, 0], "speed": [0, 50]})
    evaluation = evaluation_of_metrics(task, task.components, result({"loss": 2.5, "speed": 100.0, "other": 3.0}))
    assert evaluation.components == ("loss", "speed")
    assert evaluation.reward == (0.75, 1.0)
    assert evaluation.statuses == (Status.WRONG, Status.PASSED)
    assert evaluation.messages == ("loss is 2.5; 10 is worst and 0 is best", "")
    assert evaluation.metrics == {"loss": 2.5, "speed": 100.0, "other": 3.0}
    assert evaluation.scalar == 0.875


def test_combined_score_is_the_scalar_and_no_component() -> None:
    task = openevolve()
    metrics = {"a": 0.2, "b": 0.4, "combined_score": 0.9}
    names = component_names(task, metrics)
    assert names == ("a", "b")
    evaluation = evaluation_of_metrics(task, names, result(metrics))
    assert (evaluation.reward, evaluation.scalar) == ((0.2, 0.4), 0.9)
    assert component_names(task, {"combined_score": 1.0}) == ("combined_score",)
    assert component_names(task, {}) == ("combined_score",)


def test_feature_dimensions_are_no_components_unless_nothing_else_is_there() -> None:
    task = openevolve(config={"database": {"feature_dimensions": ["size", "complexity"]}})
    assert component_names(task, {"size": 3.0, "a": 1.0}) == ("a",)
    assert component_names(task, {"size": 3.0}) == ("size",)


def test_a_metric_that_did_not_come_is_zero() -> None:
    evaluation = evaluation_of_metrics(openevolve(), ("a", "b"), result({"a": 1.0, "b": float("nan")}))
    assert evaluation.reward == (1.0, 0.0)
    assert evaluation.statuses[1] is Status.ERROR
    assert "no finite number for b" in evaluation.messages[1]
    assert evaluation.metrics == {"a": 1.0}


def test_a_failed_evaluator_keeps_its_artifacts() -> None:
    failed = evaluation_of_metrics(
        openevolve(), ("a", "b"), result({}, Status.TIMEOUT, artifacts={"stderr": "slow\x00\ud800"})
    )
    assert failed.reward == (0.0, 0.0)
    assert failed.statuses == (Status.TIMEOUT, Status.TIMEOUT)
    assert failed.messages == ("why", "why")
    assert failed.artifacts == {"stderr": "slow��"}
    assert failed.infrastructure is None


def test_a_value_above_an_undeclared_range_does_not_solve() -> None:
    high = result({"combined_score": 2.6})
    assert not evaluation_of_metrics(openevolve(), ("combined_score",), high).solved
    declared = openevolve(ranges={"combined_score": [0, 2.6]})
    assert evaluation_of_metrics(declared, ("combined_score",), high).solved
    assert not evaluation_of_metrics(openevolve(), ("a",), result({"a": 3.0})).solved
    assert evaluation_of_metrics(openevolve(), ("a",), result({"a": 1.0})).solved


def test_a_flood_of_metrics_is_bounded() -> None:
    metrics = {f"m{i:04d}": 1.0 for i in range(1000)} | {"x" * 10_000: 1.0, "combined_score": 0.5}
    evaluation = evaluation_of_metrics(openevolve(), ("m0000",), result(metrics))
    assert len(evaluation.metrics) <= MAX_METRICS
    assert evaluation.scalar == 0.5


@given(
    value=st.floats(),
    low=st.floats(allow_nan=False, allow_infinity=False),
    high=st.floats(allow_nan=False, allow_infinity=False),
)
def test_a_reward_is_always_in_the_unit_interval(value: float, low: float, high: float) -> None:
    if low != high:
        assert 0.0 <= scaled(value, (low, high)) <= 1.0


@given(st.floats(0, 1))
def test_the_unit_range_changes_nothing(value: float) -> None:
    assert scaled(value) == value


def test_a_failure_for_every_component() -> None:
    failed = failed_evaluation(("a", "b"), Status.MEMORY, "too much")
    assert (failed.reward, failed.scalar, failed.solved) == ((0.0, 0.0), 0.0, False)
    assert failed.infrastructure is None


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(concurrency=1) as made:
        yield made


async def test_programs_in_the_jail(sandbox: Sandbox) -> None:
    evaluator = make_evaluator(REVERSE, sandbox)
    assert (await evaluator.evaluate("def f(x):\n    return x[::-1]\n")).solved
    half = await evaluator.evaluate("def f(x):\n    return x\n")
    assert half.reward == (1.0, 0.0)
    assert half.statuses == (Status.PASSED, Status.WRONG)
    assert "[2, 1]" in half.messages[1]


async def test_a_checker_gives_partial_credit_and_a_preamble_helps(sandbox: Sandbox) -> None:
    checker = (
        "def check(args, expected, actual):\n    return len(set(actual) & set(expected)) / 4, 'some are missing'\n"
    )
    task = TestsTask.model_validate(
        REVERSE.model_dump()
        | {
            "preamble": "from typing import List\ndef double(xs):\n    return xs + xs\n",
            "checker": checker,
            "tests": [
                {"args": [[1, 2]], "expected": [1, 2, 3, 4]},
                {"args": [[3]], "expected": [3], "compare": "exact"},
            ],
        }
    )

    evaluation = await make_evaluator(task, sandbox).evaluate("def f(x: List[int]):\n    return double(x)\n")

    assert evaluation.reward == (0.5, 0.0)
    assert (evaluation.scalar, evaluation.solved) == (0.25, False)
    assert evaluation.statuses == (Status.WRONG, Status.WRONG)
    assert evaluation.messages[0] == "some are missing (score 0.5)"


@pytest.mark.parametrize(
    "source",
    [
        "def f(x:\n",
        "",
        "x = 1\n",
        "def f(x):\n    raise ValueError('no')\n",
        "\x00",
        "\ud800",
        "import sys\nsys.exit(0)\n",
    ],
)
async def test_bad_programs_never_raise(sandbox: Sandbox, source: str) -> None:
    evaluation = await make_evaluator(REVERSE, sandbox).evaluate(source)
    assert evaluation.infrastructure is None
    assert evaluation.reward == (0.0, 0.0)
    assert all(evaluation.messages)


async def test_standard_input(sandbox: Sandbox) -> None:
    task = TestsTask.model_validate(
        {
            "name": "double",
            "statement": "Double.",
            "tests": [{"stdin": "2\n", "expected": "4"}, {"stdin": "x", "expected": ""}],
        }
    )
    evaluation = await make_evaluator(task, sandbox).evaluate("print(2 * int(input()))\n")
    assert evaluation.statuses == (Status.PASSED, Status.ERROR)
    assert (await make_evaluator(task, sandbox).evaluate(task.seed_source)).reward == (0.0, 1.0)


@pytest.mark.skipif(shutil.which("g++", path="/usr/bin:/bin") is None, reason="there is no g++ here")
async def test_a_task_in_another_language(sandbox: Sandbox) -> None:
    tests = [{"stdin": "2", "expected": "4"}, {"stdin": "3", "expected": "9"}]
    task = TestsTask.model_validate({"name": "square", "statement": "Square.", "language": "cpp", "tests": tests})
    evaluator = make_evaluator(task, sandbox)

    good = await evaluator.evaluate('#include <cstdio>\nint main() { int x; scanf("%d", &x); printf("%d", x * x); }\n')
    bad = await evaluator.evaluate("int main( {\n")

    assert good.solved
    assert bad.statuses == (Status.ERROR, Status.ERROR)
    assert "program.cpp:1" in bad.messages[0]
    assert (await evaluator.evaluate(task.seed_source)).statuses == (Status.WRONG, Status.WRONG)


async def test_the_example_task(sandbox: Sandbox) -> None:
    task = load_task(EXAMPLES / "tests" / "balanced_brackets")
    seed = await make_evaluator(task, sandbox).evaluate(task.seed_source)
    assert 0.0 < seed.scalar < 1.0


LOADING = "import importlib.util, os\n\ndef load(path):\n    spec = importlib.util.spec_from_file_location('p', path)\n"
LOADING += (
    "    module = importlib.util.module_from_spec(spec)\n    spec.loader.exec_module(module)\n    return module\n\n"
)
EVALUATOR = LOADING + "def evaluate(path):\n    value = load(path).VALUE\n    return {'a': value, 'b': 1 - value}\n"


async def test_the_seed_fixes_the_components_even_when_it_does_not_come_first(sandbox: Sandbox) -> None:
    task = openevolve(EVALUATOR)
    evaluator = make_evaluator(task, sandbox)
    first, second = await asyncio.gather(evaluator.evaluate("VALUE = 'x'\n"), evaluator.evaluate("VALUE = 0.75\n"))
    assert first.components == second.components == ("a", "b")
    assert first.reward == (0.0, 0.0)
    assert first.statuses == (Status.ERROR, Status.ERROR)
    assert second.reward == (0.75, 0.25)
    assert (await evaluator.evaluate(task.seed_source)).reward == (0.25, 0.75)


@pytest.mark.parametrize("source", ["\ud800", "\x00", "", "while True: pass\n", "import os\nos._exit(0)\n"])
async def test_bad_programs_of_an_evaluator_never_raise(sandbox: Sandbox, source: str) -> None:
    task = openevolve(EVALUATOR, limits={"wall_s": 2, "cpu_s": 2}, ranges={"a": [0, 1]})
    evaluation = await make_evaluator(task, sandbox).evaluate(source)
    assert evaluation.infrastructure is None
    assert evaluation.reward == (0.0,)
    assert evaluation.messages[0]


async def test_openevolves_own_result_type_and_support_files(sandbox: Sandbox) -> None:
    evaluator = "from openevolve.evaluation_result import EvaluationResult\nfrom helpers.names import NAME\n\n"
    evaluator += "def evaluate(path):\n    return EvaluationResult(metrics={NAME: 0.5}, artifacts={'note': 'hello'})\n"
    task = openevolve(evaluator)
    files = {**task.files, "helpers/__init__.py": "", "helpers/names.py": "NAME = 'half'\n"}
    task = OpenEvolveTask.model_validate(task.model_dump() | {"files": files})
    evaluation = await make_evaluator(task, sandbox).evaluate(task.seed_source)
    assert (evaluation.components, evaluation.reward) == (("half",), (0.5,))
    assert evaluation.artifacts == {"note": "hello"}


async def test_the_documented_task_works(sandbox: Sandbox) -> None:
    text = (EXAMPLES.parent / "docs" / "sandbox.md").read_text(encoding="utf-8")
    task = TestsTask.model_validate(yaml.safe_load(re.findall(r"```yaml\n(format.*?)```", text, re.DOTALL)[0]))

    found = await make_evaluator(task, sandbox).evaluate("def f(*xs: List): return [5, 5] if len(xs) == 1 else 0\n")
    half = await make_evaluator(task, sandbox).evaluate("def f(*xs): return [4, 6]\n")

    assert found.solved
    assert half.reward == (0.5, 0.0)
    assert half.messages[0] == "not both are prime (score 0.5)"


def test_the_documented_language_is_the_real_one() -> None:
    text = (EXAMPLES.parent / "docs" / "sandbox.md").read_text(encoding="utf-8")
    source = (EXAMPLES.parent / "sandbox" / "languages" / "cpp.py").read_text(encoding="utf-8")
    assert source.split("\n\n", 2)[2] in text


CASCADE = """
def evaluate_stage1(path):
    return {"combined_score": load(path).VALUE, "quick": 1.0}

def evaluate_stage2(path):
    return {"combined_score": 1 / (load(path).VALUE - 0.75), "slow": 0.5}

def evaluate(path):
    raise AssertionError("the stages come in its place")
"""


async def test_a_cascade_stops_hopeless_candidates_and_keeps_what_is_known(sandbox: Sandbox) -> None:
    task = openevolve(LOADING + CASCADE, config={"evaluator": {"cascade_thresholds": [0.5]}}, ranges={"slow": [0, 1]})
    task = OpenEvolveTask.model_validate(task.model_dump() | {"ranges": {"slow": (0, 1), "quick": (0, 1)}})
    evaluator = make_evaluator(task, sandbox)

    good = await evaluator.evaluate("VALUE = 1.0\n")
    low = await evaluator.evaluate("VALUE = 0.25\n")
    breaks = await evaluator.evaluate("VALUE = 0.75\n")

    assert (good.reward, good.scalar) == ((0.5, 1.0), 1.0)
    assert (low.reward, low.scalar, low.artifacts) == ((0.0, 1.0), 0.25, {})
    assert (breaks.reward, breaks.scalar) == ((0.0, 1.0), 0.75)
    assert breaks.metrics["stage2_passed"] == 0.0
    assert "ZeroDivisionError" in breaks.artifacts["stage2_error"]


async def test_the_mark_of_a_broken_stage_is_no_component(sandbox: Sandbox) -> None:
    task = openevolve(LOADING + CASCADE, config={"evaluator": {"cascade_thresholds": [0.0]}})
    task = OpenEvolveTask.model_validate(
        task.model_dump() | {"files": {**task.files, "initial_program.py": "VALUE = 0.75\n"}}
    )

    assert (await make_evaluator(task, sandbox).evaluate(task.seed_source)).components == ("quick",)


async def test_what_a_task_needs_and_the_machine_lacks_is_said(sandbox: Sandbox) -> None:
    task = openevolve(EVALUATOR)
    task = OpenEvolveTask.model_validate(task.model_dump() | {"environment": {"packages": ["no-such-package"]}})

    with pytest.raises(SandboxUnavailable, match="no-such-package not installed"):
        await make_evaluator(task, sandbox).evaluate(task.seed_source)


async def test_the_warning_about_an_undeclared_range_comes_once(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    task = openevolve(LOADING + "def evaluate(path):\n    return {'combined_score': load(path).VALUE * 2}\n")
    evaluator = OpenEvolveEvaluator(task, sandbox)
    with caplog.at_level(logging.WARNING, logger="evolve.evaluator"):
        await evaluator.evaluate(task.seed_source)
        better = await evaluator.evaluate("VALUE = 0.75\n")
        await evaluator.evaluate("VALUE = 0.8\n")
    assert (better.scalar, better.solved, better.metrics) == (1.0, False, {"combined_score": 1.5})
    assert len(caplog.records) == 1
    assert "declare its range" in caplog.text


async def test_the_openevolve_example(sandbox: Sandbox) -> None:
    task = load_task(EXAMPLES / "openevolve" / "minimise")
    evaluator = make_evaluator(task, sandbox)
    seed = await evaluator.evaluate(task.seed_source)
    assert seed.infrastructure is None
    assert seed.components == ("distance_score", "reliability", "value_score")
    assert 0.0 < seed.scalar < 0.9
    best = await evaluator.evaluate("def run(function, bounds, evaluations, seed):\n    return (-1.70408, 0.67751)\n")
    assert best.scalar > 0.99
    outside = await evaluator.evaluate("def run(*args):\n    return (99, 99)\n")
    assert outside.reward == (0.0, 0.0, 0.0)
    assert any("outside of the bounds" in text for text in (*outside.messages, *outside.artifacts.values()))
