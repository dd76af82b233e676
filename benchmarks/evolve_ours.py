"""What :mod:`benchmarks.evolve` measures of this project: each function in a process of its own, called by name.

The functions print one JSON object. CPU time is that of the process and of its children; imports do not count.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.stub_model import program
from benchmarks.usage import cpu_seconds, peak_rss_mb
from evolve.archive import make_archive
from evolve.config import ArchiveConfig, SearchConfig, SelectionConfig
from evolve.driver import MemoryStore, run_search
from evolve.evaluator import Evaluator, component_names, evaluation_of_metrics, make_evaluator
from evolve.journal import JournalStore
from evolve.models import OpenAIModel
from evolve.program import Evaluation, IterationRecord, Program
from evolve.randomness import generator
from evolve.search import Search
from evolve.selection import select_inspirations, select_parent
from evolve.task import OpenEvolveTask, load_task
from sandbox import Sandbox
from sandbox.cases import EvaluatorResult
from sandbox.verdict import Status, Verdict

COMPONENTS = tuple(f"t{i}" for i in range(16))
_INSPIRATIONS = 5  # as many as OpenEvolve draws for an iteration


class HereEvaluator:
    """Runs the task's evaluator in this process, without any isolation, as OpenEvolve does in its workers."""

    def __init__(self, task: OpenEvolveTask) -> None:
        self._task, self._components = task, task.components
        self._folder = tempfile.TemporaryDirectory(prefix="vpo-benchmark-")
        source = Path(self._folder.name) / "evaluator.py"
        source.write_text(task.files["evaluator.py"], encoding="utf-8")
        spec = importlib.util.spec_from_file_location("benchmark_evaluator", source)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self._evaluate: Callable[[str], dict[str, float]] = module.evaluate

    async def evaluate(self, source: str) -> Evaluation:
        with tempfile.NamedTemporaryFile("w", suffix=".py", encoding="utf-8") as file:  # a new one each time, as there
            file.write(source)
            file.flush()
            metrics = self._evaluate(file.name)
        if not self._components:
            self._components = component_names(self._task, metrics)
        return evaluation_of_metrics(
            self._task,
            self._components,
            EvaluatorResult(verdict=Verdict(name="evaluator", status=Status.PASSED), metrics=metrics),
        )

    def close(self) -> None:
        self._folder.cleanup()


def search(folder: str, url: str, iterations: str, lag: str, jailed: str) -> dict[str, float]:
    """A whole run against a model server, kept in a journal."""
    return asyncio.run(_search(Path(folder), url, int(iterations), int(lag), jailed=jailed == "jailed"))


async def _search(folder: Path, url: str, iterations: int, lag: int, *, jailed: bool) -> dict[str, float]:
    task = load_task(folder)
    assert isinstance(task, OpenEvolveTask)
    config = SearchConfig.model_validate({**task.search_settings(), "lag": lag, "stop_when_solved": False})
    with tempfile.TemporaryDirectory(prefix="vpo-benchmark-") as where:
        with JournalStore(Path(where) / "run.jsonl") as store:
            before, start = cpu_seconds(), time.perf_counter()
            async with OpenAIModel(url, "stub") as model:
                if jailed:
                    async with Sandbox(2) as sandbox:
                        await _run(task, config, model, make_evaluator(task, sandbox), store, iterations)
                else:
                    evaluator = HereEvaluator(task)
                    await _run(task, config, model, evaluator, store, iterations)
                    evaluator.close()
            found = {"cpu_s": cpu_seconds() - before, "wall_s": time.perf_counter() - start}
        found |= {"peak_rss_mb": peak_rss_mb(), "programs": sum(record.evaluations for record in store.records)}
        return found | await _storing(store, Path(where))


async def _run(
    task: OpenEvolveTask,
    config: SearchConfig,
    model: OpenAIModel,
    evaluator: Evaluator,
    store: MemoryStore,
    iterations: int,
) -> None:
    run = Search(task, config, seed=0)
    await run_search(run, model=model, evaluator=evaluator, store=store, iterations=iterations)


async def _storing(run: MemoryStore, where: Path) -> dict[str, float]:
    """What keeping the run's last tenth costs per iteration, in a journal that holds the rest already."""
    assert run.seed is not None
    tail = max(1, len(run.records) // 10)
    folder = where / "again"
    with JournalStore(folder / "run.jsonl") as store:
        await store.save_seed(run.seed)
        for record in run.records[:-tail]:
            await _save(store, record)
        before = cpu_seconds()
        for record in run.records[-tail:]:
            await _save(store, record)
        spent = cpu_seconds() - before
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    kilobytes = sum(sizes) / 1024 / (len(run.records) + 1)
    return {"storing_ms": spent / tail * 1000, "stored_kb": kilobytes, "files": float(len(sizes))}


async def _save(store: JournalStore, record: IterationRecord) -> None:
    await store.save_lost_calls(record.iteration, 1)
    if record.reply is not None:
        await store.save_reply(record.iteration, record.reply)
    await store.save_iteration(record)


def select_insert(*sizes: str) -> dict[str, float]:
    """Median CPU milliseconds to choose a parent with inspirations and insert a child, by number of programs seen."""
    archive = make_archive(ArchiveConfig(capacity=131_072))  # keeps what a bounded one would have dropped
    selection, rng = SelectionConfig(), random.Random(0)
    found: dict[str, float] = {}
    made = 0
    for size in map(int, sizes):
        while made < size:
            archive.insert(_random_program(made, rng))
            made += 1
        children = [_random_program(made + i, rng) for i in range(200)]
        costs = []
        for child in children:
            before = time.process_time()
            draws = generator(0, child.number, "benchmark")
            parent, _ = select_parent(archive, selection, draws)
            select_inspirations(archive, parent, _INSPIRATIONS, selection, draws)
            archive.insert(child)
            costs.append(time.process_time() - before)
        found[str(size)] = median(costs) * 1000
        made += len(children)
    return found


def _random_program(number: int, rng: random.Random) -> Program:
    source = program(number)
    reward = tuple(float(rng.random() < 0.5) for _ in COMPONENTS)
    scalar = sum(reward) / len(reward)
    evaluation = Evaluation(
        components=COMPONENTS,
        reward=reward,
        statuses=tuple(Status.PASSED if value else Status.WRONG for value in reward),
        messages=("",) * len(COMPONENTS),
        scalar=scalar,
        solved=False,
        metrics=dict(zip(COMPONENTS, reward, strict=True)) | {"combined_score": scalar},
    )
    return Program(
        number=number,
        iteration=number,
        index=0,
        island=0,
        parents=(),
        source=source,
        digest=f"{number:032x}",  # a true one costs more than all that is measured here
        operator="rewrite",
        evaluation=evaluation,
    )


def main() -> None:
    """``NAME ARGUMENT...`` on the command line: the function and its arguments."""
    functions: dict[str, Callable[..., dict[str, Any]]] = {"search": search, "select_insert": select_insert}
    print(json.dumps(functions[sys.argv[1]](*sys.argv[2:])))
