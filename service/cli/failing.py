"""How a command ends that cannot do what it was asked: a line for people, and an exit status."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import typer
from pydantic import ValidationError
from rich.console import Console

from evolve.journal import JournalError
from evolve.manifest import ManifestError
from evolve.strict import explain
from evolve.suite import TaskError
from sandbox.errors import SandboxError
from service.cli.arms import ModelChoiceError
from service.client import ServiceError
from service.model_server import ModelServerError

USAGE, FAILED, INTERRUPTED = 2, 1, 130
_EXPECTED_ERRORS = (
    TaskError,
    ModelChoiceError,
    ModelServerError,
    ManifestError,
    ServiceError,
    SandboxError,
    JournalError,
    ValueError,
    OSError,
)

T = TypeVar("T")


def run_command(name: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What comes of ``work``; what goes wrong is said in a line, and ends the command."""
    try:
        return asyncio.run(work())
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise typer.Exit(INTERRUPTED) from None
    except _EXPECTED_ERRORS as error:
        said = explain(error) if isinstance(error, ValidationError) else error
        Console(stderr=True).print(f"vpo {name}: {said}", style="red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(USAGE if isinstance(error, ValueError) else FAILED) from None
