"""The command that runs other people's tasks, on folders made here."""

from __future__ import annotations

from pathlib import Path

from benchmarks.galapagos import evaluate_all, figures, task_folders


async def test_every_state_of_a_task(tmp_path: Path) -> None:
    evaluators = {
        "fine": "def evaluate(path):\n    return {'combined_score': 0.5}\n",
        "broken": "def evaluate(path):\n    return {'combined_score': 1 / 0}\n",
        "outside": "def evaluate(path):\n    return {'combined_score': 0.0, 'error': 'judge server not reachable'}\n",
        "heavy": "def evaluate(path):\n    return {'combined_score': 0.5}\n",
        "odd": "def score(path):\n    return 1\n",
    }
    for name, evaluator in evaluators.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "evaluator.py").write_text(evaluator)
        (folder / "initial_program.py").write_text("x = 1\n")
        (folder / "config.yaml").write_text("type: default\nchecker: chk.cc\n")
    (tmp_path / "heavy" / "card.yaml").write_text("library: [no-such-package]\n")
    outcomes = {outcome.task: outcome for outcome in await evaluate_all(task_folders(tmp_path), 20.0)}
    assert {name: outcome.state for name, outcome in outcomes.items()} == {
        "fine": "passed",
        "broken": "failed",
        "outside": "lacks something outside",
        "heavy": "lacks a package",
        "odd": "unreadable",
    }
    assert "ZeroDivisionError" in outcomes["broken"].detail
    assert "defines no function evaluate" in outcomes["odd"].detail
    rate = figures(list(outcomes.values()))[0]
    assert (rate.name, rate.value) == ("galapagos_pass_rate", 50.0)
