"""The common output of the benchmarks."""

from __future__ import annotations

import json
import os
import socket
import sys

import pytest

from benchmarks import figures
from benchmarks.figures import Figure
from benchmarks.peers import interpreter_with


def test_a_ratio_is_the_value_by_its_peers() -> None:
    figure = Figure(name="tests_per_s", value=30.0, unit="1/s", peer="theirs", peer_value=6.0)

    assert figure.as_json() == {
        "name": "tests_per_s",
        "value": 30.0,
        "unit": "1/s",
        "peer": "theirs",
        "peer_value": 6.0,
        "ratio": 5.0,
    }


@pytest.mark.parametrize("peer_value", [None, 0.0])
def test_without_a_peer_there_is_no_ratio(peer_value: float | None) -> None:
    assert Figure(name="x", value=1.0, unit="s", peer_value=peer_value).ratio is None


def test_json_is_one_object(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark", "--json"])

    def measure() -> list[Figure]:
        print("{'train_loss': '0.1'}")  # as a peer does
        return [Figure(name="x", value=1.23456, unit="s")]

    figures.run("a benchmark", measure)

    output = capsys.readouterr()
    assert "train_loss" in output.err
    said = json.loads(output.out)
    assert [figure["value"] for figure in said["figures"]] == [1.235]
    assert said["machine"]["cores"] == len(os.sched_getaffinity(0))


def test_a_table_shows_every_figure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark"])

    figures.run("a benchmark", lambda: [Figure(name="x", value=1.0, unit="s"), Figure(name="y", value=2.0, unit="ms")])

    said = capsys.readouterr().out
    assert all(word in said for word in ("a benchmark", "x", "y", "ms", "python"))


def test_a_table_for_the_documentation(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark", "--markdown"])

    measured = [Figure(name="x", value=1.23456, unit="s"), Figure(name="y", value=2, unit="ms", peer="z", peer_value=4)]
    figures.run("a benchmark", lambda: measured)

    assert capsys.readouterr().out.splitlines() == [
        "| figure | value | unit | peer's value | ratio |",
        "| --- | --- | --- | --- | --- |",
        "| `x` | 1.235 | s |  |  |",
        "| `y` | 2.0 | ms | 4.0 | 0.5 |",
    ]


def test_the_machine_is_described_without_names_or_folders() -> None:
    said = json.dumps(figures.machine())

    assert socket.gethostname() not in said
    assert os.path.expanduser("~") not in said
    assert set(figures.machine()) > {"processor", "cores", "memory_gib", "kernel"}


def test_a_peer_that_is_installed_already_is_used() -> None:
    assert interpreter_with("pytest", module="pytest") == sys.executable
