"""The sandbox: one per process; probes isolation once and bounds the jails alive at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar

from sandbox.building import build_job, read_build, run_job
from sandbox.cases import CallTest, EvaluatorResult, FunctionResult, StdioTest
from sandbox.checking import checker_job, judge_check
from sandbox.errors import SandboxClosed, SandboxUnavailable
from sandbox.evaluation import EVALUATOR_LIMITS, EvaluatorSettings, evaluator_job, judge_evaluation
from sandbox.grading import Unchecked, broken, judge_call, judge_function, judge_stdio
from sandbox.jail.bubblewrap import Isolation
from sandbox.jail.confinement import Confinement
from sandbox.jail.launcher import Job, Report
from sandbox.jail.probe import find_isolation
from sandbox.jail.run import JobRun, RunCancelledError
from sandbox.jail.slots import Slots
from sandbox.languages import LANGUAGES, Language
from sandbox.limits import Limits
from sandbox.payload import call_payload, stdio_payload
from sandbox.tiers import Tier
from sandbox.verdict import Verdict

Case = TypeVar("Case", CallTest, StdioTest)
Result = TypeVar("Result")


class Sandbox:
    """Judges programs in jails, at most ``concurrency`` at once.

    limits: the bounds where a call gives none. minimum_tier: nothing is run below it. tier: this tier exactly, and
    none other (for tests and diagnosis). folders: what tasks may ask to see of this machine, by name.
    Usable from any event loop; :meth:`close` ends every jail.
    """

    def __init__(
        self,
        concurrency: int = 2,
        limits: Limits | None = None,
        *,
        minimum_tier: Tier = Tier.JAIL,
        tier: Tier | None = None,
        folders: Mapping[str, Path] | None = None,
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"sandbox concurrency must be at least 1, not {concurrency!r}")
        self.limits = limits or Limits()
        self._folders = dict(folders or {})
        self._minimum, self._exactly = minimum_tier, tier
        self._pool = ThreadPoolExecutor(concurrency, thread_name_prefix="sandbox")
        self._closed = False
        self._isolation: Isolation | Confinement | None = None
        self._slots: Slots | None = None
        self._probing = threading.Lock()
        self._lock = threading.Lock()
        self._running: set[JobRun] = set()

    async def __aenter__(self) -> Self:
        await self.check()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def check(self) -> None:
        """Raise :class:`SandboxUnavailable` unless a canary was isolated properly; cheap after the first time."""
        if self._isolation is None:
            await asyncio.wrap_future(self._submit(self._probe))

    @property
    def tier(self) -> Tier:
        """The tier that :meth:`check` found; ``NONE`` before."""
        return Tier.NONE if self._isolation is None else self._isolation.tier

    @property
    def peak_mb(self) -> float:
        """The most memory that any of the jails alive at once had so far, MiB; 0 below tier ``full``."""
        return 0.0 if self._slots is None else self._slots.peak_bytes / (1 << 20)

    async def grade_calls(
        self,
        source: str,
        entry_point: str,
        tests: Sequence[CallTest],
        limits: Limits | None = None,
        *,
        preamble: str = "",
        checker: str | None = None,
    ) -> list[Verdict]:
        """Import ``source`` and call ``entry_point`` once per test, each time in a new process; one verdict a test.

        preamble: Python that runs before ``source`` in the same module, without moving its line numbers.
        checker: Python that defines ``check(args, expected, actual)`` for the tests that compare by ``checker``. It
        returns a bool, a number in [0, 1] or either with a message, and runs in a jail of its own.
        """
        payload = call_payload(source, entry_point, [test.args for test in tests], preamble)
        job = Job(harness="harness", payload=payload, limits=limits or self.limits)
        return await self._grade(job, tests, judge_call, checker)

    async def grade_stdio(
        self,
        source: str,
        tests: Sequence[StdioTest],
        limits: Limits | None = None,
        *,
        preamble: str = "",
        checker: str | None = None,
        language: Language = LANGUAGES["python"],
    ) -> list[Verdict]:
        """Run ``source`` as a program once per test and compare what it prints; one verdict a test.

        preamble (for Python only), checker: as for :meth:`grade_calls`, but it is ``check(stdin, expected, actual)``,
        three texts. Raises :class:`EnvironmentUnavailable` where there is no compiler for ``language``.
        """
        inputs, limits = [test.stdin for test in tests], limits or self.limits
        if not language.run:
            job = Job(harness="harness", payload=stdio_payload(source, inputs, preamble), limits=limits)
            return await self._grade(job, tests, judge_stdio, checker)
        built = await self._build(language, source)
        if isinstance(built, Verdict):
            return [replace(built, name=test.name, tier=self.tier) for test in tests]
        return await self._grade(run_job(language, source, built, inputs, limits), tests, judge_stdio, checker)

    async def run_function(
        self, source: str, entry_point: str, args: Sequence[Any] = (), limits: Limits | None = None
    ) -> FunctionResult:
        """What ``entry_point`` of the program ``source`` returns in a jail, after a trip through JSON."""
        limits = limits or self.limits
        job = Job(harness="harness", payload=call_payload(source, entry_point, [args]), limits=limits)
        result = judge_function(entry_point, (await self._results(job))[0], limits)
        return replace(result, verdict=replace(result.verdict, tier=self.tier))

    async def run_evaluator(
        self,
        source: str | Mapping[str, str],
        files: Mapping[str, str | bytes],
        suffix: str = ".py",
        limits: Limits | None = None,
        settings: EvaluatorSettings | None = None,
    ) -> EvaluatorResult:
        """Let a task's own ``evaluator.py``, given in ``files`` with whatever it reads, judge ``source``.

        source: a program or, by path, its files: ``evaluate`` then gets the path of a folder. In the jail the task's
        folder and the program are read-only. Without ``limits`` it gets :data:`sandbox.evaluation.EVALUATOR_LIMITS`,
        since evaluators are slower and larger than tests. What it prints does not matter. Raises :class:`ValueError`
        for an unusable file or suffix, :class:`EnvironmentUnavailable` where a package or folder is missing.
        """
        limits = limits or EVALUATOR_LIMITS
        job = evaluator_job(source, files, suffix, limits, settings or EvaluatorSettings(), self._folders)
        result = judge_evaluation((await self._results(job))[0], job.limits)
        return replace(result, verdict=replace(result.verdict, tier=self.tier))

    async def close(self) -> None:
        """End every jail and wait until each is gone. The sandbox cannot be used afterwards."""
        self._closed = True
        with self._lock:
            running = list(self._running)
        for run in running:
            run.cancel()
        await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)
        if self._slots is not None:
            await asyncio.to_thread(self._slots.close)

    def _probe(self) -> None:
        with self._probing:
            if self._isolation is None:
                isolation = find_isolation(self._minimum, self._exactly)
                self._slots = Slots(isolation.cgroups)
                self._isolation = isolation

    async def _grade(
        self,
        job: Job,
        tests: Sequence[Case],
        judge: Callable[[Case, Report, Limits], Verdict | Unchecked],
        checker: str | None,
    ) -> list[Verdict]:
        if checker is None and any(test.compare == "checker" for test in tests):
            raise ValueError("a test compares by 'checker', but no checker is given: give its source")
        results = await self._results(job)
        judged = [
            broken(test.name, result) if isinstance(result, str) else judge(test, result, job.limits)
            for test, result in zip(tests, results, strict=True)
        ]
        verdicts = await self._checked(judged, checker)
        return [replace(verdict, tier=self.tier) for verdict in verdicts]

    async def _build(self, language: Language, source: str) -> bytes | Verdict:
        language.require_tools()
        if not language.build:
            return b""
        return read_build(language, (await self._results(build_job(language, source)))[0])

    async def _checked(self, judged: Sequence[Verdict | Unchecked], checker: str | None) -> list[Verdict]:
        """The verdicts once the task's checker has judged the answers that are left to it."""
        answers = [item for item in judged if isinstance(item, Unchecked)]
        reports: list[Report | str] = []
        if answers:
            assert checker is not None
            reports = await self._results(checker_job(checker, answers))
        checked = iter(zip(answers, reports, strict=True))
        return [judge_check(*next(checked)) if isinstance(item, Unchecked) else item for item in judged]

    async def _results(self, job: Job) -> list[Report | str]:
        await self.check()
        if job.files and self.tier < Tier.JAIL:
            raise SandboxUnavailable(
                "tier confined cannot show a program the files of its task", "run it where tier jail can be had"
            )
        run = JobRun(job)
        work = self._submit(self._work, run)
        with self._lock:
            self._running.add(run)
        future = asyncio.wrap_future(work)
        try:
            return await asyncio.shield(future)
        except RunCancelledError:
            raise SandboxClosed from None
        except asyncio.CancelledError:
            if self._closed and future.cancelled():
                raise SandboxClosed from None
            run.cancel()
            work.cancel()
            await asyncio.wait([future])
            if not future.cancelled():
                future.exception()
            raise
        finally:
            with self._lock:
                self._running.discard(run)

    def _submit(self, work: Callable[..., Result], *arguments: Any) -> Future[Result]:
        if self._closed:
            raise SandboxClosed
        return self._pool.submit(work, *arguments)

    def _work(self, run: JobRun) -> list[Report | str]:
        assert self._isolation is not None
        assert self._slots is not None
        return run.results(self._isolation, self._slots)
