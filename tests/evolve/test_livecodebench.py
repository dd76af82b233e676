"""LiveCodeBench's format: both kinds of tests, the date split, and private tests that are never unpickled."""

from __future__ import annotations

import base64
import json
import os
import pickle
import zlib
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolve.evaluator import make_evaluator
from evolve.livecodebench import UnreadableTests, read_livecodebench, read_tests, string_of_pickle, to_task, unpack
from evolve.suite import load_suite
from sandbox import Sandbox


def packed(value: Any, protocol: int = 4) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(value, protocol))).decode()


def cases(*pairs: tuple[str, str], kind: str) -> str:
    return json.dumps([{"input": i, "output": o, "testtype": kind} for i, o in pairs])


def record(**changes: str) -> dict[str, str]:
    return {
        "question_title": "Double",
        "question_content": "Print twice the number.\n",
        "platform": "atcoder",
        "question_id": "abc1_a",
        "contest_id": "abc1",
        "contest_date": "2024-03-02T00:00:00",
        "starter_code": "",
        "difficulty": "easy",
        "public_test_cases": cases(("2\n", "4\n"), kind="stdin"),
        "private_test_cases": packed(cases(("3\n", "6\n"), ("0.5\n", "1.0\n"), kind="stdin")),
        "metadata": "{}",
        **changes,
    }


FUNCTIONAL = record(
    question_id="2828",
    starter_code="class Solution:\n    def addAll(self, nums: List[int], k: int) -> int:\n        ",
    public_test_cases=cases(("[1, 2]\n3", "6"), kind="functional"),
    private_test_cases=cases(("[]\n0", "0"), kind="functional"),
    metadata=json.dumps({"func_name": "addAll"}),
)


async def test_stdin_problems() -> None:
    task = to_task(record())
    assert (task.name, task.entry_point) == ("abc1_a", None)
    assert task.statement == "Double\n\nPrint twice the number."
    assert [case.visible for case in task.tests] == [True, False, False]
    async with Sandbox(concurrency=1) as sandbox:
        right = await make_evaluator(task, sandbox).evaluate("n = float(input())\nprint(f'{2 * n:.3g}')\n")
        wrong = await make_evaluator(task, sandbox).evaluate("print(4)\n")
    assert right.reward == (1, 1, 1)  # "1" is the number 1.0
    assert wrong.reward == (1, 0, 0)


async def test_functional_problems() -> None:
    task = to_task(FUNCTIONAL)
    assert task.entry_point == "addAll"
    assert task.statement.endswith("without a class:\n\ndef addAll(nums: List[int], k: int) -> int:")
    async with Sandbox(concurrency=1) as sandbox:
        source = "def addAll(nums: List[int], k: int) -> int:\n    return reduce(lambda a, b: a + b, nums, k)\n"
        evaluation = await make_evaluator(task, sandbox).evaluate(source)
    assert evaluation.solved


def test_the_date_split_and_the_number_of_tests() -> None:
    records = [record(), record(question_id="new", contest_date="2025-01-04")]
    day = date(2024, 12, 1)
    assert [task.name for task in read_livecodebench(records, before=day)[0]] == ["abc1_a"]
    assert [task.name for task in read_livecodebench(records, since=day)[0]] == ["new"]
    assert [len(task.tests) for task in read_livecodebench(records, max_tests=2)[0]] == [2, 2]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"contest_date": "soon"}, "ISO"),
        ({"private_test_cases": "?"}, "base64"),
        ({"private_test_cases": packed(["a"])}, "refused"),
        ({"private_test_cases": packed("no JSON")}, "not JSON"),
        ({"private_test_cases": cases(("1", "2"), kind="functional")}, "several kinds"),
        ({"public_test_cases": "[]", "private_test_cases": "[]"}, "no tests"),
        ({"public_test_cases": '[{"input": 1}]'}, "testtype"),
        ({"public_test_cases": "{}"}, "base64"),
        ({**FUNCTIONAL, "metadata": "{}"}, "func_name"),
        ({**FUNCTIONAL, "metadata": json.dumps({"func_name": "not a name"})}, "entry_point"),
        ({**FUNCTIONAL, "public_test_cases": cases(("x", "1"), kind="functional")}, "functional test"),
    ],
)
def test_what_cannot_be_read_is_skipped_with_the_reason(changes: dict[str, str], reason: str) -> None:
    tasks, skipped = read_livecodebench([record(**changes), {"question_id": "x"}])
    assert tasks == []
    assert reason in skipped[0].reason
    assert "question_content" in skipped[1].reason


class Evil:
    def __reduce__(self) -> Any:
        return os.mkdir, ("evil",)


@pytest.mark.parametrize("protocol", range(6))
def test_nothing_is_unpickled(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, protocol: int) -> None:
    monkeypatch.chdir(tmp_path)
    for value in (Evil(), ("a", Evil()), ["a"], b"a", 1, None, ("a", "b")):
        with pytest.raises(UnreadableTests):
            string_of_pickle(pickle.dumps(value, protocol))
    assert list(tmp_path.iterdir()) == []
    assert string_of_pickle(pickle.dumps("für\n" * 3, protocol)) == "für\n" * 3


@given(st.binary(max_size=60))
def test_no_bytes_do_harm(data: bytes) -> None:
    try:
        string_of_pickle(data)
    except UnreadableTests:
        return
    assert data.endswith(b".") or b"." in data


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evolve.livecodebench.MAX_PRIVATE_BYTES", 1 << 20)
    with pytest.raises(UnreadableTests, match="more than 1 MiB"):
        unpack(packed("a" * (2 << 20)))
    with pytest.raises(UnreadableTests, match="cut off"):
        unpack(base64.b64encode(zlib.compress(pickle.dumps("abc" * 99))[:-8]).decode())
    bomb = b"\x80\x04" + b"r\xff\xff\xff\x7f" + b"X\x01\x00\x00\x00a" + b"."  # a memo of 2^31 places
    assert string_of_pickle(bomb) == "a"


def test_deep_json_is_refused() -> None:
    with pytest.raises(UnreadableTests, match="not JSON"):
        read_tests("[" * 200_000)


def test_a_file_is_a_suite(tmp_path: Path) -> None:
    path = tmp_path / "test5.jsonl"
    path.write_text("\n".join(json.dumps(r) for r in (record(), FUNCTIONAL, record(question_id="b", contest_date="?"))))
    suite = load_suite(path)
    assert [task.name for task in suite.tasks] == ["abc1_a", "2828"]
    assert [item.name for item in suite.skipped] == ["b"]
