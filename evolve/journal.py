"""``JournalStore``: a run in one file, a line of JSON for each thing that happened, appended to and never rewritten.

What was saved survives the death of the process at any moment; a machine that loses power may lose the last lines. A
last line that is torn off is dropped: it was never saved. One process writes a journal at a time; anybody may read it.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import TypeAdapter, ValidationError

from evolve.driver import MemoryStore
from evolve.program import IterationRecord, Program, Reply


class JournalError(RuntimeError):
    """A journal cannot be read or written; the message names the file, and the line if it is about one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Line:
    """One of: the seed program; calls lost (``iteration``, ``lost``); a reply (``iteration``); a record without it."""

    seed: Program | None = None
    iteration: int | None = None
    lost: int | None = None
    reply: Reply | None = None
    record: IterationRecord | None = None


_LINE: TypeAdapter[_Line] = TypeAdapter(_Line)


def read_journal(path: Path) -> MemoryStore:
    """The run that a journal holds, empty where there is no such file. Raises :class:`JournalError`."""
    return _read(path)[0]


class JournalStore(MemoryStore):
    """A :class:`evolve.driver.RunStore` in the file ``path``, which is made where it is missing, with its folders.

    Raises :class:`JournalError` where the file is damaged or another process writes it. ``close`` it after use, or use
    it as a context manager.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            known, whole = _read(path)
            os.ftruncate(self._file, whole)
        except BlockingIOError:
            self.close()
            raise JournalError(
                f"{path} is being written by another process: wait until that ends, or stop it"
            ) from None
        except BaseException:
            self.close()
            raise
        self.seed, self.records = known.seed, known.records
        self.replies, self.lost_calls = known.replies, known.lost_calls

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the file free for other processes."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    async def save_seed(self, program: Program) -> None:
        self._append(_Line(seed=program))
        await super().save_seed(program)

    async def save_lost_calls(self, iteration: int, count: int) -> None:
        self._append(_Line(iteration=iteration, lost=count))
        await super().save_lost_calls(iteration, count)

    async def save_reply(self, iteration: int, reply: Reply) -> None:
        self._append(_Line(iteration=iteration, reply=reply))
        await super().save_reply(iteration, reply)

    async def save_iteration(self, record: IterationRecord) -> None:
        # Checked and noted in memory first: what the file holds must always be a run.
        reply = self.replies.get(record.iteration)
        await super().save_iteration(record)
        stored = replace(record, reply=None) if reply == record.reply else record
        self._append(_Line(record=stored))

    def _append(self, line: _Line) -> None:
        text = _LINE.dump_json(line, exclude_defaults=True) + b"\n"
        written = os.write(self._file, text)
        if written < len(text):  # the disk is full
            os.ftruncate(self._file, os.fstat(self._file).st_size - written)
            raise JournalError(f"a line of {len(text)} bytes could not be written: make room on the disk, then resume")


def _read(path: Path) -> tuple[MemoryStore, int]:
    """What a journal holds, and the bytes of its whole lines."""
    try:
        content = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error}") from None
    whole = content.rfind(b"\n") + 1
    store = MemoryStore()
    for number, text in enumerate(content[:whole].split(b"\n")[:-1], start=1):
        try:
            _take(store, _LINE.validate_json(text))
        except (ValidationError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise JournalError(f"{path}, line {number}, is no line of a run's journal: {reason}") from None
    return store, whole


def _take(store: MemoryStore, line: _Line) -> None:
    """Note what a line says, as the store that wrote it did."""
    if line.seed is not None:
        store.seed = line.seed
    elif line.record is not None:
        record = line.record
        if record.iteration != len(store.records) + 1:
            raise ValueError(f"iteration {record.iteration} cannot follow {len(store.records)}")
        reply = store.replies.pop(record.iteration, None)
        store.lost_calls.pop(record.iteration, None)
        store.records.append(replace(record, reply=reply) if record.reply is None else record)
    elif line.iteration is not None and line.reply is not None:
        store.replies[line.iteration] = line.reply
        store.lost_calls.pop(line.iteration, None)
    elif line.iteration is not None and line.lost is not None:
        store.lost_calls[line.iteration] = line.lost
    else:
        raise ValueError("it says nothing")
