"""How many of other people's tasks run here unchanged: the 945 that open-galapagos bundles, in OpenEvolve's layout.

``python -m benchmarks.galapagos`` installs the package into an environment of its own, loads every task, and evaluates
the seed program of each whose card asks for no Python package that this environment lacks. A task *passes* when its
evaluator gives a finite metric for its seed program. Others are counted apart, never as passed: tasks that lack a
package, and tasks whose evaluator says that it needs something outside of the jail (a judge server, a data set, a GPU).
Every failure is printed with its reason. ``--only TEXT`` takes the tasks whose name contains it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Literal

import yaml
from rich.console import Console

from benchmarks.figures import Figure, machine
from benchmarks.peers import interpreter_with
from evolve.openevolve_task import OpenEvolveTask
from evolve.suite import TaskError, load_task
from sandbox.runner import Sandbox

REQUIREMENT = "open-galapagos==0.4.0"
_FIND = "import galapagos, pathlib; print(pathlib.Path(galapagos.__file__).parent / 'tasks')"
_OUTSIDE = re.compile(r"external|not reachable|not installed|no module named|hugging ?face|cuda|modal", re.IGNORECASE)
_SHOWN = 240

State = Literal["passed", "failed", "unreadable", "lacks a package", "lacks something outside"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of one task. detail: why it did not pass."""

    task: str
    state: State
    detail: str = ""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Load and evaluate the tasks that open-galapagos bundles.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--only", default="", metavar="TEXT", help="tasks whose name contains TEXT")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one evaluation")
    parser.add_argument("--tasks", type=Path, help="folder of task folders (default: the package's)")
    given = parser.parse_args()
    folders = [path for path in task_folders(given.tasks or bundled_tasks()) if given.only in path.name]
    outcomes = asyncio.run(evaluate_all(folders, given.timeout))
    if given.json:
        document = {"figures": [figure.as_json() for figure in figures(outcomes)], "machine": machine()}
        print(json.dumps(document | {"tasks": [asdict(outcome) for outcome in outcomes]}, indent=1))
    else:
        report(Console(), outcomes)


def bundled_tasks() -> Path:
    """The package's folder of tasks, installed first where need be. Raises :class:`RuntimeError`."""
    python = interpreter_with(REQUIREMENT, module="galapagos")
    return Path(subprocess.run([python, "-c", _FIND], capture_output=True, text=True, check=True).stdout.strip())


def task_folders(root: Path) -> list[Path]:
    """The folders below ``root`` that hold a task, by name."""
    return sorted(path.parent for path in root.rglob("evaluator.py"))


async def evaluate_all(folders: Sequence[Path], timeout_s: float) -> list[Outcome]:
    """The outcomes in order."""
    concurrency = os.cpu_count() or 2
    gate = asyncio.Semaphore(concurrency)
    async with Sandbox(concurrency=concurrency) as sandbox:

        async def one(folder: Path) -> Outcome:
            async with gate:
                outcome = await evaluate(folder, sandbox, timeout_s)
            print(f"{outcome.task}: {outcome.state} {outcome.detail}", file=sys.stderr, flush=True)
            return outcome

        return list(await asyncio.gather(*(one(folder) for folder in folders)))


async def evaluate(folder: Path, sandbox: Sandbox, timeout_s: float) -> Outcome:
    """Load one task and, where its packages are installed, judge its seed program."""
    try:
        task = load_task(folder)
    except TaskError as error:
        return Outcome(task=folder.name, state="unreadable", detail=str(error).removeprefix(f"{folder}: "))
    if not isinstance(task, OpenEvolveTask):
        return Outcome(task=folder.name, state="unreadable", detail="not in OpenEvolve's layout")
    missing = [name for name in packages(folder) if not _is_installed(name)]
    if missing:
        return Outcome(task=folder.name, state="lacks a package", detail=", ".join(missing))
    limits = {"wall_s": timeout_s, "cpu_s": timeout_s, "memory_mb": 4096.0}
    task = task.model_copy(update={"limits": limits})
    result = await sandbox.run_evaluator(
        task.candidate(task.seed_source), task.support_files, task.suffix, task.sandbox_limits, task.evaluator_settings
    )
    said = " ".join([result.verdict.message, *result.artifacts.values()])
    if result.verdict.passed and (any(result.metrics.values()) or not _OUTSIDE.search(said)):
        return Outcome(task=task.name, state="passed")
    state: State = "lacks something outside" if _OUTSIDE.search(said) else "failed"
    return Outcome(task=task.name, state=state, detail=" ".join(said.split())[:_SHOWN])


def packages(folder: Path) -> list[str]:
    """The Python packages that a task's card asks for."""
    card = folder / "card.yaml"
    read: Any = yaml.safe_load(card.read_text(encoding="utf-8")) if card.is_file() else {}
    return [str(name) for name in read.get("library") or ()]


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def figures(outcomes: Sequence[Outcome]) -> list[Figure]:
    """Counts, and the share of the evaluated tasks that pass, in percent."""
    states = Counter(outcome.state for outcome in outcomes)
    evaluated = states["passed"] + states["failed"]
    named = {state: f"galapagos_{state.replace(' ', '_')}" for state in states}
    counts = [Figure(name=named[state], value=count, unit="tasks") for state, count in sorted(states.items())]
    rate = Figure(name="galapagos_pass_rate", value=100 * states["passed"] / max(1, evaluated), unit="%")
    return [rate, Figure(name="galapagos_evaluated", value=evaluated, unit="tasks"), *counts]


def report(console: Console, outcomes: Sequence[Outcome]) -> None:
    """Print every figure, what is lacking by how many tasks, and each failure."""
    for figure in figures(outcomes):
        console.print(f"{figure.name}: {figure.value:.4g} {figure.unit}", markup=False, highlight=False)
    lacking = Counter(outcome.detail for outcome in outcomes if outcome.state == "lacks a package")
    for names, count in lacking.most_common():
        console.print(f"{count} tasks lack {names}", markup=False, highlight=False)
    for outcome in outcomes:
        if outcome.state in ("failed", "unreadable", "lacks something outside"):
            text = f"{outcome.state}: {outcome.task}: {outcome.detail}"
            console.print(text, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
