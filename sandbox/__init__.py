"""Judging untrusted programs: isolation, limits, and one verdict per test case.

Imports nothing else of this project.
"""

from sandbox.cases import CallTest, EvaluatorResult, StdioTest
from sandbox.errors import SandboxClosed, SandboxError, SandboxUnavailable
from sandbox.limits import Limits
from sandbox.runner import Sandbox
from sandbox.verdict import Status, Verdict

__all__ = [
    "CallTest",
    "EvaluatorResult",
    "Limits",
    "Sandbox",
    "SandboxClosed",
    "SandboxError",
    "SandboxUnavailable",
    "Status",
    "StdioTest",
    "Verdict",
]
