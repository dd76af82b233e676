"""``vpo demo``: the whole product on this machine, from two checkpoints to their curves, over real HTTP."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from evolve.config import SearchConfig
from evolve.suite import load_suite
from service.child import ChildProcess
from service.cli.arms import ModelChoice, open_arms
from service.cli.progress import stop_on_signals
from service.cli.report import summary_table, write_csv, write_png
from service.cli.search import EXPECTED_ERRORS, FAILED, INTERRUPTED, Plan, carry_out
from service.cli.serve import running_service
from service.client import RemoteSearcher, ServiceClient, ServiceError
from service.outcome import Outcome
from service.schemas import RunStatus
from service.settings import Settings

ROOT = Path(__file__).parents[2]
CHECKPOINTS = ("minicode-grpo", "minicode-vpo")
SUITE = ROOT / "examples" / "minicode" / "suite.json"
_START_TIMEOUT_S = 180.0


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
    try:
        plan = Plan(
            suite=load_suite(suite),
            models=tuple(str(checkpoints / name) for name in CHECKPOINTS),
            iterations=iterations,
            seeds=(0,),
            samples=None,
            answers=1,
            api_key_env=None,
            config=SearchConfig(),
            name="demo: " + load_suite(suite).name,
        )
        outcome = asyncio.run(_demo(console, plan, out, keep=keep, started=started))
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise typer.Exit(INTERRUPTED) from None
    except EXPECTED_ERRORS as error:
        Console(stderr=True).print(f"vpo demo: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(FAILED) from None
    if outcome.curve.status is not RunStatus.DONE:
        raise typer.Exit(INTERRUPTED if outcome.curve.status is RunStatus.CANCELLED else FAILED)


async def _demo(console: Console, plan: Plan, out: Path, *, keep: bool, started: float) -> Outcome:
    stop = asyncio.Event()
    choices = [ModelChoice(None, folder=Path(folder)) for folder in plan.models]
    for choice in choices:
        if choice.folder is None or not (choice.folder / "config.json").is_file():
            raise ServiceError(f"{choice.folder} is no checkpoint: see docs/minicode.md for the commands that make it")
    with stop_on_signals(console, stop, then="stopping: the search is cancelled; once more to stop at once"):
        async with _service(console) as url, ServiceClient(url) as client:
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
    write_csv(outcome.curve, out / "curve.csv")
    write_png(outcome.curve, out / "curve.png", title=plan.name or plan.suite.name)
    _say(console, f"written: {out}/curve.png and {out}/curve.csv, {seconds / 60:.1f} minutes in all")


@asynccontextmanager
async def _service(console: Console) -> AsyncIterator[str]:
    """URL of the service of this user's data folder: the one that runs already, or ``vpo serve`` as a child."""
    settings = Settings()
    if (url := running_service(settings.data_dir)) is not None:
        async with ServiceClient(url) as client:
            if (ready := await client.ready()) is not None and ready.ready:
                _say(console, f"using the service that runs at {url}")
                yield url
                return
    port = settings.port if _is_free(settings.host, settings.port) else 0
    command = [sys.executable, "-m", "service.cli", "serve", "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))}
    child = ChildProcess(command, environment, stop_timeout_s=30.0)
    try:
        _say(console, "starting the service with embedded Postgres and Valkey")
        await child.start()
        yield await _wait_until_ready(child, settings.data_dir)
    finally:
        await child.stop()


async def _wait_until_ready(child: ChildProcess, data_dir: Path) -> str:
    deadline = time.monotonic() + _START_TIMEOUT_S
    problem = "it did not say where it is"
    while time.monotonic() < deadline:
        if child.pid is None:
            raise ServiceError(f"the service ended with status {child.status}:\n{child.log_tail(15)}")
        if (url := running_service(data_dir)) is not None:
            async with ServiceClient(url) as client:
                ready = await client.ready()
            if ready is not None and ready.ready:
                return url
            if ready is not None:
                problem = "; ".join(f"{name}: {check.detail}" for name, check in ready.checks.items() if not check.ok)
        await asyncio.sleep(0.2)
    raise ServiceError(f"the service was not ready within {_START_TIMEOUT_S:g} s: {problem}\n{child.log_tail(15)}")


def _is_free(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
