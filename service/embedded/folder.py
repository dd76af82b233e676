"""The data folder: who may use it, under which account the servers run, where their sockets are."""

from __future__ import annotations

import fcntl
import hashlib
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ACCOUNT = "vpo-search"
_SOCKET_BYTES = 100  # a socket's path may have 107 bytes; Postgres adds a name of its own


class EmbeddedError(RuntimeError):
    """An embedded server cannot run here; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Account:
    """The user that embedded servers run as."""

    uid: int
    gid: int
    name: str

    @property
    def popen(self) -> dict[str, Any]:
        """Arguments for starting a process as this user."""
        return {} if os.geteuid() == self.uid else {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, path: Path) -> None:
        """Make the user the owner of a path."""
        if os.geteuid() != self.uid:
            os.chown(path, self.uid, self.gid)


@dataclass(frozen=True, slots=True)
class DataFolder:
    """A folder that is ready for use. sockets: a private folder with a path short enough for sockets."""

    path: Path
    sockets: Path
    account: Account

    def subfolder(self, name: str) -> Path:
        """A private subfolder for a server."""
        return _private(self.path / name, self.account)


def prepare(path: Path) -> DataFolder:
    """Create the folder if need be and check that the servers can use it. Raises :class:`EmbeddedError`."""
    path = path.expanduser().absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
        path = path.resolve()
        account = _account()
        if account.uid != os.geteuid():
            _check_traversable(path)
        return DataFolder(path, _private(_socket_folder(path), account), account)
    except OSError as error:
        raise EmbeddedError(
            f"the data folder {path} is not usable ({error}): set VPO_DATA_DIR to one that is"
        ) from None


@contextmanager
def locked(folder: DataFolder) -> Iterator[None]:
    """Hold the folder for this process. Raises :class:`EmbeddedError` where another one has it."""
    with (folder.path / "lock").open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise EmbeddedError(
                f"another service (process {holder}) uses the data folder {folder.path}: "
                "stop it, or set VPO_DATA_DIR to another folder"
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _account() -> Account:
    """This process's user; for root, an account of its own without rights, which is created once."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), str(os.geteuid()))
    try:
        entry = pwd.getpwnam(ACCOUNT)
    except KeyError:
        entry = _create_account()
    return Account(entry.pw_uid, entry.pw_gid, entry.pw_name)


def _create_account() -> pwd.struct_passwd:
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if useradd:
        arguments = ["--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
        subprocess.run([useradd, *arguments, "--shell", "/usr/sbin/nologin", ACCOUNT], capture_output=True, check=False)
    try:
        return pwd.getpwnam(ACCOUNT)
    except KeyError:
        raise EmbeddedError(
            f"Postgres does not run as root, and the account {ACCOUNT!r} cannot be created: create it "
            f"(useradd --system {ACCOUNT}), start the service as another user, or set DATABASE_URL and REDIS_URL"
        ) from None


def _check_traversable(path: Path) -> None:
    """Other people's folders are never opened up for the account: the data has to lie where it can go."""
    for folder in (path, *path.parents):
        if not folder.stat().st_mode & stat.S_IXOTH:
            raise EmbeddedError(
                f"the account {ACCOUNT!r}, which the embedded servers run as, cannot enter {folder}: "
                "set VPO_DATA_DIR to a folder such as /var/lib/vpo-search"
            )


def _socket_folder(path: Path) -> Path:
    own = path / "run"
    if len(os.fsencode(own)) <= _SOCKET_BYTES - len("/.s.PGSQL.5432"):
        return own
    name = hashlib.blake2b(os.fsencode(path), digest_size=6).hexdigest()
    return Path(tempfile.gettempdir()) / f"vpo-{os.geteuid()}-{name}"


def _private(path: Path, account: Account) -> Path:
    """A folder that only the account can enter (and that nobody else has put there)."""
    path.mkdir(mode=0o700, exist_ok=True)
    account.own(path)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != account.uid:
        raise EmbeddedError(f"{path} does not belong to {account.name}: remove it, or set VPO_DATA_DIR")
    if stat.S_IMODE(found.st_mode) != 0o700:
        path.chmod(0o700)
    return path
