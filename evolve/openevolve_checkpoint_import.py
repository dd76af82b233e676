"""From a checkpoint of OpenEvolve to the records of a run, which then goes on from it as from any other.

1. The task's seed program is program 0, on every island. A checkpoint's initial program is the same one.
2. Every other program belongs to the record of the iteration that found it. An iteration of which the checkpoint has no
   program has a record without one: it brought nothing, or OpenEvolve dropped what it brought.
3. OpenEvolve does not keep when a copy by migration was made: that was after the last program found before its time.
4. Metrics are judged anew by the task's own ranges. Which of the programs stay in the population, the archive decides.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from itertools import accumulate
from typing import Any

from evolve.openevolve_checkpoint import Checkpoint, CheckpointError, StoredProgram
from evolve.openevolve_task import COMBINED
from evolve.program import Evaluation, IterationRecord, Program, seed_program, source_digest
from sandbox.cases import EvaluatorResult
from sandbox.evaluation import DROPPED, NAME
from sandbox.verdict import Status, Verdict

IDENTITY = "openevolve"
"""Key of a record's ``info``: by number, what its programs are in OpenEvolve (:class:`Identity`)."""

FAILED = ("error", "timeout")
"""The metrics that OpenEvolve gives a program whose evaluation failed."""

_MESSAGE_CHARS = 2_000

Judge = Callable[[EvaluatorResult], Evaluation]


@dataclass(frozen=True, slots=True)
class Identity:
    """A program's name in OpenEvolve, its depth in the lineage, and when it was made (seconds since 1970)."""

    id: str
    generation: int
    timestamp: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportedRun:
    """A run's seed program and records, iterations 1, 2, ... in order. notes: what is not as it was, in sentences."""

    seed: Program
    records: tuple[IterationRecord, ...]
    notes: tuple[str, ...]

    @property
    def programs(self) -> tuple[Program, ...]:
        """All programs by number."""
        return (self.seed, *(program for record in self.records for program in record.programs))


def import_run(checkpoint: Checkpoint, *, seed_source: str, seed: Evaluation, judge: Judge) -> ImportedRun:
    """The run that a checkpoint holds.

    seed: of the task's seed program as judged now; what the checkpoint says of that program comes first. judge: what an
    evaluator's result says by the task's ranges.

    Raises :class:`CheckpointError` where the metrics are not those of the task.
    """
    _check_metrics(checkpoint, seed)
    first, others = _split(checkpoint, source_digest(seed_source))
    stored = first[0] if first else None
    program = seed_program(seed_source, judge(_result(stored, seed.components)) if stored else seed)
    importer = _Importer(checkpoint, program, judge)
    importer.take_seed(first)
    records = importer.records(_by_iteration(others))
    return ImportedRun(seed=program, records=records, notes=tuple(_notes(checkpoint, importer, seed)))


class _Importer:
    """Numbers programs in the order of their iterations, and keeps which id each has."""

    def __init__(self, checkpoint: Checkpoint, seed: Program, judge: Judge) -> None:
        self._checkpoint, self._judge = checkpoint, judge
        self._components = seed.evaluation.components
        self.best, self.solved = seed, seed.evaluation.solved
        self.orphans = 0
        self._programs = {0: seed}
        self._numbers: dict[str, int] = {}
        self._seed_identity: dict[str, Any] = {}

    def take_seed(self, stored: Sequence[StoredProgram]) -> None:
        """These are what the run's seed program is in the checkpoint."""
        self._numbers = dict.fromkeys((program.id for program in stored), 0)
        self._seed_identity = {"0": asdict(_identity(stored[0]))} if stored else {}

    def find(self, name: str | None) -> Program | None:
        """A program that has been taken in, by its id."""
        return self._programs.get(self._numbers.get(name, -1)) if name is not None else None

    def records(self, by_iteration: dict[int, list[StoredProgram]]) -> tuple[IterationRecord, ...]:
        """A record for every iteration up to the last."""
        last = max([self._checkpoint.iteration, *by_iteration])
        return tuple(self._record(iteration, by_iteration.get(iteration, [])) for iteration in range(1, last + 1))

    def _record(self, iteration: int, stored: Sequence[StoredProgram]) -> IterationRecord:
        programs = [self._program(iteration, index, each) for index, each in enumerate(stored)]
        before = [self._programs[number].evaluation.scalar for program in programs for number in program.parents]
        best = max((program.evaluation.scalar for program in programs), default=0.0)
        identities = {str(p.number): asdict(_identity(s)) for p, s in zip(programs, stored, strict=True)}
        if iteration == 1:
            identities = self._seed_identity | identities
        return IterationRecord(
            iteration=iteration,
            island=programs[0].island if programs else (iteration - 1) % self._checkpoint.islands,
            parents=programs[0].parents if programs else (),
            reply=None,
            programs=tuple(programs),
            rejected=(),
            evaluations=sum(not each.migrant for each in stored),
            best_scalar=self.best.evaluation.scalar,
            solved=self.solved,
            info={IDENTITY: identities, "improved": bool(programs) and best > max(before, default=0.0)},
        )

    def _program(self, iteration: int, index: int, stored: StoredProgram) -> Program:
        origin = stored.origin
        named = origin.parents if origin else [stored.parent] if stored.parent else []
        parents = tuple(parent.number for name in named if (parent := self.find(name)) is not None)
        self.orphans += len(parents) < len(named)
        program = Program(
            number=len(self._programs),
            iteration=iteration,
            index=origin.index if origin else index,
            island=stored.island,
            parents=parents,
            source=stored.source,
            digest=source_digest(stored.source),
            operator=origin.operator if origin else _operator(stored),
            evaluation=self._judge(_result(stored, self._components)),
        )
        self._programs[program.number] = program
        self._numbers[stored.id] = program.number
        self.solved = self.solved or program.evaluation.solved
        if program.evaluation.scalar > self.best.evaluation.scalar:
            self.best = program
        return program


def _split(checkpoint: Checkpoint, digest: str) -> tuple[list[StoredProgram], list[StoredProgram]]:
    """What is the task's seed program, and all others."""
    first: list[StoredProgram] = []
    others: list[StoredProgram] = []
    for program in checkpoint.programs:
        initial = program.iteration == 0 and not program.migrant and source_digest(program.source) == digest
        (first if initial else others).append(program)
    return sorted(first, key=lambda program: program.timestamp), others


def _by_iteration(programs: Iterable[StoredProgram]) -> dict[int, list[StoredProgram]]:
    """Programs by the iteration that they belong to, in order: those found, then copies."""
    found = sorted((p for p in programs if not p.migrant), key=lambda program: program.timestamp)
    times = [program.timestamp for program in found]
    latest = list(accumulate((program.iteration for program in found), max))
    iteration_of = {program.id: max(1, program.iteration) for program in found}
    by_iteration: dict[int, list[StoredProgram]] = {}
    for program in sorted(programs, key=_order):
        iteration = iteration_of.get(program.id, program.iteration)
        if not iteration:
            before = bisect_right(times, program.timestamp)
            iteration = max(1, latest[before - 1] if before else 1, iteration_of.get(program.parent or "", 1))
        by_iteration.setdefault(iteration, []).append(program)
    return by_iteration


def _order(program: StoredProgram) -> tuple[bool, int, float, str]:
    return program.migrant, program.origin.index if program.origin else 0, program.timestamp, program.id


def _identity(stored: StoredProgram) -> Identity:
    return Identity(stored.id, stored.generation, stored.timestamp)


def _operator(stored: StoredProgram) -> str:
    return "migrant" if stored.migrant else "rewrite" if stored.rewritten else "diff"


def _result(stored: StoredProgram, components: Collection[str]) -> EvaluatorResult:
    """What the evaluator said; what is no finite number is dropped and named, as it is of a program judged here."""
    kept = {name: float(value) for name, value in stored.metrics.items() if _is_number(value)}
    dropped = {name: value for name, value in stored.metrics.items() if name not in kept}
    artifacts = dict(stored.artifacts)
    if dropped:
        artifacts[DROPPED] = ", ".join(f"{name}={json.dumps(value)}" for name, value in dropped.items())
    return EvaluatorResult(verdict=_verdict(stored, kept, components), metrics=kept, artifacts=artifacts)


def _verdict(stored: StoredProgram, metrics: dict[str, float], components: Collection[str]) -> Verdict:
    """Whether the evaluator judged the program: OpenEvolve gives one that failed the metric ``error`` alone."""
    origin = stored.origin
    if origin is not None:
        return Verdict(
            name=NAME, status=origin.status, message=origin.message, cpu_s=origin.cpu_s, peak_mb=origin.peak_mb
        )
    if metrics.keys() - (set(FAILED) - set(components)):
        return Verdict(name=NAME, status=Status.PASSED)
    status = Status.TIMEOUT if stored.metrics.get("timeout") else Status.ERROR
    message = stored.artifacts.get("stderr") or "the evaluator gave no metric"
    return Verdict(name=NAME, status=status, message=message[-_MESSAGE_CHARS:])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) <= 1.7e308 and math.isfinite(value)


def _check_metrics(checkpoint: Checkpoint, seed: Evaluation) -> None:
    """Every component of the task must be a metric that some program has."""
    if not seed.metrics and seed.components == (COMBINED,):
        raise CheckpointError(
            f"the task's seed program cannot be judged here ({seed.messages[0]}), so its metrics are not known: mend "
            "that, or declare the task's ranges"
        )
    known = {name for program in checkpoint.programs for name, value in program.metrics.items() if _is_number(value)}
    for name in seed.components:
        if name not in known:
            near = get_close_matches(name, sorted(known), n=1)
            hint = f"did you mean {near[0]!r} in its ranges?" if near else "is this the task of that run?"
            listed = ", ".join(sorted(known)) or "none"
            raise CheckpointError(
                f"the task judges by the metric {name!r}, which no program of the checkpoint has (they have {listed}): "
                f"{hint}"
            )


def _notes(checkpoint: Checkpoint, importer: _Importer, seed: Evaluation) -> Iterable[str]:
    known = {name for stored in checkpoint.programs for name in stored.metrics}
    extra = sorted(known - set(seed.components) - {COMBINED, *FAILED})
    if extra:
        yield f"metrics that are no component of the task are kept as they are: {', '.join(extra)}"
    if importer.orphans:
        yield f"{importer.orphans} programs have a parent that OpenEvolve no longer keeps: their lineage begins there"
    if importer.solved:
        yield "by its scores the task is solved already: a search ends there unless stop_when_solved is false"
    if checkpoint.lost_artifacts:
        yield f"large artifacts of {checkpoint.lost_artifacts} programs are not beside the checkpoint: left out"
    theirs = importer.find(checkpoint.best)
    if theirs is not None and theirs.evaluation.scalar < importer.best.evaluation.scalar:
        yield (
            f"OpenEvolve's best program counts {theirs.evaluation.scalar:.4g} by the task's ranges; the best here is "
            f"another one, which counts {importer.best.evaluation.scalar:.4g}"
        )
