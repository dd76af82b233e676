"""``vpo demo``: the whole product on this machine, from two checkpoints to their curves, over real HTTP."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from evolve.config import SearchConfig
from evolve.suite import load_suite
from service.cli.arms import ModelChoice, open_arms
from service.cli.background import open_service
from service.cli.failing import FAILED, INTERRUPTED, run_command
from service.cli.progress import stop_on_signals
from service.cli.report import rejection_lines, summary_table, write_csv, write_png
from service.cli.search import Plan, carry_out
from service.client import RemoteSearcher, ServiceClient, ServiceError
from service.outcome import Outcome
from service.schemas import RunStatus

ROOT = Path(__file__).parents[2]
CHECKPOINTS = ("minicode-grpo", "minicode-vpo")
SUITE = ROOT / "examples" / "minicode" / "suite.json"


def demo(
    iterations: Annotated[int, typer.Option("--iterations", "-i", min=1, help="Iterations of each run.")] = 40,
    suite: Annotated[Path, typer.Option(help="The problems to search.")] = SUITE,
    checkpoints: Annotated[Path, typer.Option(help="Folder with minicode-grpo and minicode-vpo.")] = ROOT
    / "checkpoints",
    out: Annotated[Path, typer.Option(help="Folder for curve.png and curve.csv.")] = Path("demo-output"),
    keep: Annotated[bool, typer.Option("--keep", help="Leave service and dashboard running until Ctrl-C.")] = False,
) -> None:
    """Start the service and two model servers, search held-out problems with both models, and draw their curves.

    Both models get the same number of evaluations per iteration: the GRPO model as single answers, the VPO model as
    chains. Where a service is running already on this machine's data folder, it is used.
    """
    console = Console()
    started = time.monotonic()

    async def work() -> Outcome:
        problems = load_suite(suite)
        plan = Plan(
            suite=problems,
            models=tuple(str(checkpoints / name) for name in CHECKPOINTS),
            iterations=iterations,
            seeds=(0,),
            samples=None,
            answers=1,
            api_key_env=None,
            config=SearchConfig(),
            name=f"demo: {problems.name}",
        )
        return await _demo(console, plan, out, keep=keep, started=started)

    outcome = run_command("demo", work)
    if outcome.curve.status is not RunStatus.DONE:
        raise typer.Exit(INTERRUPTED if outcome.curve.status is RunStatus.CANCELLED else FAILED)


async def _demo(console: Console, plan: Plan, out: Path, *, keep: bool, started: float) -> Outcome:
    stop = asyncio.Event()
    choices = [ModelChoice(None, folder=Path(folder)) for folder in plan.models]
    for choice in choices:
        if choice.folder is None or not (choice.folder / "config.json").is_file():
            raise ServiceError(f"{choice.folder} is no checkpoint: see docs/minicode.md for the commands that make it")
    with stop_on_signals(console, stop, then="stopping: the search is cancelled; once more to stop at once"):
        async with open_service(lambda text: _say(console, text)) as url, ServiceClient(url) as client:
            async with open_arms(choices, samples=None, answers=1, api_key_env=None, tell=console.print) as arms:
                spec = plan.spec(arms)
                per_iteration = arms[0].evaluations_per_iteration(arms[0].config(spec.search, spec.tasks[0]))
                _say(
                    console,
                    f"POST {url}/search: {len(spec.tasks)} problems, {len(arms)} arms, {spec.iterations} iterations of "
                    f"{per_iteration} evaluations each",
                )
                searcher = RemoteSearcher(
                    client, lambda search: _say(console, f"dashboard: {client.dashboard(search.id)}")
                )
                outcome = await carry_out(console, searcher, spec, stop)
            _report(console, plan, outcome, out, seconds=time.monotonic() - started)
            if keep and not stop.is_set():
                _say(console, f"dashboard: {client.dashboard(outcome.curve.search)} (Ctrl-C ends it)")
                await stop.wait()
            else:
                _say(console, "the dashboard shows this search again under `vpo serve`; `vpo demo --keep` leaves it up")
    return outcome


def _report(console: Console, plan: Plan, outcome: Outcome, out: Path, *, seconds: float) -> None:
    for run in outcome.runs:
        if run.error:
            _say(console, f"{run.arm}, {run.task}: {run.error}")
    console.print(summary_table(outcome.curve))
    _say(console, "\n".join(rejection_lines(outcome)))
    write_csv(outcome.curve, out / "curve.csv")
    write_png(outcome.curve, out / "curve.png", title=plan.name or plan.suite.name)
    _say(console, f"written: {out}/curve.png and {out}/curve.csv, {seconds / 60:.1f} minutes in all")


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
