"""Unprivileged user ids for jails that root starts: a fresh one for each jail.

The kernel counts a user's processes over the whole machine, so two jails with one uid would eat each other's process
limit. Nothing else depends on the ids being different: namespaces already keep jails apart.
"""

from __future__ import annotations

import itertools
import os
from functools import cache
from pathlib import Path

PER_PROCESS = 256
HIGH_BASE = 1_879_048_192  # far above any real user, subordinate range or container's range
LOW_BASE, LOW_COUNT = 61_184, 4_096  # the range that systemd keeps for transient services

_counter = itertools.count()


def next_uid() -> int:
    """A uid that no other jail of this process has, and no other process's jails are likely to have."""
    number = next(_counter) % PER_PROCESS
    if _all_ids_exist():
        return HIGH_BASE + (os.getpid() % (1 << 20)) * PER_PROCESS + number
    return LOW_BASE + (os.getpid() * 7 + number) % LOW_COUNT


@cache
def _all_ids_exist() -> bool:
    """Whether this user namespace maps the high range (a container's usually maps 65,536 ids)."""
    try:
        lines = Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()
    except OSError:
        return False
    return any(int(line.split()[0]) == 0 and int(line.split()[2]) >= (1 << 31) + (1 << 28) for line in lines)
