"""``vpo curve``: the curves of a stored search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from service.cli.failing import run_command
from service.cli.report import summary_table, write_csv, write_png
from service.cli.stored import JsonOption, SearchArgument, ServiceOption, read_stored


def curve(
    search: SearchArgument,
    service: ServiceOption = None,
    out: Annotated[Path | None, typer.Option(help="Folder for curve.csv and curve.png.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Print how far each model of SEARCH has come after how many iterations: solved, best@t, programs judged, tokens.

    Works while the search is running, too.
    """
    stored = run_command("curve", lambda: read_stored(search, service))
    found = stored.outcome.curve
    if out is not None:
        write_csv(found, out / "curve.csv")
        write_png(found, out / "curve.png", title=stored.title)
    if as_json:
        return typer.echo(json.dumps(found.model_dump(mode="json")))
    console = Console()
    console.print(f"{stored.title}: {found.status}", markup=False, highlight=False)
    console.print(summary_table(found))
    if out is not None:
        console.print(f"written: {out}/curve.png, {out}/curve.csv", markup=False, highlight=False)
    return None
