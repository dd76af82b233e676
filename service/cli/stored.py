"""SEARCH on the command line: the folder of a search that ran here, or the number of one on a service."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from service.cli.serve import running_service
from service.client import RemoteSearcher, ServiceClient
from service.folder import SearchFolder
from service.local import stored_outcome
from service.outcome import Outcome
from service.settings import Settings

SearchArgument = Annotated[str, typer.Argument(metavar="SEARCH", help="Folder of --out, or number on a service.")]
ServiceOption = Annotated[str | None, typer.Option(help="URL of the service. (default: the one that runs here)")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else.")]


@dataclass(frozen=True, slots=True)
class Stored:
    """A search as it is now. title: its name for people."""

    title: str
    outcome: Outcome


def is_folder(search: str) -> bool:
    """Whether SEARCH means a folder: a number is one on a service unless a folder of that name holds a search."""
    return not search.isdigit() or SearchFolder(Path(search)).holds_search


def make_client(service: str | None) -> ServiceClient:
    """A client for the service that is meant."""
    settings = Settings()
    return ServiceClient(service or running_service(settings.data_dir) or f"http://{settings.host}:{settings.port}")


async def read_stored(search: str, service: str | None) -> Stored:
    """What a folder or a service has of a search. Raises ``ValueError``, ``JournalError``, ``ServiceError``."""
    if is_folder(search):
        folder = SearchFolder(Path(search))
        kept = folder.read()
        return Stored(kept.spec.name, stored_outcome(kept.spec, folder))
    async with make_client(service) as client:
        outcome = await RemoteSearcher(client).outcome(search)
        return Stored((await client.show(search)).name, outcome)
