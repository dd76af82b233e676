"""Evolutionary search over programs on reward vectors.

Pure where it can be: no database, no web framework, no torch. May import ``sandbox``.

``from evolve import Search, run``: the names below are imported when they are first used, so that a part that needs
only the chain format or the prompts (the trainer does) loads nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evolve.config import SearchConfig
    from evolve.ensemble import Ensemble
    from evolve.library import Result, run, run_async
    from evolve.models import OpenAIModel
    from evolve.search import Search
    from evolve.task import load_suite, load_task

__all__ = [
    "Ensemble",
    "OpenAIModel",
    "Result",
    "Search",
    "SearchConfig",
    "load_suite",
    "load_task",
    "run",
    "run_async",
]

_HOMES = {
    "Ensemble": "evolve.ensemble",
    "OpenAIModel": "evolve.models",
    "Result": "evolve.library",
    "Search": "evolve.search",
    "SearchConfig": "evolve.config",
    "load_suite": "evolve.task",
    "load_task": "evolve.task",
    "run": "evolve.library",
    "run_async": "evolve.library",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
