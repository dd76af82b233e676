"""Which way of choosing parents solves more: selection methods x problems x seeds, with real parts throughout.

    python -m benchmarks.selection_study --checkpoint checkpoints/minicode-vpo --json
    python -m benchmarks.selection_study --endpoint http://127.0.0.1:8000/v1 --manifest checkpoints/minicode-vpo

The checkpoint is served by vLLM (or the endpoint asked as it is), and every candidate is judged in the sandbox. All
methods share the archive, islands, prompts and budgets of the defaults and differ in selection alone; ``crossover``
(for models whose prompt can carry a second parent) adds that operator to complementary selection; ``sample`` is
repeated sampling without any population; ``cascade`` is ``mixed`` where only those that pass two of the first six tests
are judged by the rest. Every finished run is one file under ``--output``: started again with the same arguments, the
study goes on where it was. Intervals are percentile bootstraps, 95 %: of ``solved``, ``best`` and their differences
from the first method over problems, of other figures over runs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures import Figure, machine
from benchmarks.studies import (
    Run,
    Study,
    carry_out,
    checkpoint_identity,
    listed,
    problem_table,
    read_runs,
    serve_checkpoint,
)
from evolve.config import STRATEGY_NAMES, OperatorsConfig, SelectionConfig
from evolve.manifest import Manifest, read_manifest
from evolve.metrics import best_at_t, mean_interval, solved_by_t
from evolve.models import OpenAIModel
from evolve.task import load_suite

METHODS: dict[str, dict[str, Any]] = {
    "mixed": {},
    "sample": {"strategy": "sample"},
    **{name: {"selection": SelectionConfig.only(name).model_dump()} for name in STRATEGY_NAMES},
    "crossover": {
        "selection": SelectionConfig.only("complement").model_dump(),
        "operators": OperatorsConfig(crossover=1.0).model_dump(),
    },
    "cascade": {"cascade": {"first": 6, "threshold": 0.3}},
}
"""Search settings by method; ``mixed`` is the default weighting of strategies."""
DEFAULT_METHODS = ("mixed", "sample", "elite", "lexicase", "dirichlet", "complement")
_ENDS = {"solved": "pass_at_t", "best": "best_at_t"}
"""The curves whose last points are compared over problems."""


def summarise(runs: Mapping[str, Sequence[Run]], horizon: int) -> dict[str, dict[str, Any]]:
    """Curves and figures of every method over its runs, and how it differs from the first method.

    An interval is ``[mean, low, high]``. Those over problems average a problem's seeds.
    """
    ends = {
        method: {label: problem_table(found, curve, horizon)[:, -1] for label, curve in _ENDS.items()}
        for method, found in runs.items()
    }
    first = next(iter(ends.values()))
    return {
        method: {
            **{label: listed(mean_interval(values)) for label, values in its_ends.items()},
            "difference": {label: listed(mean_interval(its_ends[label] - first[label])) for label in _ENDS},
            **_totals(runs[method], horizon),
        }
        for method, its_ends in ends.items()
    }


def _totals(runs: Sequence[Run], horizon: int) -> dict[str, Any]:
    solved = solved_by_t([run["solved_at"] for run in runs], horizon)
    best = best_at_t([run["best"] for run in runs], horizon)
    names = ("coverage", "diversity", "qd_score", "edit_success")
    return {
        "runs": len(runs),
        **{name: listed(mean_interval([run["figures"][name] for run in runs])) for name in names},
        "evaluations": int(sum(run["evaluations"] for run in runs)),
        "tests": int(sum(run["tests"] for run in runs)),
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
        async with serve_checkpoint(arguments.checkpoint) as (model, its_manifest):
            yield model, its_manifest
        return
    manifest = read_manifest(arguments.manifest) if arguments.manifest else None
    async with OpenAIModel(arguments.endpoint, identity(arguments)) as model:
        yield model, manifest


def identity(arguments: argparse.Namespace) -> str:
    """A digest of the checkpoint's weights and manifest, or the name of the endpoint's model."""
    if arguments.checkpoint is not None:
        return checkpoint_identity(arguments.checkpoint)
    name = arguments.model or (read_manifest(arguments.manifest).name if arguments.manifest else None)
    if name is None:
        raise SystemExit("give --model (or --manifest): the name the endpoint knows the model by")
    return str(name)


async def measure(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Carry out what is missing, and sum up all of it by method. Without anything missing no model is needed."""
    study = Study(
        methods={name: METHODS[name] for name in arguments.methods},
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
    return summarise(runs, study.iterations)


def _shown(interval: Sequence[float], sign: str = "") -> str:
    mean, low, high = (f"{value:{sign}.2f}" for value in interval)
    return f"{mean} [{low}, {high}]"


def main() -> None:
    """Run the study and print it; without arguments (``make bench``), only say how."""
    if len(sys.argv) == 1:
        return parser().print_help()
    arguments = parser().parse_args()
    summary = asyncio.run(measure(arguments))
    if arguments.json:
        found = [figure.as_json() for figure in figures(summary)]
        return print(json.dumps({"figures": found, "machine": machine(), "study": summary}, indent=2))
    first = next(iter(summary))
    print(
        f"{'method':<22}{'runs':>6}{'solved':>8}  {'solved - ' + first:<24}{'best@t':<24}{'best@t - ' + first:<24}"
        f"{'coverage':>9}{'tests':>9}{'tokens':>11}"
    )
    for method, row in summary.items():
        solved, best = (_shown(row["difference"][label], "+") for label in _ENDS)
        print(
            f"{method:<22}{row['runs']:>6}{row['solved_at_t'][-1]:>8}  {solved:<24}{_shown(row['best']):<24}{best:<24}"
            f"{row['coverage'][0]:>9.3f}{row['tests']:>9}{row['tokens']:>11}"
        )
    return None


if __name__ == "__main__":
    main()
