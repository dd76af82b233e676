"""The ``vpo`` command. Each subcommand is a module of its own, imported only when it is used: some are heavy."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any

import typer

_COMMANDS = {
    "compare": ("service.cli.compare", "compare", "Compare the models of stored searches."),
    "curve": ("service.cli.curve", "curve", "The curves of a stored search."),
    "demo": ("service.cli.demo", "demo", "Everything at once: start, search with two models, draw the curves."),
    "doctor": ("service.cli.doctor", "doctor", "What this machine can do, what it lacks, and how to get that."),
    "export": ("service.cli.exporting", "export", "Write a run as a checkpoint that OpenEvolve opens."),
    "import": ("service.cli.importing", "import_checkpoint", "Continue a run of OpenEvolve from its checkpoint."),
    "model": ("service.cli.model", "app", "Serve a checkpoint with vLLM."),
    "resume": ("service.cli.resume", "resume", "Go on with a search that was interrupted."),
    "search": ("service.cli.search", "search", "Search for a program that solves a task."),
    "serve": ("service.cli.serve", "serve", "Run the service: API, worker and dashboard in one process."),
    "suite": ("service.cli.suite", "app", "Check a suite of tasks: references, flaky tests, tests that tell nothing."),
    "show": ("service.cli.show", "show", "What is known of a stored search, or which there are."),
    "worker": ("service.cli.serve", "worker", "Run a worker alone, on the database of a service elsewhere."),
}


def make_app(chosen: str | None) -> typer.Typer:
    """The command line, with ``chosen`` loaded; of all others only the name and a line of help."""
    app = typer.Typer(
        name="vpo",
        help="Evolutionary program search with models trained by Vector Policy Optimization.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )

    @app.callback()
    def group() -> None:
        """Evolutionary program search with models trained by Vector Policy Optimization."""

    for name, (module, attribute, summary) in _COMMANDS.items():
        found: Any = getattr(importlib.import_module(module), attribute) if name == chosen else _not_chosen
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name, help=summary)
        else:
            app.command(name, help=None if name == chosen else summary)(found)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of ``vpo``."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    make_app(next((word for word in given if not word.startswith("-")), None))(given, prog_name="vpo")


def _not_chosen() -> None:
    """Stands for a command that another one's help lists."""
