"""``vpo suite check`` on the shipped example."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from service.cli import make_app

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_suite_is_checked_and_described() -> None:
    done = CliRunner().invoke(make_app("suite"), ["suite", "check", str(EXAMPLES / "tests"), "--runs", "1", "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert (document["name"], len(document["digest"])) == ("tests", 32)
    assert [task["task"] for task in document["tasks"]] == ["balanced_brackets"]
    assert document["tasks"][0]["fine"]
    assert document["skipped"] == []


def test_what_is_no_suite_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(make_app("suite"), ["suite", "check", str(tmp_path)])
    assert done.exit_code == 2
    assert "holds no tasks" in done.output


def test_a_reference_that_fails_is_an_error(tmp_path: Path) -> None:
    record = {"task_id": 1, "text": "Add one.", "code": "def f(x):\n    return x", "test_list": ["assert f(1) == 2"]}
    path = tmp_path / "mbpp.jsonl"
    path.write_text(json.dumps(record))
    done = CliRunner().invoke(make_app("suite"), ["suite", "check", str(path), "--runs", "1"])
    assert done.exit_code == 1
    assert "MBPP/1: the reference fails t0" in done.output.replace("\n", " ")
    assert "references that pass" in done.output
