"""The order of tiers, and asking for one."""

from __future__ import annotations

import pytest

from sandbox import Sandbox, SandboxUnavailable, Tier


def test_tiers_are_ordered_by_strength_not_by_spelling() -> None:
    assert sorted([Tier.JAIL, Tier.NONE, Tier.FULL, Tier.CONFINED]) == list(Tier)
    assert Tier.NONE < Tier.CONFINED < Tier.JAIL < Tier.FULL
    assert Tier.FULL >= Tier.JAIL > Tier.CONFINED
    assert Tier.JAIL <= Tier.JAIL
    assert Tier("full") == "full"


async def test_the_tier_is_known_after_the_check() -> None:
    sandbox = Sandbox()

    assert sandbox.tier is Tier.NONE
    await sandbox.check()
    assert sandbox.tier >= Tier.JAIL
    await sandbox.close()


async def test_one_exact_tier_can_be_had() -> None:
    async with Sandbox(tier=Tier.JAIL) as sandbox:
        assert sandbox.tier is Tier.JAIL


async def test_no_isolation_is_never_had() -> None:
    sandbox = Sandbox(tier=Tier.NONE)

    with pytest.raises(SandboxUnavailable):
        await sandbox.check()
    await sandbox.close()
