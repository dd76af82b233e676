"""What comes of a search, wherever it ran: the common ground of searching in this process and on a service."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from service.schemas import Curve, RunState
from service.spec import SearchSpec

Watch = Callable[[RunState], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """curve: of every arm. runs: their last states. best: source of each run's best program, by the run's id.

    rejected: by the arm's name, how many answers became no program for which reason.
    """

    curve: Curve
    runs: list[RunState]
    best: dict[str, str] = field(default_factory=dict)
    rejected: dict[str, Counter[str]] = field(default_factory=dict)


class Searcher(Protocol):
    """Something that carries out a search."""

    async def __call__(self, spec: SearchSpec, watch: Watch, stop: asyncio.Event) -> Outcome:
        """Carry out ``spec`` to its end, or until ``stop`` is set. watch: told each change of a run."""
        ...
