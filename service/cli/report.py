"""Curves as a table, a CSV file and a PNG; used by ``vpo search`` and ``vpo demo``."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from evolve.files import split_files
from evolve.openevolve import explain_ignored
from evolve.suite import Suite
from evolve.task import OpenEvolveTask
from service.outcome import Outcome
from service.schemas import ArmCurve, Curve

CSV_FIELDS = ("arm", "t", "runs", "solved", "pass_at_t", "best_at_t", "evaluations", "tokens")


def summary_table(curve: Curve) -> Table:
    """Per arm: runs solved, best@t at a few t up to the last, programs judged and tokens; fits 80 columns."""
    horizon = max((arm.t[-1] for arm in curve.arms), default=0)
    points = checkpoints(horizon)
    table = Table(title=f"after {horizon} iterations", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("arm", "solved", *(f"best@{t}" for t in points), "judged", "tokens"):
        is_arm = heading == "arm"  # its names, however long, are folded: shortened they would all look alike
        table.add_column(heading, justify="left" if is_arm else "right", no_wrap=not is_arm, overflow="fold")
    for arm in curve.arms:
        best = [f"{arm.best_at_t[min(t, arm.t[-1])]:.3f}" for t in points]
        table.add_row(
            arm.arm, f"{arm.solved[-1]} of {arm.runs}", *best, f"{arm.evaluations[-1]:,}", f"{arm.tokens[-1]:,}"
        )
    return table


def rejection_lines(outcome: Outcome) -> list[str]:
    """Per arm, what became of the answers that are no new program, the most frequent reason first."""
    judged = {arm.arm: arm.evaluations[-1] for arm in outcome.curve.arms}
    lines = []
    for arm, reasons in outcome.rejected.items():
        parts = [f"{judged[arm]:,} judged", *(f"{count:,} {reason}" for reason, count in reasons.most_common())]
        lines.append(f"answers of {arm}: {', '.join(parts)}")
    return lines


def print_left_out(console: Console, suite: Suite) -> None:
    """Say which problems of a suite's file were skipped, and which settings of its tasks have no effect."""
    for skipped in suite.skipped:
        console.print(f"left out {skipped.name}: {skipped.reason}", style="yellow", markup=False, highlight=False)
    for task in suite.tasks:
        if isinstance(task, OpenEvolveTask) and (note := explain_ignored(task.ignored)):
            console.print(f"{task.name}: {note}", style="yellow", markup=False, highlight=False, soft_wrap=True)


def checkpoints(horizon: int) -> list[int]:
    """At most three iterations worth showing, the last among them: more leave no room for the arms' names."""
    marks = [t for t in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000) if t < horizon * 0.8]
    return [*marks[-2:], horizon]


def write_csv(curve: Curve, path: Path) -> None:
    """One row per arm and iteration, columns :data:`CSV_FIELDS`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(CSV_FIELDS)
        for arm in curve.arms:
            columns = (arm.t, arm.solved, arm.pass_at_t, arm.best_at_t, arm.evaluations, arm.tokens)
            for t, solved, passed, best, evaluations, tokens in zip(*columns, strict=True):
                writer.writerow((arm.arm, t, arm.runs, solved, f"{passed:.6g}", f"{best:.6g}", evaluations, tokens))


def write_png(curve: Curve, path: Path, *, title: str) -> None:
    """Two panels over the iterations: runs solved as steps (pass@t), and the mean best scalar (best@t)."""
    from matplotlib.figure import Figure  # heavy, and not needed for a search without --out

    figure = Figure(figsize=(10, 4), layout="constrained", dpi=120)
    figure.suptitle(title)
    passed, best = figure.subplots(1, 2)
    for arm in curve.arms:
        passed.step(arm.t, arm.solved, where="post", label=_legend(arm), linewidth=2)
        best.plot(arm.t, arm.best_at_t, label=arm.arm, linewidth=2)
    passed.set(xlabel="iteration t", ylabel="runs solved", title="pass@t")
    passed.set_ylim(bottom=0, top=max([1, *(arm.runs for arm in curve.arms)]))
    passed.yaxis.get_major_locator().set_params(integer=True)
    best.set(xlabel="iteration t", ylabel="mean best task scalar", title="best@t", ylim=(0, 1.02))
    for axes, place in ((passed, "upper left"), (best, "lower right")):
        axes.grid(alpha=0.3)
        axes.legend(loc=place)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def write_best(outcome: Outcome, folder: Path, suffixes: Sequence[str] = (".py",)) -> None:
    """Each run's best program as ``folder/ARM/TASK-sSEED.py``, or as a folder where it has several files.

    suffixes: per run, or one for all.
    """
    for i, run in enumerate(outcome.runs):
        if (source := outcome.best.get(run.id)) is not None:
            suffix = suffixes[i % len(suffixes)]
            path = folder / _safe(run.arm) / f"{_safe(run.task)}-s{run.seed}{suffix}"
            files = split_files(source)
            if files is not None:
                shutil.rmtree(path, ignore_errors=True)  # an earlier best program may have had other files
            texts = {path: source} if files is None else {path / name: text for name, text in files.items()}
            for file, text in texts.items():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")


def _legend(arm: ArmCurve) -> str:
    return f"{arm.arm}: {arm.solved[-1] if arm.solved else 0} of {arm.runs}"


def _safe(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name).strip(".") or "_"
