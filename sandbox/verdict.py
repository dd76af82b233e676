"""The judgement of one program on one test."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sandbox.tiers import Tier


class Status(StrEnum):
    """How a test ended. ``INFRASTRUCTURE`` says nothing about the program: it is never scored as zero.

    ``SKIPPED``: not run, since other tests had decided against the program; it counts as not passed.
    """

    PASSED = "passed"
    WRONG = "wrong"
    ERROR = "error"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    OUTPUT_LIMIT = "output_limit"
    INFRASTRUCTURE = "infrastructure"
    SKIPPED = "skipped"


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """One test's outcome.

    name: the test's name; it is the name of the reward component.
    message: why it did not pass, for people and prompts (bounded; empty when passed).
    actual: what the program answered, as bounded text; ``None`` when it answered nothing.
    score: partial credit in [0, 1) that a task's checker gave an answer that did not pass.
    wall_s, cpu_s: seconds used by this test. peak_mb: peak resident memory, MiB.
    tier: how strongly the program was isolated; ``NONE`` where none was run.
    """

    name: str
    status: Status
    message: str = ""
    actual: str | None = None
    score: float = 0.0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_mb: float = 0.0
    tier: Tier = Tier.NONE

    @property
    def passed(self) -> bool:
        return self.status is Status.PASSED

    @property
    def reward(self) -> float:
        """The reward component in [0, 1]: 1 if passed, else ``score``."""
        return 1.0 if self.passed else self.score
