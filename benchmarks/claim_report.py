"""What :mod:`benchmarks.claim` says of its runs: curves and figures with intervals, differences, table, CSV and PNG."""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.figures import Figure
from benchmarks.studies import CURVES, Floats, Run, listed, passed, problem_table, upto
from evolve.metrics import bootstrap_interval, mean_interval

Runs = Mapping[str, Mapping[str, Sequence[Run]]]

_ENDS = ("mean", "low", "high")
_CURVE_FIELDS = [curve if end == "mean" else f"{curve}_{end}" for curve in CURVES for end in _ENDS]
CSV_FIELDS = ("arm", "method", "t", "runs", "solved", "evaluations", "tokens", *_CURVE_FIELDS)


def summarise(runs: Runs, horizon: int) -> dict[str, Any]:
    """Curves and totals of every arm and method, and differences over the same problems.

    runs: by arm and method. curves: each value as lists ``mean``, ``low`` and ``high`` for t = 0..horizon.
    """
    tables = {
        (arm, method): {name: problem_table(found, name, horizon) for name in CURVES}
        for arm, methods in runs.items()
        for method, found in methods.items()
    }
    series = [_series(arm, method, runs[arm][method], tables[arm, method], horizon) for arm, method in tables]
    return {"series": series, "differences": _differences(tables)}


def _series(arm: str, method: str, runs: Sequence[Run], tables: Mapping[str, Floats], horizon: int) -> dict[str, Any]:
    curves = {}
    for name, table in tables.items():
        low, high = bootstrap_interval(table)
        ends = {"mean": table.mean(axis=0), "low": low, "high": high}
        curves[name] = {key: np.round(values, 4).tolist() for key, values in ends.items()}
    spent = {
        name: np.sum([upto(run[key], horizon) for run in runs], axis=0).astype(int).tolist()
        for name, key in (("evaluations", "evaluated"), ("tokens", "tokens"))
    }
    solved = np.sum([passed(run, horizon) for run in runs], axis=0).astype(int).tolist()
    return {"arm": arm, "method": method, "runs": len(runs), "solved": solved, **spent, "curves": curves}


def _differences(tables: Mapping[tuple[str, str], Mapping[str, Floats]]) -> list[dict[str, Any]]:
    """At the end, over the same problems: evolution minus sampling for each arm, and later arms minus earlier ones."""
    keys = list(tables)
    methods = list(dict.fromkeys(method for _, method in keys))
    arms = list(dict.fromkeys(arm for arm, _ in keys))
    pairs = [((arm, methods[0]), (arm, other)) for arm in arms for other in methods[1:]]
    pairs += [((b, m), (a, m)) for m in methods for i, a in enumerate(arms) for b in arms[i + 1 :]]
    found = []
    for more, less in pairs:
        ends = {name: tables[more][name][:, -1] - tables[less][name][:, -1] for name in CURVES}
        intervals = {name: listed(mean_interval(values)) for name, values in ends.items()}
        found.append({"of": " ".join(more), "minus": " ".join(less), **intervals})
    return found


def figures(claim: Mapping[str, Any]) -> list[Figure]:
    """The comparison in the common form: evolution with repeated sampling as its peer, then totals and differences."""
    found: list[Figure] = []
    rows = {(row["arm"], row["method"]): row for row in claim["series"]}
    for (arm, method), row in rows.items():
        peer = rows.get((arm, "sample")) if method != "sample" else None
        for name in CURVES:
            mean, low, high = (row["curves"][name][key][-1] for key in _ENDS)
            theirs = peer["curves"][name]["mean"][-1] if peer else None
            label = f"{arm}_{method}_{name}"
            of = "repeated sampling" if peer else None
            found.append(Figure(name=label, value=mean, unit="share", peer=of, peer_value=theirs))
            found.append(Figure(name=f"{label}_low", value=low, unit="share"))
            found.append(Figure(name=f"{label}_high", value=high, unit="share"))
        for name, unit in (("solved", "runs"), ("evaluations", "programs"), ("tokens", "tokens")):
            found.append(Figure(name=f"{arm}_{method}_{name}", value=float(row[name][-1]), unit=unit))
    return found


def print_table(claim: Mapping[str, Any]) -> None:
    """One row per arm and method, then the differences."""
    console = Console(width=None if sys.stdout.isatty() else 140)
    table = Table("arm", "method", "solved", "pass@t", "best@t", "coverage", "judged", "tokens")
    for row in claim["series"]:
        shares = [_ends(*(row["curves"][name][key][-1] for key in _ENDS)) for name in CURVES]
        table.add_row(
            row["arm"],
            row["method"],
            f"{row['solved'][-1]} of {row['runs']}",
            *shares,
            f"{row['evaluations'][-1]:,}",
            f"{row['tokens'][-1]:,}",
        )
    console.print(table)
    differences = Table("difference", "pass@t", "best@t", "coverage")
    for row in claim["differences"]:
        differences.add_row(f"{row['of']} - {row['minus']}", *(_ends(*row[name]) for name in CURVES))
    console.print(differences)


def _ends(mean: float, low: float, high: float) -> str:
    return f"{mean:.3f} [{low:.3f}, {high:.3f}]"


def write_csv(claim: Mapping[str, Any], path: Path) -> None:
    """One row per arm, method and iteration; columns :data:`CSV_FIELDS`."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(CSV_FIELDS)
        for row in claim["series"]:
            columns = [row["curves"][name][key] for name in CURVES for key in _ENDS]
            for t, (solved, evaluations, tokens) in enumerate(
                zip(row["solved"], row["evaluations"], row["tokens"], strict=True)
            ):
                shares = [column[t] for column in columns]
                writer.writerow((row["arm"], row["method"], t, row["runs"], solved, evaluations, tokens, *shares))


def write_png(claim: Mapping[str, Any], path: Path) -> None:
    """pass@t and best@t over the iterations: a colour per arm, evolution solid and sampling dashed, with intervals."""
    from matplotlib.figure import Figure as Picture  # heavy, and not needed to read a finished comparison

    picture = Picture(figsize=(11, 4.5), layout="constrained", dpi=120)
    arms = list(dict.fromkeys(row["arm"] for row in claim["series"]))
    for axes, name, title in zip(picture.subplots(1, 2), CURVES, ("pass@t", "best@t"), strict=False):
        for row in claim["series"]:
            curve, colour = row["curves"][name], f"C{arms.index(row['arm'])}"
            t, style = range(len(curve["mean"])), "--" if row["method"] == "sample" else "-"
            axes.plot(t, curve["mean"], style, color=colour, label=f"{row['arm']}, {row['method']}", linewidth=2)
            axes.fill_between(t, curve["low"], curve["high"], color=colour, alpha=0.08, linewidth=0)
        axes.set(xlabel="iteration t", title=f"{title}, mean over problems, 95 % interval", ylim=(0, 1.02))
        axes.grid(alpha=0.3)
    picture.axes[1].legend(loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(path)
