"""The claim itself: does evolution solve what repeated sampling does not, and more so with a model trained by VPO?

    python -m benchmarks.claim --json                                     # the long form
    python -m benchmarks.claim --problems 4 --iterations 10 --pool 24     # minutes

1. Held-out ``minicode`` problems are screened: every arm draws 30 answers of its own for each, by repeated sampling
   with a seed that is used for nothing else, and only problems that no arm solves so are kept, the first so many.
2. On these, every arm (base, grpo and vpo: checkpoints) makes the same number of iterations by evolution and by
   repeated sampling, each with the same number of answers per iteration (samples x answers), over one or more seeds.

Everything is real: a checkpoint is served by vLLM (one at a time), every candidate is judged in the sandbox. Each run
is kept under ``--output``, also while it is under way: started again with the same arguments, the benchmark goes on
where it was. It writes claim.json, claim.csv and claim.png there. Intervals are percentile bootstraps over problems,
95 %: seeds of one problem are averaged first, since they are not independent.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.claim_report import figures, print_table, summarise, write_csv, write_png
from benchmarks.figures import machine
from benchmarks.studies import Study, carry_out, checkpoint_identity, read_runs, serve_checkpoint
from evolve.manifest import Manifest, read_manifest
from evolve.task import TestsTask
from trainer.domains.minicode.suite import suite_document

ARMS = ("base", "grpo", "vpo")
METHODS: dict[str, dict[str, Any]] = {"evolve": {}, "sample": {"strategy": "sample"}}
SCREENED_ANSWERS = 30
SCREENING_SEED = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Arm:
    """One model. manifest: how it is asked; its m is what the command line says, else the checkpoint's own."""

    name: str
    checkpoint: Path
    manifest: Manifest

    @property
    def identity(self) -> str:
        return f"{checkpoint_identity(self.checkpoint)}/m={self.manifest.chain.m}"

    def samples(self, evaluations: int) -> int:
        """Completions per iteration. Raises ``SystemExit`` where m does not divide the number of answers."""
        m = self.manifest.chain.m
        if evaluations % m:
            raise SystemExit(
                f"--evaluations {evaluations} is no multiple of the {m} answers of {self.name}: choose one"
            )
        return evaluations // m


def make_arm(name: str, folder: Path, answers: int | None) -> Arm:
    """An arm from its checkpoint. answers: m, where it is not to be the manifest's."""
    checkpoint = folder / f"minicode-{name}"
    manifest = read_manifest(checkpoint)
    if answers is not None:
        chain = manifest.chain.model_copy(update={"m": answers})
        manifest = manifest.model_copy(update={"chain": chain})
    return Arm(name=name, checkpoint=checkpoint, manifest=manifest)


def held_out(count: int, seed: int) -> tuple[TestsTask, ...]:
    """The first problems of a held-out stream, which no training has seen."""
    return tuple(TestsTask.model_validate(task) for task in suite_document(count=count, seed=seed)["tasks"])


def screening(arm: Arm, tasks: tuple[TestsTask, ...], evaluations: int) -> Study:
    """best@30 of an arm by repeated sampling, apart from everything that is compared."""
    return Study(
        methods={"sample": METHODS["sample"]},
        tasks=tasks,
        seeds=(SCREENING_SEED,),
        iterations=math.ceil(SCREENED_ANSWERS / evaluations),
        base={"samples": arm.samples(evaluations)},
        identity=arm.identity,
    )


def comparison(arm: Arm, tasks: tuple[TestsTask, ...], arguments: argparse.Namespace) -> Study:
    """An arm's runs, by either method."""
    return Study(
        methods=METHODS,
        tasks=tasks,
        seeds=tuple(range(arguments.seeds)),
        iterations=arguments.iterations,
        base={"samples": arm.samples(arguments.evaluations), "lag": arguments.lag},
        identity=arm.identity,
    )


async def make_runs(study: Study, arm: Arm, arguments: argparse.Namespace, *, phase: str) -> None:
    """Make what is missing of a study; without anything missing no model is needed."""
    output = arguments.output / "runs"
    if missing := len(study.missing(output)):
        print(f"{phase}, {arm.name}: {missing} runs are to be made", file=sys.stderr, flush=True)
        async with serve_checkpoint(arm.checkpoint) as (model, _):
            await carry_out(
                study,
                model,
                arm.manifest,
                output,
                runs_at_once=arguments.runs_at_once,
                jails=arguments.jails,
                label=f"{phase}, {arm.name}: ",
            )


async def choose_problems(arms: Sequence[Arm], arguments: argparse.Namespace) -> tuple[TestsTask, ...]:
    """The first problems that every arm leaves unsolved at best@30. Raises ``SystemExit`` where the pool has too few.

    An arm is asked only for what those before it left unsolved: the best sampler first makes that cheap.
    """
    tasks = held_out(arguments.pool, arguments.suite_seed)
    for arm in reversed(arms):
        study = screening(arm, tasks, arguments.evaluations)
        await make_runs(study, arm, arguments, phase="screening")
        runs = read_runs(study, arguments.output / "runs")["sample"]
        tasks = tuple(task for task, run in zip(tasks, runs, strict=True) if run["solved_at"] is None)
    if len(tasks) < arguments.problems:
        raise SystemExit(
            f"only {len(tasks)} of {arguments.pool} problems are unsolved by every arm at best@{SCREENED_ANSWERS}, and "
            f"{arguments.problems} are wanted: raise --pool"
        )
    return tasks[: arguments.problems]


def write_problems(tasks: Sequence[TestsTask], path: Path) -> None:
    """Write the chosen problems as a suite, which other studies (``benchmarks.selection_study --suite``) can take."""
    suite = {"name": "minicode, unsolved by every arm", "tasks": [task.model_dump(mode="json") for task in tasks]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(suite, indent=1) + "\n", encoding="utf-8")


async def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Carry out what is missing, and sum up all of it."""
    answers = dict(arguments.answers)
    if unknown := sorted(answers.keys() - set(arguments.arms)):
        raise SystemExit(f"--answers names {', '.join(unknown)}, but the arms are {', '.join(arguments.arms)}")
    arms = [make_arm(name, arguments.checkpoints, answers.get(name)) for name in arguments.arms]
    tasks = await choose_problems(arms, arguments)
    write_problems(tasks, arguments.output / "suite.json")
    runs = {}
    for arm in arms:
        study = comparison(arm, tasks, arguments)
        await make_runs(study, arm, arguments, phase="comparison")
        runs[arm.name] = read_runs(study, arguments.output / "runs")
    settings = {
        "problems": [task.name for task in tasks],
        "suite_seed": arguments.suite_seed,
        "pool": arguments.pool,
        "seeds": arguments.seeds,
        "iterations": arguments.iterations,
        "evaluations_per_iteration": arguments.evaluations,
        "answers": {arm.name: arm.manifest.chain.m for arm in arms},
        "estimators": {arm.name: arm.manifest.estimator for arm in arms},
    }
    return {"settings": settings, **summarise(runs, arguments.iterations)}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(description="evolution against repeated sampling, for three models")
    found.add_argument("--checkpoints", type=Path, default=Path("checkpoints"), help="folder with minicode-ARM")
    found.add_argument("--arms", nargs="+", default=list(ARMS), help="the one that samples best last")
    found.add_argument(
        "--answers",
        nargs="*",
        type=_answers,
        default=[("base", 1)],
        metavar="ARM=M",
        help="answers per completion where not the manifest's (default: base=1, its better form)",
    )
    found.add_argument("--problems", type=int, default=16)
    found.add_argument("--pool", type=int, default=96, help="held-out problems that are screened")
    found.add_argument("--suite-seed", type=int, default=4000, help="of the stream of held-out problems")
    found.add_argument("--seeds", type=int, default=1, help="runs of each problem by each arm and method")
    found.add_argument("--iterations", type=int, default=100)
    found.add_argument("--evaluations", type=int, default=3, help="answers per iteration")
    found.add_argument("--lag", type=int, default=1)
    found.add_argument("--runs-at-once", type=int, default=32)
    found.add_argument("--jails", type=int, default=2)
    found.add_argument("--output", type=Path, default=Path("runs/claim"))
    found.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    return found


def _answers(text: str) -> tuple[str, int]:
    name, separator, count = text.partition("=")
    if not separator or not count.isdigit() or int(count) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be like base=1")
    return name, int(count)


def main() -> None:
    """Run the comparison, print it and write its files; without arguments (``make bench``), only say how."""
    if len(sys.argv) == 1:
        return parser().print_help()
    arguments = parser().parse_args()
    claim = asyncio.run(measure(arguments))
    found = {"figures": [figure.as_json() for figure in figures(claim)], "machine": machine(), "claim": claim}
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "claim.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    write_csv(claim, arguments.output / "claim.csv")
    write_png(claim, arguments.output / "claim.png")
    if arguments.json:
        return print(json.dumps(found, indent=2))
    print_table(claim)
    return print(f"written: {arguments.output}/claim.json, claim.csv, claim.png, suite.json")


if __name__ == "__main__":
    main()
