"""The selection study: what it compares, what it stores, and that it goes on where it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.selection_study import METHODS, figures, identity, parser, summarise
from benchmarks.studies import Study, carry_out, read_runs
from evolve.program import Reply, Usage
from evolve.request import Request
from evolve.task import TestsTask

BODIES = ("return -x", "return x", "return 0", "return -x if x < 0 else x")


class Model:
    """One body after the other; counts what it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def complete(self, request: Request) -> Reply:
        self.asked += 1
        text = f"```python\ndef f(x):\n    {BODIES[request.iteration % 4]}\n```"
        return Reply(texts=(text,), finished=(True,), usage=Usage(calls=1, completion_tokens=7))


def study(**changes: Any) -> Study:
    body = {
        "name": "absolute",
        "statement": "Return the absolute value.",
        "entry_point": "f",
        "tests": [{"args": [value], "expected": abs(value)} for value in (-2, 3)],
    }
    values: dict[str, Any] = {
        "methods": {name: METHODS[name] for name in ("elite", "sample")},
        "tasks": (TestsTask.model_validate(body),),
        "seeds": (0,),
        "iterations": 4,
        "base": {},
        "identity": "toy",
    }
    return Study(**(values | changes))


async def test_a_study_is_carried_out_once_and_summed_up(tmp_path: Path) -> None:
    plan, model = study(), Model()
    assert len(plan.missing(tmp_path)) == 2
    with pytest.raises(FileNotFoundError):
        read_runs(plan, tmp_path)
    await carry_out(plan, model, None, tmp_path, runs_at_once=2, jails=1)
    assert model.asked == 6  # solved by the third iteration, twice
    await carry_out(plan, model, None, tmp_path, runs_at_once=2, jails=1)
    assert model.asked == 6
    assert not plan.missing(tmp_path)
    summary = summarise(read_runs(plan, tmp_path), 4)
    assert summary["elite"]["solved_at_t"] == [0, 0, 0, 1, 1]
    assert summary["elite"]["best"] == [1.0, 1.0, 1.0]
    assert summary["sample"]["tokens"] == 21
    assert summary["sample"]["difference"]["solved"] == [0.0, 0.0, 0.0]
    named = {figure.name: figure.value for figure in figures(summary)}
    assert named["sample_solved"] == named["sample_best_at_t_low"] == 1.0
    assert json.dumps(summary)


def test_methods_are_compared_over_the_same_problems() -> None:
    def run(task: str, seed: int, solved_at: int | None, best: float) -> dict[str, Any]:
        figures = dict.fromkeys(("coverage", "diversity", "qd_score", "edit_success"), 0.5)
        spent = {"tokens": [0, 7], "evaluations": 1, "tests": 2}
        return {"task": task, "seed": seed, "solved_at": solved_at, "best": [0.0, best], "figures": figures} | spent

    first = [run("easy", 0, 1, 1.0), run("easy", 1, 1, 1.0), run("hard", 0, None, 0.2), run("hard", 1, None, 0.2)]
    other = [run("easy", 0, None, 0.9), run("easy", 1, 1, 1.0), run("hard", 0, None, 0.15), run("hard", 1, None, 0.15)]
    row = summarise({"mixed": first, "sample": other}, 1)["sample"]
    assert row["solved"][0] == 0.25
    assert row["difference"]["solved"] == [-0.25, -0.5, 0.0]  # a problem's seeds are averaged
    assert row["difference"]["best"] == [-0.05, -0.05, -0.05]  # apart by as much in both, however hard they are


def test_a_stored_run_counts_only_where_it_would_be_the_same() -> None:
    plan = study()
    keys = {study(**changes).key("elite", plan.tasks[0], 0) for changes in ({}, {"iterations": 5}, {"identity": "b"})}
    keys |= {plan.key("sample", plan.tasks[0], 0), plan.key("elite", plan.tasks[0], 1)}
    assert len(keys) == 5
    assert study().key("elite", plan.tasks[0], 0) in keys


def test_every_method_has_a_configuration() -> None:
    plan = study(methods=METHODS)
    assert len({plan.config(method).model_dump_json() for method in METHODS}) == len(METHODS)
    arguments = parser().parse_args(["--endpoint", "http://127.0.0.1:1/v1", "--methods", "lexicase", "dirichlet"])
    assert arguments.methods == ["lexicase", "dirichlet"]
    with pytest.raises(SystemExit, match="give --model"):
        identity(arguments)
    shipped = parser().parse_args(["--checkpoint", "checkpoints/minicode-vpo"])
    assert identity(shipped) != identity(parser().parse_args(["--checkpoint", "checkpoints/minicode-grpo"]))
