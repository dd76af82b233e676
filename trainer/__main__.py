"""``python -m trainer``: offline training runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from trainer.config import ConfigError, TrainConfig, load_config

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Train models for evolutionary search.")
console = Console(quiet=os.environ.get("RANK", "0") != "0")  # of torchrun's processes the first one speaks

ConfigPath = Annotated[Path, typer.Argument(help="A YAML file; see configs/.")]
Overrides = Annotated[list[str], typer.Option("--set", help="Override a setting: a.b=value.")]


@app.command()
def train(config: ConfigPath, overrides: Overrides = []) -> None:  # noqa: B006 (typer needs a list)
    """Train; a run that was interrupted goes on from its newest saved state."""
    from trainer.files import FolderError
    from trainer.loop import Training
    from trainer.watch import Terminal

    settings = _settings(config, overrides)
    try:
        with Terminal(console, settings.name, settings.train.steps) as terminal:
            metrics = Training(settings, terminal).run()
    except FolderError as error:
        _stop(str(error))
    console.print(json.dumps(metrics, indent=2))
    console.print(f"wrote {settings.output / 'model'}")


@app.command("eval")
def evaluate(
    checkpoint: Annotated[Path, typer.Argument(help="A checkpoint folder with vpo.json.")],
    problems: Annotated[int, typer.Option(min=1, help="Held-out problems.")] = 128,
    answers: Annotated[int, typer.Option(min=1, help="Answers per problem: the largest k.")] = 30,
    m: Annotated[int | None, typer.Option("-m", min=1, help="Answers in one generation; default: as trained.")] = None,
    seed: Annotated[int, typer.Option(help="Of the problems and of the sampling.")] = 1000,
    threads: Annotated[int, typer.Option(min=1, help="Of torch.")] = 1,
    output: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file too.")] = None,
) -> None:
    """pass@k, best@k, E_w[best@k] and diversity with 95 % intervals, and how answers specialise by their place."""
    import torch

    from evolve.manifest import ManifestError
    from trainer.assess import assess, figures_by_problem, report
    from trainer.config import EvalConfig, HardwareConfig
    from trainer.tables import figures_table, positions_table

    torch.set_num_threads(threads)
    config = EvalConfig(problems=problems, answers=answers, seed=seed)
    try:
        manifest, found = assess(checkpoint, config, HardwareConfig(), m=m)
    except ManifestError as error:
        _stop(str(error))
    result = report(manifest, found, figures_by_problem(found, answers), answers)
    console.print(figures_table(result))
    if result["m"] > 1:
        console.print(positions_table(result))
    if output is not None:
        output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


@app.command()
def compare(
    config: Annotated[Path, typer.Argument(help="A YAML file of a comparison; see configs/.")],
    overrides: Overrides = [],  # noqa: B006
) -> None:
    """Train several estimators on several seeds from one start with matched compute; the paper's table. Resumable."""
    from trainer.compare_run import evaluate_base
    from trainer.comparison import load_comparison, run_all
    from trainer.comparison_report import comparison_table, summarise, write_report

    try:
        settings = load_comparison(config, overrides)
    except ConfigError as error:
        _stop(str(error))
    try:
        runs = run_all(settings, lambda text: console.print(text, highlight=False))
    except RuntimeError as error:
        _stop(str(error))
    summary = summarise(settings, runs, evaluate_base(settings))
    console.print(comparison_table(summary))
    for path in write_report(settings, summary):
        console.print(f"wrote {path}", highlight=False)


@app.command()
def export(
    run: Annotated[Path, typer.Argument(help="The output folder of a run.")],
    folder: Annotated[Path, typer.Argument(help="The checkpoint folder to write.")],
    state: Annotated[str, typer.Option(help="newest, best (by evaluation), or a number of steps.")] = "newest",
) -> None:
    """Write a saved state of a run as a checkpoint folder that can be served (adapters merged)."""
    from trainer.export import ExportError, export_state

    try:
        step = export_state(run, folder, state)
    except (ExportError, ConfigError) as error:
        _stop(str(error))
    console.print(f"wrote the model after {step} steps to {folder}")


@app.command()
def doctor(config: ConfigPath, overrides: Overrides = []) -> None:  # noqa: B006
    """Check whether a configuration would run here: device, memory, disk, start, domain, room, sampler."""
    from trainer.doctor import diagnose

    failed = False
    for check in diagnose(_settings(config, overrides)):
        mark = {True: "[green]ok  [/green]", False: "[red]bad [/red]", None: "note"}[check.ok]
        console.print(f"{mark} {check.name}: {escape(check.detail)}", highlight=False, soft_wrap=True)
        failed = failed or check.ok is False
    if failed:
        raise typer.Exit(1)


@app.command()
def suite(
    output: Annotated[Path, typer.Argument(help="The JSON file to write.")],
    problems: Annotated[int, typer.Option(min=1)] = 16,
    seed: Annotated[int, typer.Option()] = 2000,
    skip: Annotated[int, typer.Option(min=0, help="Leave out the first problems of the stream.")] = 0,
) -> None:
    """Write held-out minicode problems as a suite of tasks for a search."""
    from trainer.domains.minicode.suite import write_suite

    write_suite(output, count=problems, seed=seed, skip=skip)
    console.print(f"wrote {problems} problems to {output}")


@app.command()
def enumerate(
    suite: Annotated[Path, typer.Argument(help="A suite of minicode tasks.")],
    evaluations: Annotated[int, typer.Option(min=1)] = 90,
    seeds: Annotated[int, typer.Option(min=1)] = 20,
) -> None:
    """The baseline without a model: random programs of the grammar, at the same number of evaluations."""
    from trainer.domains.minicode.suite import enumerate_suite

    console.print_json(json.dumps(enumerate_suite(suite, evaluations=evaluations, seeds=seeds)))


def _settings(config: Path, overrides: list[str]) -> TrainConfig:
    try:
        return load_config(config, overrides)
    except ConfigError as error:
        _stop(str(error))


def _stop(message: str) -> NoReturn:
    console.print(f"[red]{escape(message)}[/red]", highlight=False)
    raise typer.Exit(2) from None


if __name__ == "__main__":
    app()
