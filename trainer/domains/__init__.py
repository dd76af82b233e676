"""Domains: a generator or loader of problems, prompts, a parser of answers, and a reward vector."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from evolve.strict import StrictModel, explain, unknown_key
from trainer.domains.base import Domain, DomainError
from trainer.domains.code.domain import CodeDomain, CodeOptions
from trainer.domains.collinear import CollinearDomain
from trainer.domains.eureqa import EureqaDomain
from trainer.domains.maze.domain import MazeDomain, MazeOptions
from trainer.domains.minicode.domain import MinicodeDomain
from trainer.domains.musique import MusiqueDomain
from trainer.domains.openevolve import OpenEvolveDomain, OpenEvolveOptions
from trainer.domains.textual import TextOptions
from trainer.domains.toolrl import ToolDomain


class NoOptions(StrictModel):
    """The options of a domain that has none."""


DOMAINS: dict[str, tuple[type[StrictModel], Callable[[Any], Domain]]] = {
    "code": (CodeOptions, CodeDomain),
    "collinear": (TextOptions, CollinearDomain),
    "eureqa": (TextOptions, EureqaDomain),
    "maze": (MazeOptions, MazeDomain),
    "minicode": (NoOptions, lambda _: MinicodeDomain()),
    "musique": (TextOptions, MusiqueDomain),
    "openevolve": (OpenEvolveOptions, OpenEvolveDomain),
    "toolrl": (TextOptions, ToolDomain),
}
"""By name: the model of a domain's options, and what makes the domain of them."""


def make_domain(name: str, options: Mapping[str, Any] | None = None) -> Domain:
    """The domain of that name with its options. Raises :class:`DomainError` for an unknown name or option."""
    if name not in DOMAINS:
        raise DomainError(f"domain: {unknown_key(name, DOMAINS)}")
    model, make = DOMAINS[name]
    try:
        return make(model.model_validate(dict(options or {})))
    except ValidationError as error:
        raise DomainError(f"options of domain {name!r}: {explain(error)}") from None
