"""What an iteration of the search costs beside the model and the evaluator, side by side with OpenEvolve.

    python -m benchmarks.evolve --markdown    # the table of docs/benchmarks.md; --json for machines

Both sides run the same task folder against a model on loopback that answers at once, judged by the same trivial
evaluator, with their own defaults otherwise, each in a process of its own; ``openevolve`` lives in an environment that
is made for it in the user's cache folder. Figures are CPU time of all processes of a side (imports and the stub model
are not counted), so that other work on the machine hardly matters; only ``iterations_per_s`` is wall time.

- ``cpu_ms_per_iteration_N``: a run of N iterations by its CPU time, keeping included: ours appends to a journal
  (:class:`evolve.journal.JournalStore`), theirs writes a snapshot every 100 iterations. ``_jailed``: ours with every
  candidate in a jail; theirs never has one.
- ``select_insert_ms_N``: a parent and five inspirations chosen and a child inserted, with N programs in the population.
- ``hand_over_ms_N``: the same, with what OpenEvolve does beside for every iteration: copy the population to a worker.
- ``storing_ms_10k``: keeping one more iteration after 10,000; theirs is one snapshot. ``storing_files_10k``: files.
- ``peak_rss_mb_10k``: ours of a run of 10,000 iterations; theirs of a population of 10,000 and a snapshot alone.
- ``iterations_per_s_at_1s_latency``: of one run in one process, with a model that takes one second.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, run
from benchmarks.peers import interpreter_with
from benchmarks.stub_model import program, stub_model

PEER = "openevolve 0.4.0"
ROUNDS = {200: 4, 1000: 1}  # by number of iterations; other work on the machine costs short runs the most
IN_FLIGHT = 128
_ROOT = Path(__file__).parents[1]
_SIZES = ("10", "1000", "10000", "100000")

EVALUATOR = '''"""Scores that differ from program to program, at hardly any cost."""

import zlib


def evaluate(path):
    with open(path) as file:
        value = zlib.crc32(file.read().encode())
    return {"combined_score": value % 997 / 1000, "first": value % 2, "second": value // 2 % 2, "third": value // 4 % 2}
'''
CONFIG = """max_iterations: 1000
diff_based_evolution: false
llm:
  models:
    - name: stub
      weight: 1.0
evaluator:
  cascade_evaluation: false
"""


def measure() -> list[Figure]:
    """Every figure of the search."""
    peer = interpreter_with("openevolve==0.4.0", module="openevolve")
    with task_folder() as folder, stub_model() as url:
        runs = list(_runs(peer, folder, url))
        long = ours("search", folder, url, "10000", "1", "bare")
    theirs = _as_numbers(openevolve(peer, "population", "10", "1000", "10000"))
    mine = ours("select_insert", *_SIZES)
    with task_folder() as folder, stub_model(latency_s=1.0) as url:
        waiting = ours("search", folder, url, str(8 * IN_FLIGHT), str(IN_FLIGHT), "bare")
    rate = waiting["programs"] / waiting["wall_s"]
    at_10k = theirs["10000"]
    return [
        *runs,
        *population_figures(mine, theirs),
        _figure("storing_ms_10k", long["storing_ms"], "ms", f"one snapshot of {PEER}", at_10k["save_ms"]),
        _figure("storing_files_10k", long["files"], "files", f"one snapshot of {PEER}", at_10k["files"]),
        Figure(name="stored_kb_per_iteration", value=long["stored_kb"], unit="KiB"),
        _figure("peak_rss_mb_10k", long["peak_rss_mb"], "MiB", f"a population in {PEER}", at_10k["peak_rss_mb"]),
        Figure(name="cpu_ms_per_iteration_10k", value=long["cpu_s"] / 10_000 * 1000, unit="ms"),
        Figure(name="iterations_per_s_at_1s_latency", value=rate, unit="1/s"),
    ]


def _runs(peer: str, folder: str, url: str) -> Iterator[Figure]:
    """CPU time per iteration of the cheapest of a few rounds, the sides taking turns; then ours with a jail."""
    theirs = 0.0
    for iterations, rounds in ROUNDS.items():
        length = str(iterations)
        pairs = [
            (ours("search", folder, url, length, "1", "bare"), openevolve(peer, "search", folder, url, length))
            for _ in range(rounds)
        ]
        mine, theirs = (min(run["cpu_s"] for run in column) / iterations * 1000 for column in zip(*pairs, strict=True))
        yield _figure(f"cpu_ms_per_iteration_{iterations}", mine, "ms", PEER, theirs)
    jailed = ours("search", folder, url, "1000", "1", "jailed")["cpu_s"]  # s per 1,000 iterations
    yield _figure("cpu_ms_per_iteration_1000_jailed", jailed, "ms", f"{PEER}, no jail", theirs)


def population_figures(mine: dict[str, float], theirs: dict[str, dict[str, float]]) -> Iterator[Figure]:
    """Selecting and inserting by size; theirs where they were measured."""
    for size in _SIZES:
        label, cost, there = _label(size), mine[size], theirs.get(size)
        sampled = there["select_insert_ms"] if there else None
        yield _figure(f"select_insert_ms_{label}", cost, "ms", PEER if there else None, sampled)
    for size, there in theirs.items():
        together = there["select_insert_ms"] + there["hand_over_ms"]
        yield _figure(f"hand_over_ms_{_label(size)}", mine[size], "ms", PEER, together)


def _label(size: str) -> str:
    return f"{size[:-3]}k" if size.endswith("000") else size


def ours(name: str, *arguments: str) -> dict[str, float]:
    """A function of :mod:`benchmarks.evolve_ours`, in a process of its own."""
    found: dict[str, float] = _call(sys.executable, "evolve_ours", name, *arguments)
    return found


def openevolve(peer: str, name: str, *arguments: str) -> dict[str, Any]:
    """A function of :mod:`benchmarks.evolve_openevolve`, under the interpreter ``peer``."""
    return _call(peer, "evolve_openevolve", name, *arguments)


def _call(python: str, module: str, *arguments: str) -> Any:
    argv = [python, "-c", f"from benchmarks.{module} import main; main()", *arguments]
    done = subprocess.run(argv, cwd=_ROOT, env=_environment(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{module} {' '.join(arguments[:1])} failed: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def _environment() -> dict[str, str]:
    """This process's environment without keys, proxies and Python settings: nothing is to leave the machine."""
    foreign = ("PYTHON", "OPENAI", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(foreign)}
    return kept | {"OMP_NUM_THREADS": "1", "NO_PROXY": "127.0.0.1"}


@contextmanager
def task_folder() -> Iterator[str]:
    """The task of both sides, in OpenEvolve's format."""
    with tempfile.TemporaryDirectory(prefix="vpo-benchmark-") as where:
        files = {"initial_program.py": program(0), "evaluator.py": EVALUATOR, "config.yaml": CONFIG}
        for name, text in files.items():
            (Path(where) / name).write_text(text, encoding="utf-8")
        yield where


def _figure(name: str, value: float, unit: str, peer: str | None, peer_value: float | None) -> Figure:
    return Figure(name=name, value=value, unit=unit, peer=peer, peer_value=peer_value)


def _as_numbers(found: dict[str, Any]) -> dict[str, dict[str, float]]:
    return {size: {name: float(value) for name, value in row.items()} for size, row in found.items()}


if __name__ == "__main__":
    run("search: what an iteration costs beside the model", measure)
