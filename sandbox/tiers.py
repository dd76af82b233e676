"""How strongly programs are isolated here: four tiers, ordered."""

from __future__ import annotations

from enum import StrEnum


class Tier(StrEnum):
    """Tiers compare by strength: ``NONE < CONFINED < JAIL < FULL``. What each stops is told in docs/sandbox.md.

    FULL: jails whose memory and processes a cgroup bounds.
    JAIL: a bubblewrap jail with its own namespaces, a read-only system, seccomp and resource limits.
    CONFINED: no namespaces: Landlock, seccomp, resource limits, and another user where root starts it.
    NONE: nothing; no program is run.
    """

    NONE = "none"
    CONFINED = "confined"
    JAIL = "jail"
    FULL = "full"

    @property
    def strength(self) -> int:
        """0 for :attr:`NONE` up to 3."""
        return list(Tier).index(self)

    # A string compares alphabetically unless every comparison is told otherwise.
    def __lt__(self, other: str) -> bool:
        return self.strength < Tier(other).strength

    def __le__(self, other: str) -> bool:
        return self.strength <= Tier(other).strength

    def __gt__(self, other: str) -> bool:
        return self.strength > Tier(other).strength

    def __ge__(self, other: str) -> bool:
        return self.strength >= Tier(other).strength
