"""A comparison's results: the paper's table with intervals, whether compute was matched, CSV, JSON and a picture."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from rich.markup import escape
from rich.table import Table

from evolve.randomness import generator
from trainer.comparison import CompareConfig, Run
from trainer.files import write_text
from trainer.tables import short_interval

matplotlib.use("Agg")
import matplotlib.pyplot as plt

MATCHED = 0.05
"""Arms are matched where their generated tokens lie within this share of their mean."""

_RESAMPLES = 1000


def two_level_interval(values: np.ndarray, seed: int = 0) -> dict[str, float]:
    """Mean of (seeds, problems) values with a 95 % bootstrap interval that resamples both seeds and problems.

    With three seeds the part that comes from seeds is itself known only roughly.
    """
    seeds, problems = values.shape
    rng = generator(seed, "two levels")
    rows = rng.integers(seeds, size=(_RESAMPLES, seeds))
    weights = rng.multinomial(problems, np.full(problems, 1 / problems), size=_RESAMPLES) / problems
    means = np.einsum("rp,rp->r", values[rows].mean(axis=1), weights)
    low, high = np.quantile(means, [0.025, 0.975])
    return {"mean": float(values.mean()), "low": float(low), "high": float(high)}


def summarise(config: CompareConfig, runs: Sequence[Run], base: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """All figures of the finished runs; ``base``: the start's own evaluation at each number of answers."""
    arms: dict[str, Any] = {}
    for m, result in sorted(base.items()):
        arms[f"start (m={m})"] = _arm([result])
    for name in config.arms:
        results = [result for run in runs if run.arm == name and (result := run.result) is not None]
        if results:
            arms[name] = _arm(results)
    trained = {name: arm["tokens"] for name, arm in arms.items() if arm["tokens"]}
    spread = max(abs(tokens / np.mean(list(trained.values())) - 1) for tokens in trained.values()) if trained else 0.0
    return {
        "name": config.name,
        "problems": config.evaluation.problems,
        "answers": config.evaluation.answers,
        "arms": arms,
        "token_spread": float(spread),
        "matched": bool(spread <= MATCHED),
    }


def _arm(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    names = results[0]["by_problem"][0].keys()
    tables = {name: np.array([[row[name] for row in result["by_problem"]] for result in results]) for name in names}
    training = [result["training"] for result in results if "training" in result]
    return {
        "m": results[0]["m"],
        "seeds": len(results),
        "figures": {name: two_level_interval(table) for name, table in tables.items()},
        "by_seed": {name: table.mean(axis=1).tolist() for name, table in tables.items()},
        "positions": results[0]["positions"],
        **{key: _mean(training, key) for key in ("tokens", "steps", "cpu_s", "answers")},
        "evaluation_tokens": float(np.mean([result["generated_tokens"] for result in results])),
    }


def _mean(rows: Sequence[dict[str, float]], key: str) -> float:
    return float(np.mean([row[key] for row in rows])) if rows else 0.0


def figure_names(summary: dict[str, Any]) -> list[str]:
    """best@k by k, then E_w[best@k] at the largest k, pass@k there, and diversity.

    pass@k only where anything passes: nothing does where objectives are in conflict.
    """
    answers = summary["answers"]
    tables = [arm["figures"] for arm in summary["arms"].values()]
    best = [name for name in tables[0] if name.startswith("best@")]
    passes = [f"pass@{answers}"] if any(table[f"pass@{answers}"]["mean"] for table in tables) else []
    return [*best, f"E_w[best@{answers}]", *passes, "diversity"]


def comparison_table(summary: dict[str, Any]) -> Table:
    """The paper's table: one row an arm."""
    names = figure_names(summary)
    table = Table("arm", *(escape(name) for name in names), "tokens", "CPU min", title=summary["name"], padding=(0, 0))
    for name, arm in summary["arms"].items():
        cells = [short_interval(arm["figures"][figure]) for figure in names]
        table.add_row(name, *cells, f"{arm['tokens']:,.0f}", f"{arm['cpu_s'] / 60:.1f}")
    seeds = max(arm["seeds"] for arm in summary["arms"].values())
    matched = "matched" if summary["matched"] else "NOT matched"
    table.caption = (
        f"{summary['problems']} held-out problems, {seeds} seeds; ±: half of the 95 % interval over both; "
        f"generated tokens {matched}: within {summary['token_spread']:.1%} of their mean"
    )
    return table


def write_report(config: CompareConfig, summary: dict[str, Any]) -> list[Path]:
    """Write ``comparison.json``, ``.csv`` and ``.png``; returns their paths."""
    paths = [config.output / f"comparison.{kind}" for kind in ("json", "csv", "png")]
    write_text(paths[0], json.dumps(summary, indent=2) + "\n")
    write_text(paths[1], _csv(summary))
    _draw(summary, paths[2])
    return paths


def _csv(summary: dict[str, Any]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["arm", "m", "seeds", "figure", "mean", "low", "high", "tokens", "cpu_s"])
    for name, arm in summary["arms"].items():
        for figure, value in arm["figures"].items():
            numbers = [f"{value[key]:.6f}" for key in ("mean", "low", "high")]
            writer.writerow(
                [name, arm["m"], arm["seeds"], figure, *numbers, round(arm["tokens"]), round(arm["cpu_s"], 1)]
            )
    return text.getvalue()


def _draw(summary: dict[str, Any], path: Path) -> None:
    """best@k and E_w[best@k] over k, and diversity; bands and bars are the intervals."""
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.5), layout="constrained")
    arms = summary["arms"]
    trained = [name for name in arms if arms[name]["tokens"]]
    colours = {name: f"C{trained.index(name) % 10}" if name in trained else "0.6" for name in arms}
    ks = sorted(int(name.removeprefix("best@")) for name in next(iter(arms.values()))["figures"] if name[:5] == "best@")
    for axis, title in zip(axes, ("best@{}", "E_w[best@{}]"), strict=False):
        for name, arm in arms.items():
            values = [arm["figures"][title.format(k)] for k in ks]
            style = {"color": colours[name], "linestyle": "-" if name in trained else "--"}
            axis.plot(ks, [value["mean"] for value in values], marker="o", markersize=3, label=name, **style)
            band = [value["low"] for value in values], [value["high"] for value in values]
            axis.fill_between(ks, *band, alpha=0.12, color=colours[name])
        axis.set(xscale="log", xticks=ks, xticklabels=ks, xlabel="answers k", title=title.format("k"))
        axis.minorticks_off()
    values = [arm["figures"]["diversity"] for arm in arms.values()]
    means = np.array([value["mean"] for value in values])
    errors = [means - [value["low"] for value in values], [value["high"] for value in values] - means]
    axes[2].barh(list(arms), means, xerr=np.maximum(errors, 0), color=colours.values())
    axes[2].set(title="reward diversity")
    axes[2].invert_yaxis()
    axes[0].legend(fontsize=8)
    figure.suptitle(summary["name"])
    figure.savefig(path, dpi=120)
    plt.close(figure)
