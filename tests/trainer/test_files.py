"""One process at a time holds a folder, whatever the file system can do."""

from __future__ import annotations

import errno
import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from trainer.files import FolderError, FolderInUseError, held


def test_a_folder_is_held_by_one_and_can_be_held_again(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "run"
    with held(folder), pytest.raises(FolderInUseError, match="is being written by another process"), held(folder):
        pass
    with held(folder):
        pass


def test_programs_that_are_started_do_not_keep_the_folder(tmp_path: Path) -> None:
    with held(tmp_path):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
    try:
        with held(tmp_path):
            assert child.poll() is None
    finally:
        child.communicate(b"\n")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(FolderError, match=r"file/run cannot be written \(Not a directory\)"),
        held(tmp_path / "file" / "run"),
    ):
        pass


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / ".lock").mkdir()  # root may write anywhere else
    with pytest.raises(FolderError, match="cannot be written"), held(tmp_path):
        pass


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOLCK])
def test_file_systems_without_locks_can_be_trained_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(code, "no locks")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with held(tmp_path):
        pass
