"""What Alembic looks at when it compares the database with the models."""

from __future__ import annotations

from typing import Any


def include_object(entry: Any, name: str | None, kind: str, reflected: bool, compare_to: Any) -> bool:
    """Everything but procrastinate's tables and what belongs to them."""
    table = entry if kind == "table" else getattr(entry, "table", None)
    names = (name, getattr(table, "name", None))
    return not any(str(found or "").startswith("procrastinate_") for found in names)
