"""Writing a run as a checkpoint folder that OpenEvolve 0.4 loads, continues and draws.

All programs of the run are written, those that have left the population too, so that lineage and curves are whole.

1. ``islands`` has the members of our archives. A program of OpenEvolve's is on one island: the seed program, which is a
   member of all here, is on the first that still has it.
2. ``island_feature_maps`` are empty: cells of OpenEvolve's grid depend on statistics that only it gathers. It fills
   them with what it finds from there on, and keeps what is on the islands beside.
3. Metrics are the evaluator's own; a program that could not be judged has ``error``, as there. A task with tests has
   none: its metrics are the reward vector and ``combined_score``.
4. What OpenEvolve has no field for is in ``metadata.vpo``, which it keeps (:class:`Origin`).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evolve.config import SearchConfig
from evolve.islands import Islands
from evolve.openevolve_checkpoint import METADATA, OURS, PROGRAMS, Origin
from evolve.openevolve_checkpoint_import import IDENTITY, Identity
from evolve.openevolve_task import COMBINED, OpenEvolveTask
from evolve.program import Evaluation, IterationRecord, Program
from evolve.tests_task import TestsTask
from sandbox.languages import LANGUAGES
from sandbox.verdict import Status

_ARCHIVE_SIZE = 100  # OpenEvolve's default
_CHANGES = {"rewrite": "Full rewrite", "scratch": "Full rewrite"}


@dataclass(frozen=True, kw_only=True, slots=True)
class FinishedRun:
    """What is exported. ended: seconds since 1970 when the last record was stored."""

    task: TestsTask | OpenEvolveTask
    config: SearchConfig
    seed: Program
    records: Sequence[IterationRecord]
    ended: float


def write_checkpoint(folder: Path, run: FinishedRun) -> int:
    """Write a run into an empty ``folder``; the number of programs that were written."""
    return _Writer(folder, run).write()


class _Writer:
    def __init__(self, folder: Path, run: FinishedRun) -> None:
        self._folder, self._run = folder, run
        self._programs = [run.seed, *(program for record in run.records for program in record.programs)]
        self._identities = self._identify()

    def write(self) -> int:
        (self._folder / PROGRAMS).mkdir()
        islands = self._members()
        for program in self._programs:
            self._write_json(f"{PROGRAMS}/{self._id(program)}.json", self._document(program, islands))
        self._write_json(METADATA, self._metadata(islands))
        self._write_best()
        return len(self._programs)

    def _identify(self) -> dict[int, Identity]:
        """Every program's identity: that which it came with, or one that is the same at every export."""
        run = self._run
        known: dict[int, Identity] = {}
        for record in run.records:
            known |= {int(number): Identity(**found) for number, found in record.info.get(IDENTITY, {}).items()}
        elapsed = {record.iteration: record.elapsed_s for record in run.records}
        began = run.ended - max(elapsed.values(), default=0.0)
        identities: dict[int, Identity] = {}
        for program in self._programs:
            generation = max((identities[number].generation for number in program.parents), default=-1) + 1
            identities[program.number] = known.get(program.number) or Identity(
                id=str(uuid.uuid5(uuid.NAMESPACE_OID, f"{run.task.name}/{program.number}/{program.digest}")),
                generation=generation - 1 if program.operator == "migrant" and generation else generation,
                timestamp=began + elapsed.get(program.iteration, 0.0) + 1e-6 * program.number,  # in order of number
            )
        return identities

    def _id(self, program: Program) -> str:
        return self._identities[program.number].id

    def _members(self) -> list[list[Program]]:
        """Each island's members, best first; a program that is on several counts for the first."""
        islands = Islands(self._run.config)
        islands.seed(self._run.seed)
        for record in self._run.records:
            islands.absorb(record)
        listed: set[int] = set()
        members: list[list[Program]] = []
        for island in range(len(islands)):
            archive = islands[island]
            members.append([program for program in archive.best(len(archive)) if program.number not in listed])
            listed.update(program.number for program in members[-1])
        return members

    def _document(self, program: Program, islands: list[list[Program]]) -> dict[str, Any]:
        """A program's file: the fields of OpenEvolve's ``Program``."""
        identity, evaluation = self._identities[program.number], program.evaluation
        parents = [self._programs[number] for number in program.parents]
        return {
            "id": identity.id,
            "code": program.source,
            "changes_description": "",
            "language": self._run.task.language,
            "parent_id": self._id(parents[0]) if parents else None,
            "generation": identity.generation,
            "timestamp": identity.timestamp,
            "iteration_found": program.iteration,
            "metrics": self._metrics(evaluation),
            "complexity": 0.0,
            "diversity": 0.0,
            "metadata": self._program_metadata(program, parents, islands),
            "prompts": None,
            "artifacts_json": json.dumps(evaluation.artifacts) if evaluation.artifacts else None,
            "artifact_dir": None,
            "embedding": None,
        }

    def _program_metadata(
        self, program: Program, parents: list[Program], islands: list[list[Program]]
    ) -> dict[str, Any]:
        metadata: dict[str, Any] = {"island": program.island}
        if program.number == 0:
            homes = (island for island, members in enumerate(islands) if any(not each.number for each in members))
            metadata["island"] = next(homes, program.island)
        if parents:
            metadata["changes"] = _CHANGES.get(program.operator, program.operator)
            metadata["parent_metrics"] = self._metrics(parents[0].evaluation)
        if program.operator == "migrant":
            metadata["migrant"] = True
        origin = self._origin(program, tuple(self._id(parent) for parent in parents))
        return metadata | {OURS: origin.model_dump(mode="json")}

    def _origin(self, program: Program, parents: tuple[str, ...]) -> Origin:
        evaluation = program.evaluation
        failed = isinstance(self._run.task, OpenEvolveTask) and not evaluation.metrics
        return Origin(
            index=program.index,
            operator=program.operator,
            parents=parents,
            status=evaluation.statuses[0] if failed else Status.PASSED,
            message=evaluation.messages[0] if failed else "",
            cpu_s=evaluation.cpu_s,
            peak_mb=evaluation.peak_mb,
        )

    def _metrics(self, evaluation: Evaluation) -> dict[str, float]:
        if isinstance(self._run.task, OpenEvolveTask):
            return evaluation.metrics or {"error": 0.0}
        return dict(zip(evaluation.components, evaluation.reward, strict=True)) | {COMBINED: evaluation.scalar}

    def _metadata(self, islands: list[list[Program]]) -> dict[str, Any]:
        records = self._run.records
        generations = [0] * len(islands)
        migrated = 0
        for record in records:
            generations[record.island] += 1
            if any(program.operator == "migrant" for program in record.programs):
                migrated = max(generations)
        members = [program for island in islands for program in island]
        members.sort(key=lambda program: -program.evaluation.scalar)
        return {
            "island_feature_maps": [{} for _ in islands],
            "islands": [[self._id(program) for program in island] for island in islands],
            "archive": [self._id(program) for program in members[: self._archive_size]],
            "best_program_id": self._id(self._best),
            "island_best_programs": [self._id(island[0]) if island else None for island in islands],
            "last_iteration": len(records),
            "current_island": len(records) % len(islands),
            "island_generations": generations,
            "last_migration_generation": migrated,
            "feature_stats": {},
        }

    @property
    def _archive_size(self) -> int:
        task = self._run.task
        return (task.config.database.archive_size if isinstance(task, OpenEvolveTask) else None) or _ARCHIVE_SIZE

    @property
    def _best(self) -> Program:
        """The best program, the earliest of equals."""
        return max(self._programs, key=lambda program: (program.evaluation.scalar, -program.number))

    def _write_best(self) -> None:
        best, task = self._best, self._run.task
        identity = self._identities[best.number]
        suffix = task.suffix if isinstance(task, OpenEvolveTask) else Path(LANGUAGES[task.language].file).suffix
        (self._folder / f"best_program{suffix}").write_text(best.source, encoding="utf-8", errors="replace")
        info = {
            "id": identity.id,
            "generation": identity.generation,
            "iteration": best.iteration,
            "current_iteration": len(self._run.records),
            "metrics": self._metrics(best.evaluation),
            "language": task.language,
            "timestamp": identity.timestamp,
            "saved_at": self._run.ended,
        }
        self._write_json("best_program_info.json", info)

    def _write_json(self, name: str, document: dict[str, Any]) -> None:
        (self._folder / name).write_text(json.dumps(document), encoding="utf-8")
