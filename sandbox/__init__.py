"""Judging untrusted programs: isolation, limits, and one verdict per test case.

Imports nothing else of this project. A candidate runs in a bubblewrap jail of its own: no network, a read-only system,
a bounded scratch space, an empty environment, a seccomp filter, no privilege, limits on everything; inside, a trusted
supervisor forks one process per test. Expected answers and comparisons never enter the jail.

NOT covered: holes in the kernel; timing and other side channels; without a writable cgroup (tier ``jail``), memory of
all processes together below ``processes`` times ``memory_mb``; a candidate that misleads a task's own evaluator, with
which it shares a process (tests tasks are immune to that).
"""

from sandbox.cases import CallTest, EvaluatorResult, StdioTest
from sandbox.errors import EnvironmentUnavailable, SandboxClosed, SandboxError, SandboxUnavailable
from sandbox.evaluation import EvaluatorSettings
from sandbox.limits import Limits
from sandbox.runner import Sandbox
from sandbox.tiers import Tier
from sandbox.verdict import Status, Verdict

__all__ = [
    "CallTest",
    "EnvironmentUnavailable",
    "EvaluatorResult",
    "EvaluatorSettings",
    "Limits",
    "Sandbox",
    "SandboxClosed",
    "SandboxError",
    "SandboxUnavailable",
    "Status",
    "StdioTest",
    "Tier",
    "Verdict",
]
