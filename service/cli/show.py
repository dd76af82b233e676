"""``vpo show``: what is known of a stored search, or which searches a service has."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from service.cli.failing import USAGE, run_command
from service.cli.report import rejection_lines, summary_table
from service.cli.stored import (
    JsonOption,
    ServiceOption,
    Stored,
    make_client,
    read_stored,
)
from service.schemas import RunState, SearchSummary


def show(
    search: Annotated[
        str | None, typer.Argument(help="Folder of --out, or number on a service. (default: list the service's)")
    ] = None,
    service: ServiceOption = None,
    run: Annotated[str | None, typer.Option(help="Show this run's best program.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the models and runs of SEARCH, with --run a run's best program; without SEARCH, the service's searches."""
    if search is None:
        return _show_list(run_command("show", lambda: _searches(service)), as_json=as_json)
    stored = run_command("show", lambda: read_stored(search, service))
    runs = [state for state in stored.outcome.runs if run in (None, state.id)]
    if not runs:
        known = ", ".join(state.id for state in stored.outcome.runs)
        typer.echo(f"vpo show: --run {run} is none of the search's runs: {known}", err=True)
        raise typer.Exit(USAGE)
    if as_json:
        return typer.echo(json.dumps(_as_json(stored, runs)))
    return _print(stored, runs, best=run is not None)


async def _searches(service: str | None) -> list[SearchSummary]:
    async with make_client(service) as client:
        return await client.searches()


def _show_list(searches: list[SearchSummary], *, as_json: bool) -> None:
    if as_json:
        return typer.echo(json.dumps({"searches": [search.model_dump(mode="json") for search in searches]}))
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("search", "name", "status", "done", "models", "solved"):
        table.add_column(heading)
    for search in searches:
        arms = ", ".join(arm.name for arm in search.arms)
        solved = f"{sum(arm.solved for arm in search.arms)} of {sum(arm.runs for arm in search.arms)}"
        table.add_row(search.id, search.name, search.status, f"{search.progress:.0%}", arms, solved)
    return Console().print(table)


def _as_json(stored: Stored, runs: list[RunState]) -> dict[str, object]:
    outcome = stored.outcome
    return {
        "search": outcome.curve.search,
        "name": stored.title,
        "status": outcome.curve.status,
        "iterations": outcome.curve.iterations,
        "runs": [state.model_dump(mode="json") | {"best_source": outcome.best.get(state.id)} for state in runs],
        "rejected": outcome.rejected,
    }


def _print(stored: Stored, runs: list[RunState], *, best: bool) -> None:
    console, outcome = Console(), stored.outcome
    console.print(f"{stored.title}: {outcome.curve.status}", markup=False, highlight=False)
    console.print(_runs_table(runs))
    for state in runs:
        if state.error:
            console.print(f"run {state.id}: {state.error}", markup=False, highlight=False, soft_wrap=True)
    if best:
        source = outcome.best.get(runs[0].id, "nothing was judged yet").rstrip()
        return console.print(Syntax(source, "python") if console.is_terminal else source, markup=False)
    console.print(summary_table(outcome.curve))
    return console.print("\n".join(rejection_lines(outcome)), markup=False, highlight=False, soft_wrap=True)


def _runs_table(runs: list[RunState]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("run", "arm", "task", "seed", "status", "iteration", "best", "solved", "tokens"):
        table.add_column(heading)
    for state in runs:
        table.add_row(
            state.id,
            state.arm,
            state.task,
            str(state.seed),
            state.status if state.ended in (None, "completed", "solved") else f"{state.status}: {state.ended}",
            str(state.iteration),
            "-" if state.best is None else f"{state.best:.3f}",
            "-" if state.solved_at is None else f"iteration {state.solved_at}",
            f"{state.tokens:,}",
        )
    return table
