"""The claim's benchmark: which problems it takes, what it compares and what it says of it."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from benchmarks.claim import (
    METHODS,
    choose_problems,
    comparison,
    held_out,
    main,
    make_arm,
    parser,
    screening,
    write_problems,
)
from benchmarks.claim_report import CSV_FIELDS, figures, print_table, summarise, write_csv, write_png
from evolve.task import load_suite

CHECKPOINTS = Path("checkpoints")


def run(task: str, solved_at: int | None, best: list[float], *, seed: int = 0) -> dict[str, Any]:
    """A stored run, which ended after ``len(best) - 1`` iterations."""
    return {
        "task": task,
        "seed": seed,
        "solved_at": solved_at,
        "best": best,
        "coverage": best,
        "tokens": [10 * t for t in range(len(best))],
        "evaluated": [3 * t for t in range(len(best))],
    }


RUNS = {
    "grpo": {
        "evolve": [run("a", None, [0.0, 0.5, 0.5]), run("b", None, [0.0, 0.0, 0.5])],
        "sample": [run("a", None, [0.0, 0.5, 0.5]), run("b", None, [0.0, 0.0, 0.0])],
    },
    "vpo": {
        "evolve": [run("a", 1, [0.0, 1.0]), run("b", None, [0.0, 0.5, 0.5])],
        "sample": [run("a", None, [0.0, 0.5, 0.5]), run("b", None, [0.0, 0.0, 0.5])],
    },
}


def test_curves_totals_and_differences_of_runs() -> None:
    claim = summarise(RUNS, 2)
    vpo = next(row for row in claim["series"] if (row["arm"], row["method"]) == ("vpo", "evolve"))
    assert vpo["solved"] == [0, 1, 1]
    assert vpo["tokens"] == [0, 20, 30]
    assert vpo["evaluations"] == [0, 6, 9]
    assert vpo["curves"]["pass_at_t"]["mean"] == [0.0, 0.5, 0.5]
    assert vpo["curves"]["best_at_t"]["mean"] == [0.0, 0.75, 0.75]
    assert vpo["curves"]["best_at_t"]["low"][-1] == 0.5
    differences = {f"{row['of']} - {row['minus']}": row for row in claim["differences"]}
    assert list(differences) == [
        "grpo evolve - grpo sample",
        "vpo evolve - vpo sample",
        "vpo evolve - grpo evolve",
        "vpo sample - grpo sample",
    ]
    assert differences["vpo evolve - grpo evolve"]["best_at_t"] == [0.25, 0.0, 0.5]


def test_seeds_of_one_problem_are_not_independent() -> None:
    runs = [run("a", 1, [0.0, 1.0], seed=seed) for seed in range(50)] + [run("b", None, [0.0, 0.0])]
    row = summarise({"vpo": {"evolve": runs}}, 1)["series"][0]
    assert row["curves"]["pass_at_t"]["mean"][-1] == 0.5
    assert row["curves"]["pass_at_t"]["low"][-1] == 0.0


def test_the_report_in_every_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claim = summarise(RUNS, 2)
    named = {figure.name: figure for figure in figures(claim)}
    assert named["vpo_evolve_pass_at_t"].value == 0.5
    assert named["vpo_evolve_best_at_t"].ratio == 1.5
    assert named["grpo_sample_solved"].value == 0.0
    print_table(claim)
    assert "1 of 2" in capsys.readouterr().out
    write_csv(claim, tmp_path / "claim.csv")
    with (tmp_path / "claim.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 * 3
    assert tuple(rows[0]) == CSV_FIELDS
    write_png(claim, tmp_path / "claim.png")
    assert (tmp_path / "claim.png").read_bytes().startswith(b"\x89PNG")


def test_every_arm_makes_as_many_answers_and_screens_with_a_seed_of_its_own() -> None:
    arguments = parser().parse_args(["--problems", "2", "--seeds", "2"])
    arms = [make_arm(name, CHECKPOINTS, dict(arguments.answers).get(name)) for name in arguments.arms]
    tasks = held_out(2, arguments.suite_seed)
    for arm in arms:
        study = comparison(arm, tasks, arguments)
        assert study.config("evolve").samples * arm.manifest.chain.m == 3
        assert set(study.methods) == set(METHODS)
        screened = screening(arm, tasks, arguments.evaluations)
        assert screened.iterations * 3 == 30
        assert not set(screened.seeds) & set(study.seeds)
    assert arms[0].manifest.chain.m == 1
    assert len({arm.identity for arm in arms}) == 3
    with pytest.raises(SystemExit, match="no multiple"):
        arms[-1].samples(4)


async def test_problems_that_an_arm_solves_are_left_out(tmp_path: Path) -> None:
    arguments = parser().parse_args(["--pool", "3", "--problems", "1", "--output", str(tmp_path), "--arms", "vpo"])
    arm = make_arm("vpo", CHECKPOINTS, None)
    tasks = held_out(3, arguments.suite_seed)
    study = screening(arm, tasks, arguments.evaluations)
    (tmp_path / "runs").mkdir()
    for task, solved_at in zip(tasks, ("4", "null", "null"), strict=True):  # nothing is missing: no model is needed
        path = tmp_path / "runs" / study.key("sample", task, study.seeds[0])
        path.write_text(f'{{"solved_at": {solved_at}}}', encoding="utf-8")
    assert await choose_problems([arm], arguments) == tasks[1:2]
    arguments.problems = 3
    with pytest.raises(SystemExit, match="raise --pool"):
        await choose_problems([arm], arguments)


def test_the_chosen_problems_are_a_suite_of_the_same_tasks(tmp_path: Path) -> None:
    tasks = held_out(2, 4000)
    write_problems(tasks, tmp_path / "runs" / "suite.json")
    assert load_suite(tmp_path / "runs" / "suite.json").tasks == tasks


def test_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["claim"])
    main()
    assert "--iterations" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        parser().parse_args(["--answers", "base"])
