"""Results as tables for the terminal."""

from __future__ import annotations

from typing import Any

from rich.markup import escape
from rich.table import Table

Figures = dict[str, dict[str, float]]


def interval_text(figure: dict[str, float]) -> str:
    """``.512 [.480, .544]``."""
    mean, low, high = (_short(figure[key]) for key in ("mean", "low", "high"))
    return f"{mean} [{low}, {high}]"


def short_interval(figure: dict[str, float]) -> str:
    """``.512 ±.032``: the mean and half the interval's width, for tables with many columns."""
    return f"{_short(figure['mean'])} ±{_short((figure['high'] - figure['low']) / 2)}"


def _short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0") if 0 <= value < 1 else f"{value:.3f}"


def figures_table(result: dict[str, Any]) -> Table:
    """pass@k, best@k and E_w[best@k] by k, with 95 % intervals over problems."""
    title = f"{result['name']}: {result['problems']} held-out problems, {result['m']} answers a generation"
    figures: Figures = result["figures"]
    table = Table("k", "pass@k", "best@k", escape("E_w[best@k]"), title=title)
    for k in (name.removeprefix("pass@") for name in figures if name.startswith("pass@")):
        table.add_row(k, *(interval_text(figures[name]) for name in (f"pass@{k}", f"best@{k}", f"E_w[best@{k}]")))
    table.caption = f"reward diversity {interval_text(figures['diversity'])}"
    return table


def positions_table(result: dict[str, Any]) -> Table:
    """What each place of the chain contributes."""
    rows = result["positions"]
    names = list(rows[0].get("components", {}))
    table = Table("place", "given", "scalar", "gain in E_w", "distance", *names[:8], title="answers by place")
    for row in rows:
        values = [_short(row["components"][name]) for name in names[:8]]
        figures = (_short(row[key]) for key in ("given", "scalar", "gain", "distance"))
        table.add_row(str(row["place"]), *figures, *values)
    return table
