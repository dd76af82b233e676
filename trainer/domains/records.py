"""Data sets as files: JSON, JSON lines (also gzipped) and Parquet, and how their records are split."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from trainer.domains.base import DomainError

T = TypeVar("T")
_HELD_OUT_BUCKETS = 16


def is_held_out(content: str | bytes) -> bool:
    """Whether a problem with this content is reserved for evaluation: one of sixteen, by its digest."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return hashlib.blake2b(data, digest_size=4).digest()[0] % _HELD_OUT_BUCKETS == 0


def read_records(path: Path) -> list[dict[str, Any]]:
    """The records of a file. Raises :class:`DomainError` naming the file and what is wrong with it."""
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet  # only this format needs it

            records = pyarrow.parquet.read_table(path).to_pylist()
        else:
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            text = data.decode("utf-8")
            is_lines = ".jsonl" in path.suffixes
            records = [json.loads(line) for line in text.splitlines() if line.strip()] if is_lines else json.loads(text)
    except FileNotFoundError:
        raise DomainError(f"{path}: no such file") from None
    except (OSError, EOFError, ValueError, RecursionError) as error:
        raise DomainError(f"{path}: cannot be read as {path.suffix or 'JSON'}: {error}") from None
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise DomainError(f"{path}: expected a list of records (JSON, .jsonl, .jsonl.gz or .parquet)")
    return records


@dataclass(frozen=True)
class Split(Generic[T]):
    """Problems of both sides, by content: none is on both."""

    training: tuple[T, ...]
    heldout: tuple[T, ...]

    def draw(self, rng: np.random.Generator, *, heldout: bool) -> T:
        """A uniformly drawn problem of one side."""
        side = self.heldout if heldout else self.training
        return side[int(rng.integers(len(side)))]


def make_split(
    training: Sequence[T], heldout: Sequence[T] | None, content: Callable[[T], str], where: str = "the data"
) -> Split[T]:
    """Both sides from one or two lists.

    heldout: ``None`` reserves one of sixteen problems of ``training`` by the digest of its ``content``. Training
    problems whose content is held out are left out. Raises :class:`DomainError` where a side is empty.
    """
    if heldout is None:
        heldout = [problem for problem in training if is_held_out(content(problem))]
    reserved = {content(problem) for problem in heldout}
    kept = tuple(problem for problem in training if content(problem) not in reserved)
    for name, side in (("training", kept), ("held-out", heldout)):
        if not side:
            raise DomainError(f"{where} leaves no {name} problem: give more data, or a file for each side")
    return Split(kept, tuple(heldout))
