"""Curves as table, CSV and PNG."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from evolve.files import join_files
from service.cli.report import CSV_FIELDS, checkpoints, rejection_lines, summary_table, write_best, write_csv, write_png
from service.curves import RunHistory, arm_curve
from service.outcome import Outcome
from service.schemas import Curve, RunState, RunStatus

SOLVED = RunHistory(over=True, solved_at=2, best=[0.0, 0.5, 1.0], evaluations=[0, 3, 3], tokens=[0, 10, 20])
OPEN = RunHistory(over=False, best=[0.25, 0.25], evaluations=[0, 3], tokens=[0, 10])


def curve() -> Curve:
    arms = [arm_curve("a/b", [SOLVED, OPEN], 4), arm_curve("c", [], 4)]
    return Curve(search="1", status=RunStatus.RUNNING, iterations=4, arms=arms)


def test_a_solved_run_keeps_its_best_and_an_open_one_bounds_what_is_complete() -> None:
    found = arm_curve("a", [SOLVED, OPEN], 4)
    assert found.solved == [0, 0, 1, 1, 1]
    assert found.pass_at_t == [0, 0, 0.5, 0.5, 0.5]
    assert found.best_at_t == [0.125, 0.375, 0.625, 0.625, 0.625]
    assert found.evaluations == [0, 6, 9, 9, 9]
    assert found.tokens == [0, 20, 40, 40, 40]
    assert found.complete_to == 1


def test_the_csv_has_a_row_per_arm_and_iteration(tmp_path: Path) -> None:
    write_csv(curve(), tmp_path / "deep" / "curve.csv")
    with (tmp_path / "deep" / "curve.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == CSV_FIELDS
    assert len(rows) == 10
    assert rows[2] == {
        "arm": "a/b", "t": "2", "runs": "2", "solved": "1", "pass_at_t": "0.5", "best_at_t": "0.625",
        "evaluations": "9", "tokens": "40",
    }  # fmt: skip


def test_the_picture_is_a_picture(tmp_path: Path) -> None:
    write_png(curve(), tmp_path / "curve.png", title="a title")
    content = (tmp_path / "curve.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) > 10_000


def test_the_table_says_what_was_solved() -> None:
    console = Console(width=80, force_terminal=False)
    with console.capture() as capture:
        console.print(summary_table(curve()))
    assert "1 of 2" in capture.get()
    assert "0.625" in capture.get()


def test_long_names_of_arms_stay_distinct_in_a_narrow_table() -> None:
    arms = [
        arm_curve(name, [replace(SOLVED, tokens=[0, 10, 1_000_000])], 200) for name in ("minicode-grpo", "minicode-vpo")
    ]
    console = Console(width=80, force_terminal=False)
    with console.capture() as capture:
        console.print(summary_table(Curve(search="1", status=RunStatus.DONE, iterations=200, arms=arms)))
    assert "minicode-grpo" in capture.get()
    assert "minicode-vpo" in capture.get()


@pytest.mark.parametrize(
    ("horizon", "points"), [(0, [0]), (1, [1]), (5, [1, 2, 5]), (50, [10, 20, 50]), (200, [50, 100, 200])]
)
def test_a_few_points_stand_for_the_curve(horizon: int, points: list[int]) -> None:
    assert checkpoints(horizon)[-len(points) :] == points
    assert len(checkpoints(horizon)) <= 3


def test_what_became_of_answers_is_told_by_arm() -> None:
    rejected = {"a/b": Counter(known=2, unparsable=3), "c": Counter()}
    lines = rejection_lines(Outcome(curve=curve(), runs=[], rejected=rejected))
    assert lines == ["answers of a/b: 9 judged, 3 unparsable, 2 known", "answers of c: 0 judged"]


def test_best_programs_get_safe_file_names(tmp_path: Path) -> None:
    run = RunState(
        id="7", arm="../x", task="HumanEval/0", seed=3, status=RunStatus.DONE, iteration=1, best=1.0, solved_at=1,
        evaluations=1, calls=1, lost_calls=0, prompt_tokens=1, completion_tokens=1, tokens=2, error=None,
        started_at=None, finished_at=None,
    )  # fmt: skip
    write_best(Outcome(curve=curve(), runs=[run], best={"7": "pass\n"}), tmp_path)
    (written,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert written.relative_to(tmp_path).as_posix() == "_x/HumanEval_0-s3.py"
    assert written.read_text() == "pass\n"
    write_best(Outcome(curve=curve(), runs=[run], best={"7": join_files({"lib/b.py": "x\n"})}), tmp_path, [""])
    assert (tmp_path / "_x" / "HumanEval_0-s3" / "lib" / "b.py").read_text() == "x\n"
    write_best(Outcome(curve=curve(), runs=[run], best={"7": join_files({"lib": "y\n"})}), tmp_path, [""])
    assert [path.name for path in (tmp_path / "_x" / "HumanEval_0-s3").rglob("*")] == ["lib"]
