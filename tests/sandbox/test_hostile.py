"""Every hostile program in a jail, where it must not get its way, and bare, where it must."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import CallTest, Limits, Sandbox, SandboxUnavailable, Tier
from tests.sandbox.hostile.bare import bare_breaches, clear, must_breach
from tests.sandbox.hostile.jailed import run_jailed
from tests.sandbox.hostile.table import PROGRAMS, load_table
from tests.sandbox.hostile.world import World, new_world
from tests.sandbox.test_cgroups import needs_cgroup

TABLE = load_table()
DOCS = Path(__file__).resolve().parents[2] / "docs" / "sandbox.md"


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


@pytest.fixture(scope="module")
def lower_tiers(best: Sandbox) -> Iterator[list[Sandbox]]:
    """One sandbox of each tier below the best, as far as this machine can have it."""
    with asyncio.Runner() as runner:
        runner.run(best.check())
        lower = [tier for tier in (Tier.JAIL, Tier.CONFINED) if tier < best.tier]
        sandboxes = [Sandbox(concurrency=2, tier=tier, minimum_tier=Tier.CONFINED) for tier in lower]
        yield [sandbox for sandbox in sandboxes if runner.run(_can_be_had(sandbox))]
        for sandbox in sandboxes:
            runner.run(sandbox.close())


async def _can_be_had(sandbox: Sandbox) -> bool:
    try:
        await sandbox.check()
    except SandboxUnavailable:
        return False
    return True


def test_the_table_names_every_program() -> None:
    assert sorted(TABLE) == sorted(path.stem for path in PROGRAMS.glob("*.py"))


def test_the_docs_tell_what_there_is_and_what_confinement_does_not_stop() -> None:
    text = DOCS.read_text(encoding="utf-8")

    for kind, count in Counter(row.kind for row in TABLE.values()).items():
        assert f"| {kind} | {count} |" in text
    for row in TABLE.values():
        reason = row.not_stopped_in(Tier.CONFINED)
        assert not reason or f"`{row.name}`: {reason}" in text


@pytest.mark.parametrize("name", TABLE)
async def test_the_best_tier_stops_it(name: str, world: World, best: Sandbox) -> None:
    verdict, problems = await run_jailed(TABLE[name], world, best)

    assert not problems, verdict


@needs_cgroup
async def test_what_another_jail_took_does_not_count(world: World, best: Sandbox) -> None:
    hog = CallTest(name="hog", expected=96)
    limits = Limits(memory_mb=256)
    async with Sandbox(concurrency=1, tier=Tier.FULL) as other:
        (verdict,) = await other.grade_calls("def f(): return len(b'x' * (96 << 20)) >> 20", "f", [hog], limits)
        _, problems = await run_jailed(TABLE["memory_forked"], world, best)
        taken = other.peak_mb

    assert verdict.status == "passed"
    assert taken > 90
    assert not problems


@pytest.mark.parametrize(
    "name", [name if row.core else pytest.param(name, marks=pytest.mark.soak) for name, row in TABLE.items()]
)
async def test_lower_tiers_stop_what_they_should(name: str, world: World, lower_tiers: list[Sandbox]) -> None:
    if not lower_tiers:
        pytest.skip("no lower tier can be had here")
    row = TABLE[name]
    for sandbox in lower_tiers:
        verdict, problems = await run_jailed(row, world, sandbox)

        assert not problems or row.not_stopped_in(sandbox.tier), (verdict, problems)


@pytest.mark.parametrize("name", [name for name, row in TABLE.items() if row.control != "none"])
def test_it_breaches_a_bare_interpreter(name: str, world: World) -> None:
    breaches = bare_breaches(TABLE[name], world)

    assert breaches or not must_breach(TABLE[name])
