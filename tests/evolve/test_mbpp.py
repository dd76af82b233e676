"""MBPP's JSON lines: asserts as tests, and what cannot become a task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evolve.mbpp import is_mbpp, read_mbpp
from evolve.suite import load_suite

FULL: dict[str, Any] = {
    "text": "Write a function to find the larger of two numbers.",
    "code": "def larger(a, b):\r\n  return max(a, b)",
    "task_id": 11,
    "test_setup_code": "",
    "test_list": ["assert larger(1, 2) == 2", "assert larger((1, 2), (0, 3)) == (1, 2)"],
    "challenge_test_list": ["assert larger(-1, -2) == -1"],
}
SANITIZED: dict[str, Any] = {
    "source_file": "x.ipynb",
    "task_id": 12,
    "prompt": "Write a function to tell the area of a circle.",
    "code": "def area(r):\n    return 3.14 * r * r",
    "test_imports": ["import math"],
    "test_list": ["assert math.isclose(area(1), 3.14, rel_tol=0.01)", "assert set([area(0)]) == set([0])"],
}


def test_the_full_edition() -> None:
    tasks, skipped = read_mbpp([FULL])
    assert skipped == []
    task = tasks[0]
    assert (task.name, task.entry_point, len(task.tests)) == ("MBPP/11", "larger", 3)
    assert task.statement.endswith("The function is called larger.")
    assert [test.visible for test in task.tests] == [True, False, False]
    assert [test.expected for test in task.call_tests] == [2, [1, 2], -1]
    assert task.call_tests[1].args == ((1, 2), (0, 3)) or task.call_tests[1].args == ([1, 2], [0, 3])


def test_asserts_that_must_be_run_are_recorded_in_a_jail() -> None:
    tasks, skipped = read_mbpp([SANITIZED])
    assert skipped == []
    assert (tasks[0].entry_point, len(tasks[0].tests)) == ("area", 2)
    assert tasks[0].checker is not None


def test_problems_that_cannot_become_tasks_say_why() -> None:
    broken = [
        {**FULL, "code": "def larger(a, b:"},
        {**FULL, "test_list": ["assert other(1) == 1"]},
        {"task_id": 3},
        {**FULL, "test_list": ["assert larger(1, 2) == unknown"], "challenge_test_list": []},
    ]
    tasks, skipped = read_mbpp(broken)
    assert tasks == []
    reasons = {each.name: each.reason for each in skipped}
    assert reasons["record 2"].startswith("needs task_id")
    assert len(skipped) == 4


def test_a_file_is_a_suite_with_a_digest(tmp_path: Path) -> None:
    assert is_mbpp(FULL)
    assert not is_mbpp({**FULL, "test_list": []})
    path = tmp_path / "mbpp.jsonl"
    path.write_text(json.dumps(FULL) + "\n")
    suite = load_suite(path)
    assert [task.name for task in suite.tasks] == ["MBPP/11"]
    assert len(suite.digest) == 32
