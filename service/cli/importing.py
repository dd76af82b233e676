"""``vpo import``: a checkpoint of OpenEvolve as a search in a folder, which goes on from there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console

from evolve.config import SearchConfig
from evolve.evaluator import OpenEvolveEvaluator
from evolve.openevolve_checkpoint import Checkpoint, CheckpointError, read_checkpoint
from evolve.openevolve_checkpoint_import import ImportedRun, import_run
from evolve.strict import explain
from evolve.suite import Suite, load_task
from evolve.task import OpenEvolveTask
from sandbox.runner import Sandbox
from service.cli.arms import open_arms, parse_choice
from service.cli.failing import run_command
from service.cli.options import (
    AnswersOption,
    ConfigOption,
    EditOption,
    KeyOption,
    LagOption,
    NameOption,
    SamplesOption,
    SeedOption,
    TemperatureOption,
)
from service.cli.report import print_left_out
from service.cli.resume import resume_here
from service.cli.search import Plan, exit_status, read_search_config, report
from service.cli.stored import JsonOption
from service.folder import KeptSearch, SearchFolder, check_unused, written_whole
from service.settings import Settings
from service.spec import SearchSpec


@dataclass(frozen=True, slots=True)
class Imported:
    """What came into the folder ``out``: the same run for every arm and seed, of which there are ``runs``."""

    out: Path
    run: ImportedRun
    runs: int

    @property
    def again(self) -> str:
        return f"vpo resume {self.out}"

    @property
    def best(self) -> float:
        return max(program.evaluation.scalar for program in self.run.programs)


def import_checkpoint(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="CHECKPOINT", help="Like openevolve_output/checkpoints/checkpoint_50.")
    ],
    task: Annotated[Path, typer.Option(help="The task's folder: evaluator.py, initial_program.EXT, config.yaml.")],
    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            "-m",
            help="URL#NAME of an OpenAI-compatible server, a checkpoint folder, or 'task': the models that the task "
            "names, together. LABEL=... names it. Repeat it to compare how models go on.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder to keep the search in; a new or an empty one.")],
    iterations: Annotated[
        int, typer.Option("--iterations", "-i", min=1, help="Iterations after those that are imported.")
    ] = 50,
    seed: SeedOption = None,
    samples: SamplesOption = None,
    answers: AnswersOption = 1,
    lag: LagOption = None,
    temperature: TemperatureOption = None,
    edit: EditOption = None,
    config: ConfigOption = None,
    api_key_env: KeyOption = None,
    name: NameOption = None,
    start: Annotated[bool, typer.Option("--start", help="Also go on with the search at once.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Take over a run of OpenEvolve 0.4 from its CHECKPOINT, to go on with it by vpo resume.

    Programs, islands, lineage, metrics and artifacts are kept, and the next iteration is the one after the last. The
    metrics are judged by the task's own ranges; only the seed program is evaluated anew.
    """
    console = Console(stderr=as_json)
    given = {"lag": lag, "temperature": temperature, "edit": edit}

    async def work() -> Imported:
        check_unused(out)
        found, suite = read_checkpoint(checkpoint), _load(task)
        print_left_out(console, suite)
        settings = {key: value for key, value in given.items() if value is not None}
        plan = Plan(
            suite=suite,
            models=tuple(model),
            iterations=found.iteration + iterations,
            seeds=tuple(seed or [0]),
            samples=samples,
            answers=answers,
            api_key_env=api_key_env,
            config=_with_islands(read_search_config(config, settings), found),
            name=name,
        )
        return await take_over(found, plan, out)

    imported = run_command("import", work)
    if not start:
        return _tell(console, imported, as_json=as_json)
    for note in imported.run.notes:
        console.print(note, style="yellow", markup=False, highlight=False, soft_wrap=True)
    finished = run_command("import", lambda: resume_here(console, SearchFolder(out)))
    report(console, finished, out=out, as_json=as_json)
    raise typer.Exit(exit_status(finished))


async def take_over(checkpoint: Checkpoint, plan: Plan, out: Path) -> Imported:
    """Write the search that goes on from a checkpoint into ``out``; after an error nothing of it is left."""
    choices = [parse_choice(text) for text in plan.models]
    async with open_arms(
        choices,
        samples=plan.samples,
        answers=plan.answers,
        api_key_env=plan.api_key_env,
        tell=lambda _: None,
        tasks=plan.suite.tasks,
        serve=False,  # resuming does
    ) as arms:
        spec = plan.spec(arms)
    run = await _judge(checkpoint, spec)
    if len(run.records) > checkpoint.iteration:  # iterations that ended out of order
        spec = spec.model_copy(update={"iterations": spec.iterations + len(run.records) - checkpoint.iteration})
    runs = len(spec.arms) * len(spec.seeds)
    with written_whole(out) as part:
        folder = SearchFolder(part)
        folder.begin(KeptSearch(models=tuple(choice.text for choice in choices), spec=spec))
        for number in range(1, runs + 1):
            with folder.open_run(str(number)) as store:
                await store.save_seed(run.seed)
                for record in run.records:
                    await store.save_iteration(record)
    return Imported(out, run, runs)


def _load(path: Path) -> Suite:
    task = load_task(path)
    if not isinstance(task, OpenEvolveTask):
        raise CheckpointError(
            f"--task {path} is a task with tests: name the folder that OpenEvolve ran, with evaluator.py"
        )
    if task.several_files:
        raise CheckpointError(f"--task {path} is a program of several files, of which OpenEvolve 0.4 knows nothing")
    return Suite(name=task.name, tasks=(task,))


def _with_islands(config: SearchConfig, checkpoint: Checkpoint) -> SearchConfig:
    """The search's configuration with the islands that there are, whatever the task's own says."""
    if "islands" in config.model_fields_set and config.islands != checkpoint.islands:
        raise ValueError(f"islands: the checkpoint has {checkpoint.islands}, --config says {config.islands}: remove it")
    try:
        return SearchConfig.model_validate(config.model_dump(exclude_unset=True) | {"islands": checkpoint.islands})
    except ValidationError as error:
        raise CheckpointError(f"the checkpoint cannot be searched on: {explain(error)}") from None


async def _judge(checkpoint: Checkpoint, spec: SearchSpec) -> ImportedRun:
    """The imported run; the seed program is evaluated, since its metrics decide what all metrics mean."""
    task, settings = spec.tasks[0], Settings()
    assert isinstance(task, OpenEvolveTask)  # as loaded
    async with Sandbox(1, minimum_tier=settings.min_tier, folders=settings.folders) as sandbox:
        evaluator = OpenEvolveEvaluator(task, sandbox)
        seed = await evaluator.evaluate(task.seed_source)
    if seed.infrastructure is not None:
        raise CheckpointError(f"the seed program of {task.name} could not be judged: {seed.infrastructure}")
    return import_run(checkpoint, seed_source=task.seed_source, seed=seed, judge=evaluator.judge)


def _tell(console: Console, imported: Imported, *, as_json: bool) -> None:
    run = imported.run
    programs = len(run.programs)
    if as_json:
        document = {
            "out": str(imported.out),
            "runs": imported.runs,
            "iteration": len(run.records),
            "programs": programs,
            "best": imported.best,
            "notes": list(run.notes),
            "resume": imported.again,
        }
        return typer.echo(json.dumps(document))
    for note in run.notes:
        console.print(note, style="yellow", markup=False, highlight=False, soft_wrap=True)
    each = f" into each of {imported.runs} runs" if imported.runs > 1 else ""
    text = f"imported {programs} programs of {len(run.records)} iterations{each}; the best counts {imported.best:.4f}"
    console.print(text, markup=False, highlight=False, soft_wrap=True)
    return console.print(f"go on with: {imported.again}", markup=False, highlight=False, soft_wrap=True)
