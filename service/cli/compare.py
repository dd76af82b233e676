"""``vpo compare``: the models of one or several stored searches against one of them, over the same tasks and seeds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from evolve.metrics import Interval, mean_interval
from service.cli.failing import USAGE, run_command
from service.cli.stored import JsonOption, ServiceOption, Stored, read_stored
from service.schemas import RunState

Case = tuple[str, int]


@dataclass(frozen=True, slots=True)
class ArmComparison:
    """One arm over the cases (task and seed) that all arms have.

    solved, best: share of runs solved and mean best task scalar. solved_more, better: their differences from the
    baseline's; all with 95 % bootstrap intervals over tasks, whose seeds are averaged first. wins, losses: cases with a
    better and with a worse best task scalar than the baseline's.
    """

    arm: str
    solved: Interval
    best: Interval
    solved_more: Interval
    better: Interval
    wins: int
    losses: int
    evaluations: int
    tokens: int


def compare(
    searches: Annotated[list[str], typer.Argument(metavar="SEARCH...", help="Folders of --out, or numbers.")],
    service: ServiceOption = None,
    baseline: Annotated[
        str | None, typer.Option(help="Arm that others are compared with. (default: the first)")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the models of the SEARCHes, each with the baseline over the same tasks and seeds.

    With several searches an arm is called SEARCH/ARM. Every run counts as it is now, finished or not.
    """
    stored = run_command("compare", lambda: _read(searches, service))
    try:
        arms = collect(searches, stored)
        cases, rows = compare_arms(arms, baseline)
    except ValueError as error:
        typer.echo(f"vpo compare: {error}", err=True)
        raise typer.Exit(USAGE) from None
    if as_json:
        body = {"cases": len(cases), "baseline": baseline or next(iter(arms)), "arms": [asdict(row) for row in rows]}
        return typer.echo(json.dumps(body))
    console = Console()
    console.print(f"{len(cases)} tasks and seeds that all have, against {baseline or next(iter(arms))}", markup=False)
    return console.print(_table(rows))


async def _read(searches: Sequence[str], service: str | None) -> list[Stored]:
    return [await read_stored(search, service) for search in searches]


def collect(names: Sequence[str], stored: Sequence[Stored]) -> dict[str, dict[Case, RunState]]:
    """The runs of every arm by task and seed."""
    arms: dict[str, dict[Case, RunState]] = {}
    for name, search in zip(names, stored, strict=True):
        for run in search.outcome.runs:
            label = run.arm if len(names) == 1 else f"{name}/{run.arm}"
            arms.setdefault(label, {})[run.task, run.seed] = run
    return arms


def compare_arms(arms: dict[str, dict[Case, RunState]], baseline: str | None) -> tuple[list[Case], list[ArmComparison]]:
    """The cases that all arms have, and every arm over them. Raises ``ValueError`` where nothing can be compared."""
    if len(arms) < 2:
        raise ValueError("there is only one model: name a search with several, or several searches")
    first = next(iter(arms)) if baseline is None else baseline
    if first not in arms:
        raise ValueError(f"--baseline {first} is none of the models: {', '.join(arms)}")
    cases = [case for case in arms[first] if all(case in runs for runs in arms.values())]
    if not cases:
        raise ValueError("the searches have no task with the same seed in common")
    base = [arms[first][case] for case in cases]
    return cases, [_comparison(arm, [runs[case] for case in cases], base) for arm, runs in arms.items()]


def _comparison(arm: str, runs: Sequence[RunState], base: Sequence[RunState]) -> ArmComparison:
    tasks = [run.task for run in runs]
    solved, best = _solved(runs), _best(runs)
    gain = best - _best(base)
    return ArmComparison(
        arm=arm,
        solved=_interval(solved, tasks),
        best=_interval(best, tasks),
        solved_more=_interval(solved - _solved(base), tasks),
        better=_interval(gain, tasks),
        wins=int((gain > 0).sum()),
        losses=int((gain < 0).sum()),
        evaluations=sum(run.evaluations for run in runs),
        tokens=sum(run.tokens for run in runs),
    )


def _solved(runs: Sequence[RunState]) -> np.ndarray:
    return np.array([float(run.solved_at is not None) for run in runs])


def _best(runs: Sequence[RunState]) -> np.ndarray:
    return np.array([run.best or 0.0 for run in runs])


def _interval(values: np.ndarray, tasks: Sequence[str]) -> Interval:
    """Over tasks: runs of one task are not independent."""
    by_task: dict[str, list[float]] = {}
    for task, value in zip(tasks, values.tolist(), strict=True):
        by_task.setdefault(task, []).append(value)
    return mean_interval([float(np.mean(of_task)) for of_task in by_task.values()])


def _table(rows: Sequence[ArmComparison]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("arm", "solved", "best", "solved more", "better by", "wins/losses", "judged", "tokens"):
        table.add_column(heading)
    for row in rows:
        table.add_row(
            row.arm,
            *(_ends(interval) for interval in (row.solved, row.best, row.solved_more, row.better)),
            f"{row.wins}/{row.losses}",
            f"{row.evaluations:,}",
            f"{row.tokens:,}",
        )
    return table


def _ends(interval: Interval) -> str:
    return f"{interval.mean:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
