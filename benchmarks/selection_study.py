"""Which way of choosing parents solves more: selection methods x problems x seeds, with real parts throughout.

    python -m benchmarks.selection_study --checkpoint checkpoints/minicode-vpo --json
    python -m benchmarks.selection_study --endpoint http://127.0.0.1:8000/v1 --manifest checkpoints/minicode-vpo

The checkpoint is served by vLLM (or the endpoint asked as it is), and every candidate is judged in the sandbox. All
methods share the archive, islands, prompts and budgets of the defaults and differ in selection alone; ``crossover``
(for models whose prompt can carry a second parent) adds that operator to complementary selection; ``sample`` is
repeated sampling without any population. Every finished run is one file under ``--output``: started again with the same
arguments, the study goes on where it was. Intervals are percentile bootstraps over runs, 95 %.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures import Figure, machine
from evolve.config import OperatorsConfig, SearchConfig, SelectionConfig
from evolve.driver import MemoryStore, run_search
from evolve.evaluator import make_evaluator
from evolve.history import trace
from evolve.manifest import MANIFEST_NAME, Manifest, read_manifest
from evolve.metrics import Interval, best_at_t, mean_interval, solved_by_t
from evolve.models import ModelClient, OpenAIModel
from evolve.search import Search
from evolve.task import OpenEvolveTask, TestsTask, load_suite
from sandbox.runner import Sandbox
from service.model_server import ModelServer

AnyTask = TestsTask | OpenEvolveTask

_CROSSOVER = {
    "selection": SelectionConfig.only("complement").model_dump(),
    "operators": OperatorsConfig(crossover=1.0).model_dump(),
}
METHODS: dict[str, dict[str, Any]] = {
    "mixed": {},
    "sample": {"strategy": "sample"},
    **{
        name: {"selection": SelectionConfig.only(name).model_dump()}
        for name in (
            "elite",
            "lexicase",
            "epsilon_lexicase",
            "downsampled_lexicase",
            "dirichlet",
            "complement",
            "pareto",
            "novelty",
        )
    },
    "crossover": _CROSSOVER,
}
"""Search settings by method; ``mixed`` is the default weighting of strategies."""
DEFAULT_METHODS = ("mixed", "sample", "elite", "lexicase", "dirichlet", "complement")


@dataclass(frozen=True, kw_only=True, slots=True)
class Study:
    """What is compared. base: search settings of every method. identity: what else a stored run depends on."""

    methods: tuple[str, ...]
    tasks: tuple[AnyTask, ...]
    seeds: tuple[int, ...]
    iterations: int
    base: dict[str, Any]
    identity: str

    def config(self, method: str) -> SearchConfig:
        return SearchConfig.model_validate({**self.base, **METHODS[method]})

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
    study: Study, model: ModelClient, manifest: Manifest | None, output: Path, *, runs_at_once: int, jails: int
) -> None:
    """Make every run of the study that has no file yet."""
    output.mkdir(parents=True, exist_ok=True)
    gate = asyncio.Semaphore(runs_at_once)
    async with Sandbox(concurrency=jails) as sandbox, asyncio.TaskGroup() as group:

        async def one(method: str, task: AnyTask, seed: int) -> None:
            async with gate:
                content = await run_one(study, method, task, seed, model, manifest, sandbox)
                path = output / study.key(method, task, seed)
                part = path.with_suffix(".part")
                part.write_text(json.dumps(content), encoding="utf-8")
                part.replace(path)  # a file is a whole run or is not there
                print(f"{method} {task.name} seed {seed}: best {content['best'][-1]:.3f}", file=sys.stderr, flush=True)

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
) -> dict[str, Any]:
    """One run, as it is stored."""
    store, config = MemoryStore(), study.config(method)
    summary = await run_search(
        Search(task, config, seed=seed, manifest=manifest),
        model=model,
        evaluator=make_evaluator(task, sandbox),
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
        "tokens": run.spent["tokens"].tolist(),
        "figures": run.figures,
        "evaluations": summary.evaluations,
    }


def read_runs(study: Study, output: Path) -> dict[str, list[dict[str, Any]]]:
    """The stored runs by method. Raises ``FileNotFoundError`` where one is missing."""
    return {
        method: [
            json.loads((output / study.key(method, task, seed)).read_text(encoding="utf-8"))
            for task in study.tasks
            for seed in study.seeds
        ]
        for method in study.methods
    }


def summarise(runs: Sequence[dict[str, Any]], horizon: int) -> dict[str, Any]:
    """One method's curves and figures over its runs; an interval is ``[mean, low, high]``."""
    solved = solved_by_t([run["solved_at"] for run in runs], horizon)
    best = best_at_t([run["best"] for run in runs], horizon)
    names = ("coverage", "diversity", "qd_score", "edit_success")
    return {
        "runs": len(runs),
        "solved": _listed(mean_interval([float(run["solved_at"] is not None) for run in runs])),
        "best": _listed(mean_interval([run["best"][-1] for run in runs])),
        **{name: _listed(mean_interval([run["figures"][name] for run in runs])) for name in names},
        "evaluations": int(sum(run["evaluations"] for run in runs)),
        "tokens": int(sum(run["tokens"][-1] for run in runs)),
        "solved_at_t": solved.tolist(),
        "best_at_t": np.round(best, 4).tolist(),
    }


def figures(summary: dict[str, dict[str, Any]]) -> list[Figure]:
    """The study in the common form: per method, runs solved and best@t, with the ends of their intervals."""
    found: list[Figure] = []
    for method, row in summary.items():
        found.append(Figure(name=f"{method}_solved", value=float(row["solved_at_t"][-1]), unit="runs"))
        for name, label in (("solved", "solved_share"), ("best", "best_at_t")):
            mean, low, high = row[name]
            found.append(Figure(name=f"{method}_{label}", value=mean, unit="share"))
            found.append(Figure(name=f"{method}_{label}_low", value=low, unit="share"))
            found.append(Figure(name=f"{method}_{label}_high", value=high, unit="share"))
    return found


def _listed(interval: Interval) -> list[float]:
    return [round(value, 4) for value in (interval.mean, interval.low, interval.high)]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(description="compare selection methods on a suite of problems")
    source = found.add_mutually_exclusive_group(required=True)
    source.add_argument("--checkpoint", type=Path, help="folder of a checkpoint, which is served by vLLM")
    source.add_argument("--endpoint", help="URL of a server that runs already, /v1 included")
    found.add_argument("--model", help="the model's name at the endpoint (default: the manifest's)")
    found.add_argument("--manifest", type=Path, help="folder of the endpoint's checkpoint, for its vpo.json")
    found.add_argument("--suite", type=Path, default=Path("examples/minicode/suite.json"))
    found.add_argument("--problems", type=int, default=10, help="the first so many of the suite")
    found.add_argument("--seeds", type=int, default=3, help="0, 1, ...")
    found.add_argument("--iterations", type=int, default=50)
    found.add_argument("--methods", nargs="+", choices=sorted(METHODS), default=list(DEFAULT_METHODS))
    found.add_argument("--lag", type=int, default=1)
    found.add_argument("--samples", type=int, default=1, help="completions of one request")
    found.add_argument("--answers", type=int, default=1, help="answers in each, of a model without manifest")
    found.add_argument("--runs-at-once", type=int, default=16)
    found.add_argument("--jails", type=int, default=2)
    found.add_argument("--output", type=Path, default=Path("runs/selection_study"))
    found.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    return found


@asynccontextmanager
async def served(arguments: argparse.Namespace) -> AsyncIterator[tuple[OpenAIModel, Manifest | None]]:
    """The model and its manifest."""
    if arguments.checkpoint is not None:
        async with ModelServer(arguments.checkpoint) as server, OpenAIModel(server.url, server.name) as model:
            yield model, server.manifest
        return
    manifest = read_manifest(arguments.manifest) if arguments.manifest else None
    async with OpenAIModel(arguments.endpoint, identity(arguments)) as model:
        yield model, manifest


def identity(arguments: argparse.Namespace) -> str:
    """A digest of the checkpoint's weights and manifest, or the name of the endpoint's model."""
    if arguments.checkpoint is not None:
        digest = hashlib.blake2b(digest_size=16)
        for path in sorted([*arguments.checkpoint.glob("*.safetensors"), arguments.checkpoint / MANIFEST_NAME]):
            digest.update(path.read_bytes())
        return digest.hexdigest()
    name = arguments.model or (read_manifest(arguments.manifest).name if arguments.manifest else None)
    if name is None:
        raise SystemExit("give --model (or --manifest): the name the endpoint knows the model by")
    return str(name)


async def measure(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Carry out what is missing, and sum up all of it by method. Without anything missing no model is needed."""
    study = Study(
        methods=tuple(dict.fromkeys(arguments.methods)),
        tasks=tuple(load_suite(arguments.suite).tasks[: arguments.problems]),
        seeds=tuple(range(arguments.seeds)),
        iterations=arguments.iterations,
        base={"lag": arguments.lag, "samples": arguments.samples, "answers": arguments.answers},
        identity=identity(arguments),
    )
    output, missing = arguments.output, len(study.missing(arguments.output))
    print(f"{missing} runs are still to be made", file=sys.stderr)
    if missing:
        async with served(arguments) as (model, manifest):
            await carry_out(study, model, manifest, output, runs_at_once=arguments.runs_at_once, jails=arguments.jails)
    runs = read_runs(study, output)
    return {method: summarise(runs[method], study.iterations) for method in study.methods}


def main() -> None:
    """Run the study and print it; without arguments (``make bench``), only say how."""
    if len(sys.argv) == 1:
        return parser().print_help()
    arguments = parser().parse_args()
    summary = asyncio.run(measure(arguments))
    if arguments.json:
        found = [figure.as_json() for figure in figures(summary)]
        return print(json.dumps({"figures": found, "machine": machine(), "study": summary}, indent=2))
    print(f"{'method':<22}{'runs':>6}{'solved':>8}  {'best@t':<24}{'coverage':>9}{'tokens':>11}")
    for method, row in summary.items():
        mean, low, high = row["best"]
        best = f"{mean:.3f} [{low:.3f}, {high:.3f}]"
        print(
            f"{method:<22}{row['runs']:>6}{row['solved_at_t'][-1]:>8}  {best:<24}{row['coverage'][0]:>9.3f}"
            f"{row['tokens']:>11}"
        )
    return None


if __name__ == "__main__":
    main()
