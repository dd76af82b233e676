"""``vpo resume``: let a search go on that was interrupted, here or on a service."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from service.cli.arms import open_arms, parse_choice
from service.cli.failing import run_command
from service.cli.progress import Progress, stop_on_signals
from service.cli.search import (
    Finished,
    carry_out,
    exit_status,
    local_searcher,
    report,
    suffixes_of,
    tell_models,
)
from service.cli.stored import JsonOption, SearchArgument, ServiceOption, is_folder, make_client
from service.client import RemoteSearcher
from service.folder import KeptSearch, SearchFolder
from service.schemas import RunStatus
from service.spec import Arm


def resume(
    search: SearchArgument,
    service: ServiceOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results. (default: the folder that is resumed)")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Go on with SEARCH where it was: nothing that is stored is asked or judged again, and the results are the same.

    Checkpoints that the search had served are served again; a service is told to go on, and followed.
    """
    console = Console(stderr=as_json)
    if is_folder(search):
        folder = SearchFolder(Path(search))
        finished = run_command("resume", lambda: resume_here(console, folder))
        out = out or folder.path
    else:
        finished = run_command("resume", lambda: resume_there(console, search, service))
    report(console, finished, out=out, as_json=as_json)
    raise typer.Exit(exit_status(finished))


async def resume_here(console: Console, folder: SearchFolder) -> Finished:
    """Go on with a search of this machine."""
    stop, kept, searcher = asyncio.Event(), folder.read(), local_searcher(folder)
    choices = [parse_choice(text) for text in kept.models]
    again = f"vpo resume {folder.path}"
    with stop_on_signals(console, stop, then=f"stopping: finishing what is under way; go on with `{again}`"):
        async with open_arms(
            choices,
            samples=None,
            answers=kept.spec.arms[0].answers or 1,
            api_key_env=next((arm.api_key_env for arm in kept.spec.arms if arm.api_key_env), None),
            tell=partial(console.print, markup=False, highlight=False, soft_wrap=True),
            tasks=kept.spec.tasks,
        ) as arms:
            spec = kept.spec.model_copy(update={"arms": reached(kept, arms)})
            tell_models(console, spec.arms)
            outcome = await carry_out(console, searcher, spec, stop)
    return Finished(spec.name, outcome, stopped=stop.is_set(), again=again, suffixes=suffixes_of(spec.tasks))


def reached(kept: KeptSearch, now: Sequence[Arm]) -> tuple[Arm, ...]:
    """The search's own arms at the endpoints of ``now``. Raises ``ValueError`` where a model is another one."""
    arms = []
    for before, arm in zip(kept.spec.arms, now, strict=True):
        if before.manifest != arm.manifest:
            raise ValueError(f"{before.name} is not the model that the search began with: its vpo.json has changed")
        arms.append(before.model_copy(update={"endpoint": arm.endpoint, "model": arm.model}))
    return tuple(arms)


async def resume_there(console: Console, search: str, service: str | None) -> Finished:
    """Go on with a search of a service, and follow it to its end."""
    stop = asyncio.Event()
    async with make_client(service) as client:
        again = f"vpo resume {search} --service {client.url}"
        with stop_on_signals(console, stop, then=f"stopping: the search is cancelled; go on with `{again}`"):
            found = await client.show(search)
            if found.status.over and found.status is not RunStatus.DONE:
                found = await client.resume(search)
            console.print(f"search {search}: {client.dashboard(search)}", markup=False, highlight=False)
            totals = {arm.name: arm.runs for arm in found.arms}
            with Progress(console, totals, found.iterations) as progress:
                outcome = await RemoteSearcher(client).follow(found, progress, stop)
    return Finished(found.name, outcome, stopped=stop.is_set(), again=again)
