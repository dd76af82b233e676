"""Studies of the search: methods x tasks x seeds as real runs, each kept as one file, and what comes of them.

A method is search settings under a name. A run in progress is a journal, so that a study which is interrupted, at
whatever moment, goes on where it was; a finished one is a JSON file, whose name has a digest of what it depends on.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolve.cascade import search_evaluator
from evolve.config import SearchConfig
from evolve.driver import MemoryStore, run_search
from evolve.history import trace
from evolve.journal import JournalStore
from evolve.manifest import MANIFEST_NAME, Manifest
from evolve.metrics import Interval
from evolve.models import ModelClient, OpenAIModel
from evolve.search import Search
from evolve.task import OpenEvolveTask, TestsTask
from sandbox.runner import Sandbox
from service.model_server import ModelServer

AnyTask = TestsTask | OpenEvolveTask
Floats = NDArray[np.float64]
Run = dict[str, Any]
"""A finished run, as :func:`run_one` describes it."""
CURVES = ("pass_at_t", "best_at_t", "coverage_at_t")


@dataclass(frozen=True, kw_only=True, slots=True)
class Study:
    """What is compared. methods: search settings by name. base: those of every method. identity: what else a stored run
    depends on (the model)."""

    methods: Mapping[str, Mapping[str, Any]]
    tasks: tuple[AnyTask, ...]
    seeds: tuple[int, ...]
    iterations: int
    base: Mapping[str, Any]
    identity: str

    def config(self, method: str) -> SearchConfig:
        return SearchConfig.model_validate({**self.base, **self.methods[method]})

    def key(self, method: str, task: AnyTask, seed: int) -> str:
        """The name of a run's file: equal exactly where the run would be the same."""
        content = [self.identity, task.model_dump_json(), self.config(method).model_dump_json(), self.iterations, seed]
        digest = hashlib.blake2b(json.dumps(content).encode(), digest_size=8).hexdigest()
        return f"{method}-{seed}-{digest}.json"

    def missing(self, output: Path) -> list[tuple[str, AnyTask, int]]:
        """Method, task and seed of every run that is not stored yet."""
        cases = [(method, task, seed) for seed in self.seeds for task in self.tasks for method in self.methods]
        return [case for case in cases if not (output / self.key(*case)).exists()]


async def carry_out(
    study: Study,
    model: ModelClient,
    manifest: Manifest | None,
    output: Path,
    *,
    runs_at_once: int,
    jails: int,
    label: str = "",
) -> None:
    """Make every run of the study that has no file yet. label: said before each run that ends."""
    gate = asyncio.Semaphore(runs_at_once)
    async with Sandbox(concurrency=jails) as sandbox, asyncio.TaskGroup() as group:

        async def one(method: str, task: AnyTask, seed: int) -> None:
            path = output / study.key(method, task, seed)
            async with gate:
                with JournalStore(path.with_suffix(".jsonl")) as store:
                    content = await run_one(study, method, task, seed, model, manifest, sandbox, store)
                part = path.with_suffix(".part")
                part.write_text(json.dumps(content), encoding="utf-8")
                part.replace(path)  # a file is a whole run or is not there
                path.with_suffix(".jsonl").unlink()
                best, solved = content["best"][-1], content["solved_at"]
                how = f"best {best:.3f}" if solved is None else f"solved in iteration {solved}"
                print(f"{label}{method} {task.name} seed {seed}: {how}", file=sys.stderr, flush=True)

        for case in study.missing(output):
            group.create_task(one(*case))


async def run_one(
    study: Study,
    method: str,
    task: AnyTask,
    seed: int,
    model: ModelClient,
    manifest: Manifest | None,
    sandbox: Sandbox,
    store: MemoryStore,
) -> dict[str, Any]:
    """One run, as it is stored. Lists have a value for each t = 0, 1, ..., and are totals by then."""
    config = study.config(method)
    await run_search(
        Search(task, config, seed=seed, manifest=manifest),
        model=model,
        evaluator=search_evaluator(task, config, sandbox),
        store=store,
        iterations=study.iterations,
    )
    assert store.seed is not None
    run = trace(store.seed, store.records, archive=config.archive)
    return {
        "method": method,
        "task": task.name,
        "seed": seed,
        "solved_at": run.solved_at,
        "best": run.best.tolist(),
        "coverage": _coverage_by_t(store),
        "tokens": run.spent["tokens"].tolist(),
        "evaluated": run.spent["evaluations"].tolist(),
        "figures": run.figures,
        "evaluations": int(run.spent["evaluations"][-1]),
        "tests": int(run.spent["tests"][-1]),
    }


def _coverage_by_t(store: MemoryStore) -> list[float]:
    """Share of the components that some program has fulfilled by each t."""
    assert store.seed is not None
    fulfilled: set[str] = set()
    shares = []
    for programs in ([store.seed], *(record.programs for record in store.records)):
        for program in programs:
            pairs = zip(program.evaluation.components, program.evaluation.reward, strict=True)
            fulfilled |= {name for name, reward in pairs if reward >= 1.0 - 1e-9}
        shares.append(len(fulfilled) / len(store.seed.evaluation.components))
    return shares


def read_runs(study: Study, output: Path) -> dict[str, list[dict[str, Any]]]:
    """The stored runs by method, task by task. Raises ``FileNotFoundError`` where one is missing."""
    return {
        method: [
            json.loads((output / study.key(method, task, seed)).read_text(encoding="utf-8"))
            for task in study.tasks
            for seed in study.seeds
        ]
        for method in study.methods
    }


def upto(values: Sequence[float], horizon: int) -> list[float]:
    """A run's curve for t = 0..horizon: one that ended early keeps its last value."""
    return [*values, *[values[-1]] * (horizon + 1 - len(values))][: horizon + 1]


def passed(run: Run, horizon: int) -> list[float]:
    """Whether a run had solved its task by each t = 0..horizon, as 0 or 1."""
    return [float(run["solved_at"] is not None and t >= run["solved_at"]) for t in range(horizon + 1)]


_VALUES: dict[str, Callable[[Run, int], Sequence[float]]] = {
    "pass_at_t": passed,
    "best_at_t": lambda run, horizon: upto(run["best"], horizon),
    "coverage_at_t": lambda run, horizon: upto(run["coverage"], horizon),
}


def problem_table(runs: Sequence[Run], curve: str, horizon: int) -> Floats:
    """A curve of every problem, seeds averaged; shape (problems, horizon + 1), each in [0, 1]."""
    by_problem: dict[str, list[Sequence[float]]] = {}
    for run in runs:
        by_problem.setdefault(run["task"], []).append(_VALUES[curve](run, horizon))
    return np.array([np.mean(values, axis=0) for values in by_problem.values()])


def listed(interval: Interval) -> list[float]:
    """``[mean, low, high]``, for JSON."""
    return [round(value, 4) for value in (interval.mean, interval.low, interval.high)]


@asynccontextmanager
async def serve_checkpoint(checkpoint: Path) -> AsyncIterator[tuple[OpenAIModel, Manifest]]:
    """A checkpoint behind a vLLM server, and its manifest."""
    async with ModelServer(checkpoint) as server, OpenAIModel(server.url, server.name) as model:
        yield model, server.manifest


def checkpoint_identity(checkpoint: Path) -> str:
    """A digest of a checkpoint's weights and manifest. Raises ``SystemExit`` where it has none."""
    files = sorted([*checkpoint.glob("*.safetensors"), checkpoint / MANIFEST_NAME])
    if len(files) < 2 or not files[-1].exists():
        raise SystemExit(f"{checkpoint} is no checkpoint: it lacks {MANIFEST_NAME} or its weights (*.safetensors)")
    digest = hashlib.blake2b(digest_size=16)
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()
