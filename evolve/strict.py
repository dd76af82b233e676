"""The base of documents that people write: frozen, and an unknown key is an error that names the nearest known one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

NEVER_SHOWN = ("api_key", "api_key_env", "api_base", "endpoint")
"""Fields where people write secrets by mistake: what they hold is in no message."""


class StrictModel(BaseModel):
    """A frozen model without room for misspelt keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known_keys_only(cls, data: Any) -> Any:
        if isinstance(data, dict):
            for key in data:
                if key not in cls.model_fields:
                    raise ValueError(unknown_key(key, cls.model_fields))
        return data


def unknown_key(key: object, known: Iterable[str]) -> str:
    """The message for a key that is not in ``known``, with the nearest known one or else all of them."""
    names = sorted(known)
    near = get_close_matches(str(key), names, n=1)
    return f"unknown key {key!r}: " + (f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(names)}")


_SECRET = tuple((name,) for name in NEVER_SHOWN)


def explain(error: ValidationError, *, limit: int = 8) -> str:
    """A validation error as text, one line a problem: ``tests[3].args: what is wrong, not VALUE``."""
    lines = []
    for problem in error.errors(include_url=False)[:limit]:
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"]).lstrip(".")
        message = problem["msg"].removeprefix("Value error, ")
        value = problem.get("input")
        small = isinstance(value, str | int | float | bool) and len(repr(value)) < 80
        shown = f", not {value!r}" if small and problem["loc"][-1:] not in _SECRET else ""
        lines.append(f"{where}: {message}{shown}" if where else f"{message}{shown}")
    if error.error_count() > limit:
        lines.append(f"and {error.error_count() - limit} more")
    return "\n".join(lines)
