"""What a check of a suite finds, in the real jail."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evolve.openevolve_task import OpenEvolveTask
from evolve.suite import load_suite
from evolve.suite_check import TaskCheck, check_suite, check_task, read_references
from evolve.tests_task import TestsTask
from sandbox.runner import Sandbox

TASK = {
    "format": "tests",
    "name": "absolute",
    "statement": "The absolute value.",
    "entry_point": "f",
    "seed_program": "def f(x):\n    return x\n",
    "tests": [
        {"name": "positive", "args": [3], "expected": 3},
        {"name": "negative", "args": [-3], "expected": 3},
        {"name": "again", "args": [-3], "expected": 3},
    ],
}


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(concurrency=1) as made:
        yield made


async def test_a_good_reference_and_tests_that_say_nothing(sandbox: Sandbox) -> None:
    found = await check_task(TestsTask.model_validate(TASK), sandbox, "def f(x):\n    return abs(x)\n", runs=2)
    assert found == TaskCheck(
        task="absolute", tests=3, reference=1.0, seed=pytest.approx(1 / 3), blind=("positive",), repeated=("again",)
    )
    assert found.fine


async def test_a_reference_that_fails_and_one_that_wavers(sandbox: Sandbox) -> None:
    task = TestsTask.model_validate(TASK)
    wrong = await check_task(task, sandbox, "def f(x):\n    return -abs(x)\n", runs=1)
    assert (wrong.failed, wrong.fine) == (("positive", "negative", "again"), False)
    wavering = "import time\ndef f(x):\n    return abs(x) + time.time_ns() // 1000 % 7\n"
    assert (await check_task(task, sandbox, wavering, runs=6)).flaky


async def test_an_evaluator_whose_metrics_change_or_are_missing(sandbox: Sandbox) -> None:
    files = {"initial_program.py": "x = 1\n"}
    evaluators = {
        "import time\ndef evaluate(path):\n    return {'a': time.time_ns() % 1000 / 1000}\n": (("a",), None),
        "def evaluate(path):\n    raise ValueError('no data')\n": ((), "no data"),
    }
    for evaluator, (flaky, problem) in evaluators.items():
        task = OpenEvolveTask.model_validate({"name": "t", "files": {**files, "evaluator.py": evaluator}})
        found = await check_task(task, sandbox, runs=3)
        assert found.flaky == flaky
        assert (problem or "") in (found.problem or "")
        assert not found.fine


async def test_references_come_with_their_suite(sandbox: Sandbox, tmp_path: Path) -> None:
    folder = tmp_path / "suite" / "absolute"
    folder.mkdir(parents=True)
    (folder / "task.json").write_text(json.dumps(TASK))
    (folder / "reference.py").write_text("def f(x):\n    return abs(x)\n")
    references = read_references(tmp_path / "suite")
    assert list(references) == ["absolute"]
    found = [each async for each in check_suite(load_suite(tmp_path / "suite"), sandbox, references, runs=1)]
    assert [each.reference for each in found] == [1.0]
    with pytest.raises(ValueError, match="runs is 0"):
        await anext(check_suite(load_suite(tmp_path / "suite"), sandbox, references, runs=0))


def test_references_of_published_files(tmp_path: Path) -> None:
    mbpp = {"task_id": 1, "text": "t", "code": "def f():\n    return 1", "test_list": ["assert f() == 1"]}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(mbpp))
    assert read_references(path) == {"MBPP/1": "def f():\n    return 1\n"}
    human = {"task_id": "H/1", "prompt": "def f():\n", "entry_point": "f", "test": "", "canonical_solution": "    x\n"}
    path.write_text(json.dumps(human))
    assert read_references(path) == {"H/1": "def f():\n    x\n"}
