"""Every hostile program in a jail, where it must not get its way, and bare, where it must."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import Sandbox
from tests.sandbox.hostile.bare import bare_breaches, clear, must_breach
from tests.sandbox.hostile.jailed import run_jailed
from tests.sandbox.hostile.table import PROGRAMS, load_table
from tests.sandbox.hostile.world import World, new_world

TABLE = load_table()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with new_world(tmp_path) as ready:
        yield ready
    clear(tmp_path / "scratch")


@pytest.fixture(scope="module")
def best() -> Iterator[Sandbox]:
    """One sandbox of the best tier that there is here."""
    sandbox = Sandbox(concurrency=2)
    yield sandbox
    asyncio.run(sandbox.close())


def test_the_table_names_every_program() -> None:
    assert sorted(TABLE) == sorted(path.stem for path in PROGRAMS.glob("*.py"))


@pytest.mark.parametrize("name", TABLE)
async def test_the_best_tier_stops_it(name: str, world: World, best: Sandbox) -> None:
    verdict, problems = await run_jailed(TABLE[name], world, best)

    assert not problems, verdict


@pytest.mark.parametrize("name", [name for name, row in TABLE.items() if row.control != "none"])
def test_it_breaches_a_bare_interpreter(name: str, world: World) -> None:
    breaches = bare_breaches(TABLE[name], world)

    assert breaches or not must_breach(TABLE[name])
