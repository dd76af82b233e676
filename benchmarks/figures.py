"""The common output of every benchmark: figures with their peers, as a table or as one JSON object.

``{"figures": [{"name", "value", "unit", "peer", "peer_value", "ratio"}], "machine": {...}}``; peer, peer_value and
ratio are null where there is no peer, and ratio = value / peer_value, both measured in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One measured number. name: stable from run to run. peer: what it is compared with, in words."""

    name: str
    value: float
    unit: str
    peer: str | None = None
    peer_value: float | None = None

    @property
    def ratio(self) -> float | None:
        """value / peer_value; ``None`` without a peer or where the peer's value is 0."""
        return self.value / self.peer_value if self.peer_value else None

    def as_json(self) -> dict[str, Any]:
        """The figure in the common form, numbers rounded to four significant digits."""
        return {
            "name": self.name,
            "value": _rounded(self.value),
            "unit": self.unit,
            "peer": self.peer,
            "peer_value": _rounded(self.peer_value),
            "ratio": _rounded(self.ratio),
        }


def run(title: str, measure: Callable[[], Sequence[Figure]]) -> None:
    """The command line of a benchmark: measure, then print a table, or JSON with ``--json``."""
    parser = argparse.ArgumentParser(description=title)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    form.add_argument("--markdown", action="store_true", help="print the table as docs/benchmarks.md has it")
    arguments = parser.parse_args()
    with redirect_stdout(sys.stderr):  # what a peer says of its progress is no figure
        figures = measure()
    if arguments.markdown:
        print(markdown(figures))
    else:
        show(title, figures, as_json=arguments.json)


def markdown(figures: Sequence[Figure]) -> str:
    """The figures as a table in Markdown."""
    rows = [("figure", "value", "unit", "peer's value", "ratio"), ("---",) * 5]
    for figure in figures:
        found = figure.as_json()
        cells = (found[key] for key in ("value", "unit", "peer_value", "ratio"))
        rows.append((f"`{figure.name}`", *("" if cell is None else str(cell) for cell in cells)))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def show(title: str, figures: Sequence[Figure], *, as_json: bool, **details: Any) -> None:
    """Print figures as a table, or as one JSON object with ``details`` beside them."""
    if as_json:
        document = {"figures": [figure.as_json() for figure in figures], "machine": machine(), **details}
        print(json.dumps(document, indent=2))
    else:
        _print_table(title, figures)


def machine() -> dict[str, Any]:
    """What the numbers were measured on; nothing that names the machine, its user or its folders."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "system": platform.system(),
        "kernel": platform.release().split("-")[0],
        "architecture": platform.machine(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory / (1 << 30), 1),
        "load_1min": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _print_table(title: str, figures: Sequence[Figure]) -> None:
    table = Table("figure", "value", "unit", "peer", "peer's value", "ratio", title=title)
    for figure in figures:
        table.add_row(*("" if value is None else str(value) for value in figure.as_json().values()))
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    console.print(", ".join(f"{name}: {value}" for name, value in machine().items()), highlight=False)
