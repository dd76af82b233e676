"""``vpo suite``: what a suite holds, and whether its tests are worth searching with."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evolve.suite import Suite, TaskError, load_suite
from evolve.suite_check import TaskCheck, check_suite, read_references
from evolve.task import OpenEvolveTask
from sandbox.errors import SandboxError
from sandbox.runner import Sandbox
from service.cli.report import print_left_out
from service.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Look at suites of tasks.")


@app.callback()
def group() -> None:
    """Look at suites of tasks."""


@app.command()
def check(
    path: Annotated[
        Path, typer.Argument(metavar="SUITE", help="A suite or task: a folder or file, HumanEval, MBPP, LiveCodeBench.")
    ],
    runs: Annotated[int, typer.Option(min=1, help="How often each program is judged, to find flaky tests.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Validate a suite, run its reference solutions, and report tests that are flaky or tell no programs apart.

    References are those of HumanEval's and MBPP's files, and reference.py in task folders. Exit status 1 where a
    reference fails, a test is flaky or a task cannot be judged.
    """
    console = Console(stderr=as_json)
    try:
        suite, references = load_suite(path), read_references(path)
        settings = Settings()
        checks = asyncio.run(_check(suite, references, runs, settings, None if as_json else console))
    except (TaskError, SandboxError, OSError, ValueError) as error:
        console.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(2) from None
    if as_json:
        typer.echo(json.dumps(_document(suite, checks)))
    else:
        _summary(console, suite, checks)
    if not all(each.fine for each in checks):
        raise typer.Exit(1)


async def _check(
    suite: Suite, references: dict[str, str], runs: int, settings: Settings, console: Console | None
) -> list[TaskCheck]:
    checks: list[TaskCheck] = []
    async with Sandbox(
        concurrency=settings.sandbox_concurrency, minimum_tier=settings.min_tier, folders=settings.folders
    ) as box:
        async for each in check_suite(suite, box, references, runs=runs):
            checks.append(each)
            if console is not None and not each.fine:
                console.print(f"[red]{escape(each.task)}[/red]: {escape(_findings(each))}", highlight=False)
    return checks


def _document(suite: Suite, checks: list[TaskCheck]) -> dict[str, object]:
    return {
        "name": suite.name,
        "digest": suite.digest,
        "tasks": [asdict(each) | {"fine": each.fine} for each in checks],
        "skipped": [asdict(skipped) for skipped in suite.skipped],
        "ignored": {t.name: list(t.ignored) for t in suite.tasks if isinstance(t, OpenEvolveTask) and t.ignored},
    }


def _findings(each: TaskCheck) -> str:
    """What there is to mend, in words."""
    parts = [each.problem] if each.problem else []
    parts += [f"the reference fails {', '.join(each.failed)}"] if each.failed else []
    parts += [f"flaky: {', '.join(each.flaky)}"] if each.flaky else []
    return "; ".join(parts)


def _summary(console: Console, suite: Suite, checks: list[TaskCheck]) -> None:
    tests = sum(each.tests for each in checks)
    console.print(f"suite {suite.name}: {len(checks)} tasks, {tests} tests, digest {suite.digest}", highlight=False)
    print_left_out(console, suite)
    table = Table(box=None, pad_edge=False)
    for heading, count in (
        (
            "references that pass",
            f"{sum(e.reference is not None and not e.failed for e in checks)} of "
            f"{sum(e.reference is not None for e in checks)}",
        ),
        ("flaky tests", str(sum(len(each.flaky) for each in checks))),
        ("tests that every program tried passes", str(sum(len(each.blind) for each in checks))),
        ("tests that repeat another", str(sum(len(each.repeated) for each in checks))),
        ("tasks that cannot be judged", str(sum(each.problem is not None for each in checks))),
    ):
        table.add_row(heading, count)
    console.print(table)
    for each in checks:
        if each.blind or each.repeated:
            told = [
                f"{kind} {', '.join(names)}"
                for kind, names in (("blind", each.blind), ("repeated", each.repeated))
                if names
            ]
            console.print(
                f"{each.task}: {'; '.join(told)}", style="yellow", markup=False, highlight=False, soft_wrap=True
            )
