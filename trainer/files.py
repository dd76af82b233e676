"""Folders that are either whole or not there: written beside their place, synced, hashed, renamed."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DIGESTS = "digests.json"
LOCK = ".lock"
_CHUNK = 2**20


class FolderError(RuntimeError):
    """A folder cannot be written; the message says why and what to do."""


class FolderInUseError(FolderError):
    """Another process writes the folder."""


_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)
"""What file systems without locks answer, as some of clusters are."""


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other processes from holding ``folder``, which is made where it is missing. The kernel lets go of it when
    this process ends, however it ends; programs that it starts do not inherit the lock, but a mere fork does.

    Raises :class:`FolderInUseError`, and :class:`FolderError` where the folder cannot be written. On a file system
    without locks nothing is kept off.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("a", encoding="utf-8")
    except OSError as error:
        raise FolderError(f"{folder} cannot be written ({error.strerror}): take another `output`") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderInUseError(
                f"{folder} is being written by another process: wait until it ends, stop it, or take another `output`"
            ) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        yield


@contextmanager
def replacing(folder: Path, *, digests: bool = False) -> Iterator[Path]:
    """A temporary folder that takes the place of ``folder`` when the block succeeds.

    digests: write ``digests.json``, the SHA-256 of every file, into it, for :func:`is_whole`.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary, old = folder.with_name(f".{folder.name}.writing"), folder.with_name(f".{folder.name}.old")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    yield temporary
    if digests:
        table = {str(path.relative_to(temporary)): digest(path) for path in _files(temporary)}
        (temporary / DIGESTS).write_text(json.dumps(table, indent=2), encoding="utf-8")
    for path in _files(temporary):
        path.chmod(0o644)  # safetensors writes files that only their owner can read
        sync(path)
    sync(temporary)
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    temporary.rename(folder)
    sync(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Replace a file's contents at once."""
    temporary = path.with_name(f".{path.name}.writing")
    temporary.write_text(text, encoding="utf-8")
    sync(temporary)
    temporary.rename(path)


def is_whole(folder: Path) -> bool:
    """Whether a folder has digests and every file that they name is there and unchanged."""
    try:
        table = json.loads((folder / DIGESTS).read_text(encoding="utf-8"))
        return bool(table) and all(digest(folder / name) == value for name, value in table.items())
    except (OSError, ValueError, AttributeError):
        return False


def digest(path: Path) -> str:
    """The SHA-256 of a file, hexadecimal."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()


def sync(path: Path) -> None:
    """Have a file or folder reach the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())
