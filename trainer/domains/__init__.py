"""Domains: a generator of problems, prompts, a parser of answers, and a reward vector."""

from __future__ import annotations

from trainer.domains.base import Domain
from trainer.domains.minicode.domain import MinicodeDomain

DOMAINS: dict[str, type[Domain]] = {"minicode": MinicodeDomain}


def make_domain(name: str) -> Domain:
    """The domain of that name; a :class:`KeyError` lists the known ones."""
    if name not in DOMAINS:
        raise KeyError(f"unknown domain {name!r}; known: {', '.join(sorted(DOMAINS))}")
    return DOMAINS[name]()
