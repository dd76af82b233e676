"""``python -m trainer``: offline training runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from trainer.config import ConfigError, TrainConfig, load_config

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Train models for evolutionary search.")
console = Console()

ConfigPath = Annotated[Path, typer.Argument(help="A YAML file; see configs/.")]
Overrides = Annotated[list[str], typer.Option("--set", help="Override a setting: a.b=value.")]


@app.command()
def train(config: ConfigPath, overrides: Overrides = []) -> None:  # noqa: B006 (typer needs a list)
    """Train; a run that was interrupted goes on from its newest saved state."""
    from trainer.loop import Training
    from trainer.watch import Terminal

    settings = _settings(config, overrides)
    with Terminal(console, settings.name, settings.train.steps) as terminal:
        metrics = Training(settings, terminal).run()
    console.print(json.dumps(metrics, indent=2))
    console.print(f"wrote {settings.output / 'model'}")


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
