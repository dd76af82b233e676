"""A search in three lines, for notebooks and scripts: ``run`` blocks, ``run_async`` is awaited; both give a ``Result``.

``run`` works on a thread and an event loop of its own, so it may be called where a loop is running already, as in a
notebook. An interrupt (Ctrl-C) there ends the search gracefully: what has arrived is kept, and ``run`` returns it.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from pydantic import SecretStr, TypeAdapter

from evolve.cascade import search_evaluator
from evolve.config import ModelConfig, SearchConfig
from evolve.driver import MemoryStore, RunSummary, run_search
from evolve.ensemble import Ensemble
from evolve.history import RunTrace, trace
from evolve.manifest import Manifest, read_manifest
from evolve.models import ModelClient, ModelUnavailable, OpenAIModel
from evolve.openevolve_models import configured_models
from evolve.program import IterationRecord, Program
from evolve.search import Search
from evolve.task import OpenEvolveTask, Task, TestsTask, load_task
from evolve.transport import proxy_may_reach
from sandbox.runner import Sandbox

if TYPE_CHECKING:
    import pandas as pd

AnyTask = TestsTask | OpenEvolveTask
OnIteration = Callable[[IterationRecord], Awaitable[None] | None]
OnPause = Callable[[ModelUnavailable, float], None]

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 30.0
_TASK: TypeAdapter[AnyTask] = TypeAdapter(Task)


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a search has brought. Another ``run`` of the same task and seed goes on from its ``store``."""

    task: AnyTask
    config: SearchConfig
    summary: RunSummary
    store: MemoryStore = field(repr=False)

    @property
    def records(self) -> list[IterationRecord]:
        """The finished iterations, in order."""
        return list(self.store.records)

    @property
    def programs(self) -> list[Program]:
        """Every judged program in order, the seed program first; copies by migration are left out."""
        seed = [self.store.seed] if self.store.seed else []
        return seed + [program for record in self.records for program in record.programs[: record.evaluations]]

    @property
    def best(self) -> Program:
        """The program with the highest task scalar; the earliest of equals."""
        return max(self.programs, key=lambda program: (program.evaluation.scalar, -program.number))

    @property
    def trace(self) -> RunTrace:
        """The run point by point, for the curves of :mod:`evolve.history`."""
        assert self.store.seed is not None  # no summary without a seed program
        return trace(self.store.seed, self.records, models=self.config.models, archive=self.config.archive)

    def to_dataframe(self) -> pd.DataFrame:
        """One row per judged program, its reward components in columns ``reward.NAME``, metrics in ``metric.NAME``.

        Raises ``ImportError`` where pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError(
                "to_dataframe needs pandas: pip install 'vpo-search[notebook]', or pandas itself"
            ) from None
        return pandas.DataFrame([_row(program) for program in self.programs])


def run(task: AnyTask | Mapping[str, Any] | str | Path, **settings: Any) -> Result:
    """:func:`run_async` for code without ``await``: blocks until the search is over. Same arguments, same errors."""
    outcome: list[Result | BaseException] = []
    ready, done = threading.Event(), threading.Event()
    handle: dict[str, Any] = {}

    async def work() -> Result:
        stop = settings.pop("stop", None) or asyncio.Event()
        handle.update(loop=asyncio.get_running_loop(), stop=stop)
        ready.set()
        return await run_async(task, stop=stop, **settings)

    def target() -> None:
        try:
            outcome.append(asyncio.run(work()))
        except BaseException as error:
            outcome.append(error)
        finally:
            ready.set()
            done.set()

    thread = threading.Thread(target=target, name="search", daemon=True)
    thread.start()
    while not done.is_set():
        try:
            done.wait()  # not join: an interrupted join takes the thread for ended
        except KeyboardInterrupt:
            ready.wait()
            handle["loop"].call_soon_threadsafe(handle["stop"].set)
    thread.join()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


async def run_async(
    task: AnyTask | Mapping[str, Any] | str | Path,
    *,
    model: ModelClient | str | None,
    model_name: str | None = None,
    api_key: SecretStr | None = None,
    manifest: Manifest | str | Path | None = None,
    iterations: int = 50,
    seed: int = 0,
    config: SearchConfig | Mapping[str, Any] | None = None,
    on_iteration: OnIteration | None = None,
    on_pause: OnPause | None = None,
    patience_s: float = 600.0,
    concurrency: int = 2,
    store: MemoryStore | None = None,
    stop: asyncio.Event | None = None,
) -> Result:
    """Search for a program that solves ``task``.

    task: a task, its JSON document, or the path of a task file or folder.
    model: a client (an :class:`evolve.ensemble.Ensemble` for several models), or the URL of an OpenAI-compatible
        server, ``/v1`` included; then model_name is the model there (default: the only one it has) and api_key its key.
        ``None``: the models that a task in OpenEvolve's format names (:mod:`evolve.openevolve_models`), with the keys
        that it names; only for tasks that you trust.
    manifest: of a checkpoint that brings its own prompts: the manifest, or the checkpoint's folder.
    config: a configuration or its fields; what a task in OpenEvolve's format says comes before it.
    on_iteration: called (and awaited, if it wants) with each record, once that is stored.
    patience_s: how long a server that does not answer is waited for at a time; no iteration is spent on it.
        on_pause: told why and for how many seconds, at each wait.
    concurrency: jails alive at once. store: of an earlier result, to go on from there. stop: ends it gracefully.

    Raises :class:`evolve.models.ModelError`, :class:`evolve.driver.EvaluationFailed`,
    :class:`sandbox.errors.SandboxUnavailable`, ``ValueError`` for what cannot go together.
    """
    a_task, a_store = _task(task), store or MemoryStore()
    settings = _config(a_task, config)
    a_manifest = read_manifest(Path(manifest)) if isinstance(manifest, str | Path) else manifest
    client, names = await _client(a_task, model, model_name, api_key)
    if names and not settings.models:
        settings = settings.model_copy(update={"models": names})
    waits = _Waits(patience_s, on_pause)
    try:
        async with Sandbox(concurrency=concurrency) as sandbox:
            while True:
                try:
                    summary = await run_search(
                        Search(a_task, settings, seed=seed, manifest=a_manifest),
                        model=client,
                        evaluator=search_evaluator(a_task, settings, sandbox),
                        store=a_store,
                        iterations=iterations,
                        on_iteration=waits.told(on_iteration),
                        stop=stop,
                    )
                    return Result(task=a_task, config=settings, summary=summary, store=a_store)
                except ModelUnavailable as error:
                    await waits.wait(error, stop)
    finally:
        if client is not model and isinstance(client, Ensemble | OpenAIModel):
            await client.aclose()


class _Waits:
    """Pauses while the model does not answer: longer each time, until patience is at its end."""

    def __init__(self, patience_s: float, on_pause: OnPause | None) -> None:
        self._patience_s, self._on_pause = patience_s, on_pause
        self._waited, self._next = 0.0, _FIRST_PAUSE_S

    def told(self, callback: OnIteration | None) -> Callable[[IterationRecord], Awaitable[None]]:
        """The callback of an iteration, which also shows that the model is back."""

        async def call(record: IterationRecord) -> None:
            self._waited, self._next = 0.0, _FIRST_PAUSE_S
            if callback is not None and inspect.isawaitable(awaited := callback(record)):
                await awaited

        return call

    async def wait(self, error: ModelUnavailable, stop: asyncio.Event | None) -> None:
        """Wait, or raise ``error`` where that has gone on for too long or the search is to stop."""
        seconds = min(self._next, self._patience_s - self._waited)
        if seconds <= 0 or (stop is not None and stop.is_set()):
            raise error
        if self._on_pause is not None:
            self._on_pause(error, seconds)
        self._waited, self._next = self._waited + seconds, min(2 * self._next, _LONGEST_PAUSE_S)
        stopping = (stop or asyncio.Event()).wait()
        try:
            await asyncio.wait_for(stopping, seconds)
        except TimeoutError:
            return


def _task(task: AnyTask | Mapping[str, Any] | str | Path) -> AnyTask:
    if isinstance(task, str | Path):
        return load_task(Path(task))
    return _TASK.validate_python(dict(task)) if isinstance(task, Mapping) else task


def _config(task: AnyTask, config: SearchConfig | Mapping[str, Any] | None) -> SearchConfig:
    given = config.model_dump(exclude_unset=True) if isinstance(config, SearchConfig) else dict(config or {})
    of_task = task.search_settings() if isinstance(task, OpenEvolveTask) else {}
    return SearchConfig.model_validate({**of_task, **given})


async def _client(
    task: AnyTask, model: ModelClient | str | None, name: str | None, api_key: SecretStr | None
) -> tuple[ModelClient, tuple[ModelConfig, ...]]:
    """The client to use, and the models' names and weights where the task names them."""
    if model is None:
        if not isinstance(task, OpenEvolveTask):
            raise ValueError(f"task {task.name} cannot name models: give the search one")
        return configured_models(task)
    return await _server(model, name, api_key) if isinstance(model, str) else model, ()


async def _server(url: str, name: str | None, api_key: SecretStr | None) -> OpenAIModel:
    """A client for a server. Raises ``ValueError`` where no name is given and the server has not just one model."""
    if name is not None:
        return OpenAIModel(url, name, api_key)
    headers = {"Authorization": f"Bearer {api_key.get_secret_value()}"} if api_key else {}
    try:
        async with httpx.AsyncClient(timeout=10.0, trust_env=proxy_may_reach(url)) as http:
            response = await http.get(f"{url.rstrip('/')}/models", headers=headers)
            names = [entry["id"] for entry in response.raise_for_status().json()["data"]]
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{url} does not say which models it has ({type(error).__name__}): give model_name") from None
    if len(names) != 1:
        raise ValueError(f"{url} has the models {', '.join(names) or 'none'}: choose one by model_name")
    return OpenAIModel(url, names[0], api_key)


def _row(program: Program) -> dict[str, Any]:
    evaluation = program.evaluation
    row: dict[str, Any] = {
        "number": program.number,
        "iteration": program.iteration,
        "island": program.island,
        "parents": program.parents,
        "operator": program.operator,
        "scalar": evaluation.scalar,
        "solved": evaluation.solved,
    }
    row |= {f"reward.{name}": r for name, r in zip(evaluation.components, evaluation.reward, strict=True)}
    row |= {f"metric.{name}": value for name, value in evaluation.metrics.items()}
    return row | {"source": program.source}
