"""The table of hostile programs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from sandbox import Limits, Tier

PROGRAMS = Path(__file__).with_name("programs")
LIMITS = Limits(wall_s=20, cpu_s=10, memory_mb=128, processes=32, output_kb=64, tmpfs_mb=16)
SHORT = {"wall_s": 1.5, "cpu_s": 1}
CONTROLS = ("breached", "root", "maybe", "none")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One program; ``table.yaml`` explains the fields."""

    name: str
    kind: str
    ends: list[str]
    control: str
    goal: str = "answer"
    limits: Limits = LIMITS
    peak: bool = False
    core: bool = False
    neighbour: bool = False
    confined: dict[str, Any] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """The program; a file that is called ``source_...`` builds it."""
        text = (PROGRAMS / f"{self.name}.py").read_text(encoding="utf-8")
        if not self.name.startswith("source_"):
            return text
        space: dict[str, Any] = {}
        exec(text, space)
        return str(space["source"]())

    def ends_in(self, tier: Tier) -> list[str]:
        """Verdicts allowed in ``tier``.

        In the tier confined a fork is an error, and files lie on a real disk, where filling it up may take too long.
        """
        return [*self.confined.get("ends", self.ends), "error", "timeout"] if tier is Tier.CONFINED else self.ends

    def not_stopped_in(self, tier: Tier) -> str:
        """Why ``tier`` is known not to stop it, else an empty text."""
        return self.confined.get("breaches", "") if tier is Tier.CONFINED else ""


def load_table() -> dict[str, Row]:
    """Every row by name. Raises :class:`ValueError` naming the row with an unknown key or value."""
    kinds = yaml.safe_load(Path(__file__).with_name("table.yaml").read_text(encoding="utf-8"))
    return {name: _row(name, kind, dict(fields)) for kind, rows in kinds.items() for name, fields in rows.items()}


def _row(name: str, kind: str, fields: dict[str, Any]) -> Row:
    changes = {**(SHORT if fields.pop("short", False) else {}), **fields.pop("limits", {})}
    try:
        row = Row(name=name, kind=kind, limits=replace(LIMITS, **changes), **fields)
    except TypeError as error:
        raise ValueError(f"hostile program {name}: {error}") from error
    if row.control not in CONTROLS or row.goal not in ("answer", "forge"):
        raise ValueError(f"hostile program {name}: control {row.control!r}, goal {row.goal!r}")
    return row
