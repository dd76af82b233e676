"""A search kept in a folder: what it is (search.json), and one journal per run (runs/ID.jsonl)."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from evolve.driver import MemoryStore
from evolve.journal import JournalStore, read_journal
from evolve.strict import StrictModel, explain
from service.spec import SearchSpec

_NAME = "search.json"


class KeptSearch(StrictModel):
    """The content of search.json. models: as the command line named them, checkpoint folders as absolute paths.

    The arms of ``spec`` name the endpoints of the last time; a checkpoint that is served again has another one.
    """

    version: Literal[1] = 1
    models: tuple[str, ...]
    spec: SearchSpec


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A folder to write into, which becomes ``path`` when the block ends; after an error nothing of it is left.

    Raises ``ValueError`` where ``path`` is there already and not an empty folder.
    """
    check_unused(path)
    path = path.resolve()  # "." has no name, and a link cannot be replaced by a folder
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.part-") as where:
        part = Path(where) / path.name
        part.mkdir()  # not the temporary folder itself, which nobody else may enter
        yield part
        part.replace(path)


def check_unused(path: Path) -> None:
    """Raises ``ValueError`` where ``path`` is there already and not an empty folder."""
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise ValueError(f"{path} exists and is not an empty folder: name another --out, or remove it")


class SearchFolder:
    """Where a search is kept. ``path`` need not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def holds_search(self) -> bool:
        return (self.path / _NAME).exists()

    def check_free(self) -> None:
        """Raises ``ValueError`` where the folder holds a search already."""
        if self.holds_search:
            raise ValueError(f"{self.path} holds a search: go on with `vpo resume {self.path}`, or name another --out")

    def begin(self, search: KeptSearch) -> None:
        """Keep what a new search is. Raises ``ValueError`` where the folder holds one already."""
        self.check_free()
        body = search.model_dump(mode="json") | {"spec": search.spec.as_json()}
        self.path.mkdir(parents=True, exist_ok=True)
        part = self.path / f"{_NAME}.part"
        part.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
        part.replace(self.path / _NAME)

    def read(self) -> KeptSearch:
        """What the search is. Raises ``ValueError`` where there is none or it cannot be read."""
        if not self.holds_search:
            raise ValueError(f"{self.path} holds no search: name a folder that `vpo search --out` has written")
        try:
            return KeptSearch.model_validate_json((self.path / _NAME).read_bytes())
        except ValidationError as error:
            raise ValueError(f"{self.path / _NAME}: {explain(error)}") from None

    def open_run(self, run_id: str) -> JournalStore:
        """A run's store. Raises :class:`evolve.journal.JournalError`."""
        return JournalStore(self._journal(run_id))

    def read_run(self, run_id: str) -> MemoryStore:
        """What is kept of a run. Raises :class:`evolve.journal.JournalError`."""
        return read_journal(self._journal(run_id))

    def written_at(self, run_id: str) -> float:
        """When something was last kept of a run, in seconds since 1970. Raises ``OSError`` before there is anything."""
        return self._journal(run_id).stat().st_mtime

    def _journal(self, run_id: str) -> Path:
        return self.path / "runs" / f"{run_id}.jsonl"
