"""``vpo search``: search for a program that solves a task, here or on a running service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from pydantic import ValidationError
from rich.console import Console
from rich.syntax import Syntax

from evolve.config import SearchConfig
from evolve.endpoints import key_of
from evolve.strict import explain
from evolve.suite import Suite, load_suite
from evolve.task import OpenEvolveTask, TestsTask
from service.cli.arms import ModelChoice, described_models, open_arms, parse_choice
from service.cli.failing import FAILED, INTERRUPTED, run_command
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
from service.cli.progress import Progress, stop_on_signals
from service.cli.report import print_left_out, rejection_lines, summary_table, write_best, write_csv, write_png
from service.client import RemoteSearcher, ServiceClient
from service.folder import KeptSearch, SearchFolder
from service.local import LocalSearcher
from service.outcome import Outcome, Searcher
from service.schemas import RunStatus, SearchDetail
from service.settings import Settings
from service.spec import Arm, SearchSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the command line asks for, before any model is started."""

    suite: Suite
    models: tuple[str, ...]
    iterations: int
    seeds: tuple[int, ...]
    samples: int | None
    answers: int
    api_key_env: str | None
    config: SearchConfig
    name: str | None

    def spec(self, arms: Sequence[Any]) -> SearchSpec:
        """The search. Raises ``ValueError`` with the field and the fix."""
        try:
            return SearchSpec(
                name=self.name or self.suite.name,
                tasks=self.suite.tasks,
                arms=tuple(arms),
                seeds=self.seeds,
                iterations=self.iterations,
                search=self.config,
            )
        except ValidationError as error:
            raise ValueError(explain(error)) from None


@dataclass(frozen=True, slots=True)
class Finished:
    """A search that has ended. again: the command that goes on with it, where it was stopped and is kept.

    suffixes: of the best programs' files, by task; ``.py`` where it says nothing.
    """

    title: str
    outcome: Outcome
    stopped: bool
    again: str | None = None
    suffixes: Mapping[str, str] = field(default_factory=dict)


def search(
    task: Annotated[Path, typer.Argument(help="Task or suite: a folder, YAML, JSON, JSON lines, HumanEval's file.")],
    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            "-m",
            help="URL#NAME of an OpenAI-compatible server, a checkpoint folder, which is then served, or 'task': the "
            "models that an OpenEvolve task names, together. LABEL=... names it. Repeat it to compare models.",
        ),
    ],
    iterations: Annotated[int, typer.Option("--iterations", "-i", min=1, help="Iterations of each run.")] = 50,
    seed: SeedOption = None,
    samples: SamplesOption = None,
    answers: AnswersOption = 1,
    lag: LagOption = None,
    temperature: TemperatureOption = None,
    edit: EditOption = None,
    strategy: Annotated[str | None, typer.Option(help="evolve, or sample (no parents). (default: evolve)")] = None,
    config: ConfigOption = None,
    service: Annotated[str | None, typer.Option(help="URL of a running `vpo serve` to search on.")] = None,
    api_key_env: KeyOption = None,
    name: NameOption = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to keep the search in, with curve.csv, curve.png and each run's best program."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object at the end, and nothing else.")
    ] = False,
) -> None:
    """Search for programs that solve TASK, and say how far each model came.

    Without --service everything happens in this process, and is kept in the folder --out, if there is one. The first
    Ctrl-C stops gracefully, with what was found, and says how to go on; a second one stops at once.
    """
    console = Console(stderr=as_json)
    given = {"lag": lag, "temperature": temperature, "edit": edit, "strategy": strategy}

    async def work() -> Finished:
        plan = Plan(
            suite=load_suite(task),
            models=tuple(model),
            iterations=iterations,
            seeds=tuple(seed or [0]),
            samples=samples,
            answers=answers,
            api_key_env=api_key_env,
            config=read_search_config(config, {key: value for key, value in given.items() if value is not None}),
            name=name,
        )
        print_left_out(console, plan.suite)
        return await (_search_here(console, plan, out) if service is None else _search_there(console, plan, service))

    finished = run_command("search", work)
    report(console, finished, out=out, as_json=as_json)
    raise typer.Exit(exit_status(finished))


def exit_status(finished: Finished) -> int:
    """0 where every run is done, else why not."""
    failed = any(run.status is RunStatus.FAILED for run in finished.outcome.runs)
    return INTERRUPTED if finished.stopped else FAILED if failed else 0


def read_search_config(path: Path | None, given: dict[str, Any]) -> SearchConfig:
    """The search configuration of a YAML file, overridden by what was ``given``. Raises ``ValueError``."""
    values: Any = {}
    if path is not None:
        try:
            values = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ValueError(f"--config {path} cannot be read: {error}") from None
        if not isinstance(values, dict):
            raise ValueError(f"--config {path} must be a mapping of search settings")
    try:
        return SearchConfig.model_validate({**values, **given})
    except ValidationError as error:
        raise ValueError(explain(error)) from None


async def _search_here(console: Console, plan: Plan, out: Path | None) -> Finished:
    folder = SearchFolder(out) if out is not None else None
    if folder is not None:
        folder.check_free()  # before any model is started
    again = f"vpo resume {out}" if folder else None
    how = f"go on with `{again}`; " if again else ""
    searcher = local_searcher(folder)
    choices, stop = [parse_choice(text) for text in plan.models], asyncio.Event()
    with stop_on_signals(console, stop, then=f"stopping: finishing what is under way; {how}once more to stop at once"):
        async with _arms(console, plan, choices) as arms:
            spec = plan.spec(arms)
            tell_models(console, spec.arms)
            for endpoint in (endpoint for arm in spec.arms for endpoint in arm.endpoints):
                key_of(endpoint)  # before anything is kept of a search that cannot begin
            if folder is not None:
                folder.begin(KeptSearch(models=tuple(choice.text for choice in choices), spec=spec))
            outcome = await carry_out(console, searcher, spec, stop)
    return Finished(spec.name, outcome, stop.is_set(), again, suffixes_of(spec.tasks))


def local_searcher(folder: SearchFolder | None) -> LocalSearcher:
    """Searches here, as the environment's settings say. folder: where the search is kept, if anywhere."""
    settings = Settings()
    return LocalSearcher(
        sandbox_concurrency=settings.sandbox_concurrency,
        model_timeout_s=settings.model_timeout_s,
        min_tier=settings.min_tier,
        folders=settings.folders,
        kept=folder,
    )


async def _search_there(console: Console, plan: Plan, service: str) -> Finished:
    choices, stop = [parse_choice(text) for text in plan.models], asyncio.Event()
    number = ""

    def created(found: SearchDetail) -> None:
        nonlocal number
        number = found.id
        console.print(f"search {found.id}: {client.dashboard(found.id)}", markup=False, highlight=False)

    then = "stopping: the search on the service is cancelled; once more to stop at once"
    with stop_on_signals(console, stop, then=then):
        async with ServiceClient(service) as client, _arms(console, plan, choices) as arms:
            spec = plan.spec(arms)
            tell_models(console, spec.arms)
            outcome = await carry_out(console, RemoteSearcher(client, created), spec, stop)
    again = f"vpo resume {number} --service {service}"
    return Finished(spec.name, outcome, stop.is_set(), again, suffixes_of(spec.tasks))


def tell_models(console: Console, arms: Iterable[Arm]) -> None:
    """Say which models are asked together, and which key goes where."""
    for line in described_models(arms):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _arms(console: Console, plan: Plan, choices: Sequence[ModelChoice]) -> AbstractAsyncContextManager[tuple[Arm, ...]]:
    return open_arms(
        choices,
        samples=plan.samples,
        answers=plan.answers,
        api_key_env=plan.api_key_env,
        tell=partial(console.print, markup=False, highlight=False, soft_wrap=True),
        tasks=plan.suite.tasks,
    )


async def carry_out(console: Console, searcher: Searcher, spec: SearchSpec, stop: asyncio.Event) -> Outcome:
    """Run a search and show how it goes."""
    with Progress.of(console, spec) as progress:
        return await searcher(spec, progress, stop)


def suffixes_of(tasks: Iterable[TestsTask | OpenEvolveTask]) -> dict[str, str]:
    """The suffix of the programs of each task in OpenEvolve's format, by its name."""
    return {task.name: task.suffix for task in tasks if isinstance(task, OpenEvolveTask)}


def report(console: Console, finished: Finished, *, out: Path | None, as_json: bool) -> None:
    """Print what came of a search, and write its files."""
    outcome = finished.outcome
    for run in outcome.runs:
        if run.error:
            text = f"{run.arm}, {run.task}, seed {run.seed}: {run.error}"
            console.print(text, style="red", markup=False, highlight=False, soft_wrap=True)
    if as_json:
        runs = [run.model_dump(mode="json") | {"best_source": outcome.best.get(run.id)} for run in outcome.runs]
        typer.echo(
            json.dumps({"curve": outcome.curve.model_dump(mode="json"), "runs": runs, "rejected": outcome.rejected})
        )
    else:
        console.print(summary_table(outcome.curve))
        console.print("\n".join(rejection_lines(outcome)), markup=False, highlight=False, soft_wrap=True)
        if len(outcome.runs) == 1 and (source := outcome.best.get(outcome.runs[0].id)):
            console.print("best program:")
            console.print(Syntax(source.rstrip(), "python") if console.is_terminal else source.rstrip(), markup=False)
    if out is not None:
        write_csv(outcome.curve, out / "curve.csv")
        write_png(outcome.curve, out / "curve.png", title=finished.title)
        write_best(outcome, out / "best", [finished.suffixes.get(run.task, ".py") for run in outcome.runs])
        console.print(f"written: {out}/curve.png, {out}/curve.csv, {out}/best/", markup=False, highlight=False)
    if finished.again and any(run.status is not RunStatus.DONE for run in outcome.runs):
        console.print(f"go on with: {finished.again}", markup=False, highlight=False, soft_wrap=True)
