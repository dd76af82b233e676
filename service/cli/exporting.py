"""``vpo export``: a run of a search in a folder, as other programs read it."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from evolve.openevolve_checkpoint_writer import FinishedRun, write_checkpoint
from evolve.task import OpenEvolveTask
from service.cli.failing import run_command
from service.cli.stored import JsonOption, is_folder
from service.folder import SearchFolder, written_whole


class Format(StrEnum):
    """What a run can be written as."""

    OPENEVOLVE = "openevolve"


def export(
    search: Annotated[str, typer.Argument(metavar="SEARCH", help="Folder of --out.")],
    out: Annotated[Path, typer.Option(help="Folder to write to, like checkpoint_50; a new or an empty one.")],
    run: Annotated[str | None, typer.Option(help="The run to export, where there are several.")] = None,
    form: Annotated[
        Format, typer.Option("--format", help="A checkpoint that OpenEvolve 0.4 loads, continues and draws.")
    ] = Format.OPENEVOLVE,
    as_json: JsonOption = False,
) -> None:
    """Write a run of SEARCH for another program: all of its programs, with lineage, islands, metrics and artifacts.

    Works while the search is running, too.
    """

    async def work() -> dict[str, object]:
        return export_run(search, run, out, form)

    written = run_command("export", work)
    if as_json:
        return typer.echo(json.dumps(written))
    console = Console()
    text = f"written: {written['programs']} programs of {written['iteration']} iterations in {out}"
    return console.print(text, markup=False, highlight=False, soft_wrap=True)


def export_run(search: str, run: str | None, out: Path, form: Format) -> dict[str, object]:
    """Write the run into ``out``, whole or not at all. Raises ``ValueError``, ``JournalError``."""
    if not is_folder(search):
        raise ValueError(f"{search} is a search of a service: only one in a folder (--out) can be exported")
    folder = SearchFolder(Path(search))
    finished = _finished(folder, run)
    with written_whole(out) as part:
        programs = write_checkpoint(part, finished)
    return {"out": str(out), "format": form, "programs": programs, "iteration": len(finished.records)}


def _finished(folder: SearchFolder, chosen: str | None) -> FinishedRun:
    spec = folder.read().spec
    runs = {str(number): run for number, run in enumerate(spec.runs, start=1)}
    known = ", ".join(f"{number} ({arm.name}, {task.name}, seed {seed})" for number, (task, seed, arm) in runs.items())
    if chosen is None and len(runs) > 1:
        raise ValueError(f"{folder.path} has {len(runs)} runs: choose one with --run: {known}")
    number = chosen or "1"
    if number not in runs:
        raise ValueError(f"--run {number} is none of the search's runs: {known}")
    task, _, arm = runs[number]
    if isinstance(task, OpenEvolveTask) and task.several_files:
        raise ValueError(f"the programs of {task.name} are of several files, which OpenEvolve 0.4 cannot evaluate")
    store = folder.read_run(number)
    if store.seed is None:
        raise ValueError(f"run {number} has judged nothing yet: let it go on first, with `vpo resume {folder.path}`")
    return FinishedRun(
        task=task,
        config=arm.config(spec.search, task),
        seed=store.seed,
        records=store.records,
        ended=folder.written_at(number),
    )
