"""What a search shows while it runs: a live table on a terminal, plain lines elsewhere; and Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from service.schemas import RunState, RunStatus
from service.spec import SearchSpec

_LINE_EVERY_S = 10.0


class Progress:
    """Keeps the last state of every run and shows it. Call it with each changed state.

    console: where to; a terminal gets a live table, anything else one line per event worth one.
    totals: number of runs by arm. iterations: of each run.
    """

    def __init__(self, console: Console, totals: Mapping[str, int], iterations: int) -> None:
        self._console = console
        self._iterations = iterations
        self._total = dict(totals)
        self._single = len(self._total) == 1 and sum(self._total.values()) == 1
        self._runs: dict[str, RunState] = {}
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._shown = 0.0

    @classmethod
    def of(cls, console: Console, spec: SearchSpec) -> Self:
        """For a search that is about to start."""
        return cls(console, {arm.name: len(spec.tasks) * len(spec.seeds) for arm in spec.arms}, spec.iterations)

    def __enter__(self) -> Self:
        self._shown = time.monotonic()
        if self._live:
            self._live.start()
            self._live.update(self.table(), refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.update(self.table(), refresh=True)
            self._live.stop()

    def __call__(self, run: RunState) -> None:
        before = self._runs.get(run.id)
        self._runs[run.id] = run
        now = time.monotonic()
        if self._live:
            if now - self._shown > 0.1:
                self._live.update(self.table(), refresh=True)
                self._shown = now
            return
        for line in self._news(before, run):
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)
        if not self._single and now - self._shown > _LINE_EVERY_S:
            self._shown = now
            for arm in self._total:
                self._console.print(self._arm_line(arm), markup=False, highlight=False, soft_wrap=True)

    def table(self) -> Table:
        """One row per arm."""
        table = Table(box=None, pad_edge=False)
        for heading in ("arm", "runs", "iteration", "best", "solved", "tokens"):
            table.add_column(heading, justify="left" if heading == "arm" else "right")
        for arm in self._total:
            table.add_row(arm, *self._figures(arm))
        return table

    def _figures(self, arm: str) -> tuple[str, str, str, str, str]:
        """Runs over, iterations done, mean best, runs solved, tokens."""
        runs = [run for run in self._runs.values() if run.arm == arm]
        total = self._total[arm]
        best = [run.best for run in runs if run.best is not None]
        done = sum(self._iterations if run.status is RunStatus.DONE else run.iteration for run in runs)
        return (
            f"{sum(run.status.over for run in runs)}/{total}",
            f"{done}/{total * self._iterations}",
            f"{sum(best) / len(best):.3f}" if best else "-",
            f"{sum(run.solved_at is not None for run in runs)}/{total}",
            f"{sum(run.tokens for run in runs):,}",
        )

    def _arm_line(self, arm: str) -> str:
        over, done, best, solved, tokens = self._figures(arm)
        return f"{arm}: {over} runs over, iterations {done}, best {best}, solved {solved}, tokens {tokens}"

    def _news(self, before: RunState | None, run: RunState) -> Iterator[str]:
        who = f"{run.arm}, {run.task}, seed {run.seed}"
        best = "-" if run.best is None else f"{run.best:.3f}"
        if self._single and run.iteration > (before.iteration if before else 0):
            yield f"iteration {run.iteration}/{self._iterations}: best {best}, tokens {run.tokens:,}"
        if run.solved_at is not None and (before is None or before.solved_at is None):
            yield f"{who}: solved in iteration {run.solved_at}"
        if run.status is not (before.status if before else RunStatus.QUEUED):
            if run.status in (RunStatus.FAILED, RunStatus.WAITING):
                yield f"{who}: {run.status}: {run.error}"
            elif run.status.over and run.solved_at is None:
                yield f"{who}: {run.status} after {run.iteration} iterations, best {best}"


@contextmanager
def stop_on_signals(console: Console, stop: asyncio.Event, *, then: str) -> Iterator[None]:
    """Ctrl-C or SIGTERM sets ``stop``; a second one cancels the current task at once. then: said after the first."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def on_signal() -> None:
        if stop.is_set() and task is not None:
            task.cancel()
            return
        stop.set()
        console.print(then)

    numbers: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
