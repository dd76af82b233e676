"""Exceptions of this package.

SandboxError
├── SandboxUnavailable      this machine cannot isolate programs; ``reason`` and ``fix`` say why and what to do
│   └── EnvironmentUnavailable   it lacks what a task needs: a package, a folder, a compiler
└── SandboxClosed           the sandbox was closed before or while it judged
"""

from __future__ import annotations


class SandboxError(Exception):
    """Base of every error that this package raises on purpose."""


class SandboxUnavailable(SandboxError):  # noqa: N818 (the name is part of the interface)
    """Isolation cannot be had here, so nothing is run.

    reason: what was tried and what the system answered. fix: what the operator can do about it.
    """

    problem = "cannot isolate programs"

    def __init__(self, reason: str, fix: str) -> None:
        super().__init__(f"{self.problem}: {reason}. Fix: {fix}")
        self.reason = reason
        self.fix = fix


class EnvironmentUnavailable(SandboxUnavailable):
    """This machine has not what a task needs; the operator can change that, so a run waits for it."""

    problem = "this machine lacks what the task needs"


class SandboxClosed(SandboxError):  # noqa: N818 (named like its sibling)
    """There is no verdict, because the sandbox was closed."""

    def __init__(self) -> None:
        super().__init__("the sandbox is closed; make a new one")
