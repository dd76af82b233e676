"""The search's benchmark: the stub model, our side of it, and how the figures are put together."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from benchmarks.evolve import _environment, ours, population_figures, task_folder
from benchmarks.stub_model import program, stub_model
from evolve.program import source_digest
from evolve.task import load_task


def ask(url: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode())
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as response:
        found: dict[str, Any] = json.load(response)
    return found


def test_the_stub_model_never_gives_the_same_program_twice() -> None:
    with stub_model() as url:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/v1", url)
        answers = [ask(url, {"messages": [], "n": 2}) for _ in range(5)]
    texts = [choice["message"]["content"] for answer in answers for choice in answer["choices"]]
    assert len(set(texts)) == len(texts) == 10
    assert len({source_digest(program(number)) for number in range(100)}) == 100


def test_both_sides_are_given_a_task_that_loads() -> None:
    with task_folder() as folder:
        task = load_task(Path(folder))
    assert task.name
    assert task.seed_source == program(0)


@pytest.mark.parametrize("jail", ["bare", "jailed"])
def test_our_side_makes_its_iterations(jail: str) -> None:
    with task_folder() as folder, stub_model() as url:
        found = ours("search", folder, url, "6", "2", jail)
    assert found["programs"] == 6
    assert found["files"] == 1
    assert all(found[name] > 0 for name in ("cpu_s", "wall_s", "peak_rss_mb", "storing_ms", "stored_kb"))


def test_figures_have_a_peer_where_one_was_measured() -> None:
    mine = {"10": 0.1, "1000": 0.2, "10000": 0.3, "100000": 0.4}
    theirs = {"10": {"select_insert_ms": 1.0, "hand_over_ms": 2.0}}
    found = {figure.name: figure for figure in population_figures(mine, theirs)}
    assert list(found) == [*(f"select_insert_ms_{size}" for size in ("10", "1k", "10k", "100k")), "hand_over_ms_10"]
    assert found["select_insert_ms_10"].peer_value == 1.0
    assert found["select_insert_ms_100k"].peer is None
    assert found["hand_over_ms_10"].peer_value == 3.0


def test_no_key_and_no_proxy_reaches_the_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("https_proxy", "http://elsewhere.invalid")
    environment = _environment()
    assert not {"OPENAI_API_KEY", "https_proxy"} & environment.keys()
