"""One program in a sandbox, and what is wrong with what became of it."""

from __future__ import annotations

import asyncio

from sandbox import CallTest, Sandbox, Tier, Verdict
from tests.sandbox.hostile.table import Row
from tests.sandbox.hostile.world import World
from tests.sandbox.observe import adopting_orphans, cgroup_peak_mb, own_cgroups

NEIGHBOUR = """
import time

def keep(secret):
    with open("secret-" + secret, "w") as file:
        file.write(secret)
    time.sleep(2)
    return secret
"""
PIECE_MB = 32  # what each process of a forked memory bomb takes; with the interpreter it stays below the limit of one
# The kernel charges a control group in batches, a processor at a time.
PEAK_SLACK_MB = 1.0


async def run_jailed(row: Row, world: World, sandbox: Sandbox) -> tuple[Verdict, list[str]]:
    """The verdict, and every way in which it or the world differs from what the table allows."""
    await sandbox.check()  # before that it has no tier
    problems: list[str] = []
    with adopting_orphans() as survivors:
        if row.peak and sandbox.tier is Tier.FULL:
            others = set(own_cgroups())  # what earlier programs took, under limits of their own
            async with Sandbox(concurrency=1, tier=Tier.FULL) as alone:
                verdict = await _judge(row, world, alone)
                problems += too_large(row, cgroup_peak_mb(set(own_cgroups()) - others))
        else:
            verdict = await _judge(row, world, sandbox)
        problems += [*unexpected(row, verdict), *world.touched()]
        problems += [f"a process survived its jail: {process}" for process in survivors()]
    return verdict, problems


async def _judge(row: Row, world: World, sandbox: Sandbox) -> Verdict:
    expected = world.expected if row.goal == "forge" else "stopped"
    facts = {"tmpfs_mb": row.limits.tmpfs_mb, "piece_mb": PIECE_MB, "bound_mb": memory_bound_mb(row, sandbox.tier)}
    test = CallTest(name=row.name, args=(world.context(bare=False, scratch=".", **facts),), expected=expected)
    neighbour = asyncio.ensure_future(_neighbour(row, world, sandbox))
    try:
        return (await sandbox.grade_calls(row.source, "attack", [test], row.limits))[0]
    finally:
        neighbour.cancel()
        await asyncio.gather(neighbour, return_exceptions=True)


async def _neighbour(row: Row, world: World, sandbox: Sandbox) -> None:
    """Another run at the same time, which holds the secret."""
    if row.neighbour:
        test = CallTest(name="neighbour", args=(world.needle,), expected=world.needle)
        await sandbox.grade_calls(NEIGHBOUR, "keep", [test], row.limits)


def unexpected(row: Row, verdict: Verdict) -> list[str]:
    """What of the verdict the table does not allow."""
    problems = []
    if verdict.status not in row.ends_in(verdict.tier):
        problems.append(f"it ended as {verdict.status} ({verdict.message[:120]})")
    if row.goal == "answer" and "breached" in (verdict.actual or ""):
        problems.append("it got its way")
    if verdict.peak_mb > memory_bound_mb(row, verdict.tier):
        problems.append(f"it used {verdict.peak_mb:.0f} MiB")
    return problems


def too_large(row: Row, peak_mb: float) -> list[str]:
    """Whether the kernel charged the jail more memory than its limit, all its processes and files together."""
    if 0 < peak_mb <= row.limits.memory_mb + PEAK_SLACK_MB:
        return []
    return [f"its jail used {peak_mb:.1f} MiB of memory, of {row.limits.memory_mb}"]


def memory_bound_mb(row: Row, tier: Tier) -> float:
    """What a whole jail may take, MiB: without a control group the bound is that of a process, for each of them."""
    limits = row.limits
    return limits.memory_mb if tier is Tier.FULL else limits.memory_mb * limits.processes
