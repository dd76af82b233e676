"""Reading a checkpoint folder of OpenEvolve 0.4: ``metadata.json``, ``programs/ID.json``, and large artifacts as files.

Everything in such a folder is data from elsewhere: it is read as JSON and text, and only from beneath the folder itself
and the ``artifacts`` folder of its run, wherever a program's file says that its artifacts lie.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evolve.strict import explain
from sandbox.inside.evaluation import ARTIFACT_CHARS, MAX_ARTIFACTS, NAME_CHARS
from sandbox.verdict import Status

MAX_ITERATIONS = 50_000  # every one becomes a record; a search has at most twice as many
METADATA = "metadata.json"
PROGRAMS = "programs"
OURS = "vpo"
"""Key of a program's metadata under which an export keeps what OpenEvolve has no field for (:class:`Origin`)."""

Iteration = Annotated[int, Field(ge=0, le=MAX_ITERATIONS)]


class CheckpointError(ValueError):
    """A checkpoint cannot be read; the message names the file, the field and the fix."""


class Origin(BaseModel):
    """What an exported program was in the run that it comes from. parents: ids; the first is its ``parent_id``.

    status, message: why a program without metrics could not be judged.
    """

    model_config = ConfigDict(frozen=True)

    index: Annotated[int, Field(ge=0)]
    operator: Annotated[str, Field(max_length=200)]
    parents: tuple[str, ...]
    status: Status = Status.PASSED
    message: str = ""
    cpu_s: float = 0.0
    peak_mb: float = 0.0


class _Metadata(BaseModel):
    """What is used of ``metadata.json``. islands: ids by island."""

    islands: Annotated[tuple[tuple[str, ...], ...], Field(min_length=1)]
    best_program_id: str | None = None
    last_iteration: Iteration


class _ProgramMetadata(BaseModel):
    island: Annotated[int, Field(ge=0)] | None = None
    migrant: bool = False
    changes: Any = None
    vpo: Origin | None = None


class _ProgramFile(BaseModel):
    """What is used of a program's file."""

    id: Annotated[str, Field(min_length=1, max_length=200)]
    code: str
    parent_id: str | None = None
    generation: Annotated[int, Field(ge=0)] = 0
    timestamp: float = 0.0
    iteration_found: Iteration = 0
    metrics: dict[str, Any] = {}
    metadata: _ProgramMetadata = _ProgramMetadata()
    artifacts_json: str | None = None
    artifact_dir: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredProgram:
    """A program of a checkpoint.

    iteration: that found it; 0 for the initial program, and for copies by migration, of which OpenEvolve keeps none.
    metrics: as the evaluator gave them, whatever they are. rewritten: whether it was written anew, not edited.
    """

    id: str
    source: str
    parent: str | None
    generation: int
    timestamp: float
    iteration: int
    island: int
    migrant: bool
    rewritten: bool
    metrics: dict[str, Any]
    artifacts: dict[str, str]
    origin: Origin | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    """A checkpoint as it was written. iteration: the last one. best: the id of the best program, where it is known.

    lost_artifacts: programs whose large artifacts are not where OpenEvolve writes them.
    """

    iteration: int
    islands: int
    programs: tuple[StoredProgram, ...]
    best: str | None
    lost_artifacts: int = 0


def read_checkpoint(folder: Path) -> Checkpoint:
    """The checkpoint in a folder like ``.../checkpoints/checkpoint_50``. Raises :class:`CheckpointError`."""
    path = folder / METADATA
    if not path.is_file():
        raise CheckpointError(f"{folder} holds no {METADATA}: {_advice(folder)}")
    metadata = _parse(_Metadata, path)
    island_of = {name: island for island, names in enumerate(metadata.islands) for name in names}
    paths = sorted(path for path in (folder / PROGRAMS).glob("*.json") if not path.is_symlink())
    files = {path: _parse(_ProgramFile, path) for path in paths}
    if not files:
        raise CheckpointError(f"{folder / PROGRAMS} holds no program: copy the whole checkpoint folder")
    _check_complete(folder, [file.id for file in files.values()], island_of)
    lost = 0
    programs: list[StoredProgram] = []
    for path, file in files.items():
        artifacts, whole = _artifacts(folder, path, file)
        lost += not whole
        programs.append(_program(file, island_of, len(metadata.islands), artifacts))
    known = {program.id for program in programs}
    return Checkpoint(
        iteration=metadata.last_iteration,
        islands=len(metadata.islands),
        programs=tuple(programs),
        best=metadata.best_program_id if metadata.best_program_id in known else None,
        lost_artifacts=lost,
    )


def _advice(folder: Path) -> str:
    """Which folder was probably meant."""
    found = [path.parent for path in _below(folder)]
    if found:
        return f"name {max(found, key=lambda path: (path.stat().st_mtime, path.name))}"
    if not folder.exists():
        return "there is no such folder"
    return "name a checkpoint folder, like openevolve_output/checkpoints/checkpoint_50"


def _below(folder: Path) -> Iterator[Path]:
    for pattern in (f"checkpoint_*/{METADATA}", f"checkpoints/checkpoint_*/{METADATA}"):
        yield from folder.glob(pattern)


Model = TypeVar("Model", bound=BaseModel)


def _parse(model: type[Model], path: Path) -> Model:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"{path} is not valid JSON ({error}): copy the checkpoint again, or take another"
        ) from None
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise CheckpointError(f"{path}: {explain(error)}: is this a checkpoint of OpenEvolve 0.4?") from None


def _check_complete(folder: Path, ids: Sequence[str], island_of: dict[str, int]) -> None:
    twice = [name for name, count in Counter(ids).items() if count > 1]
    if twice:
        raise CheckpointError(f"{folder / PROGRAMS} holds program {twice[0]} twice: remove one of the files")
    missing = sorted(island_of.keys() - set(ids))
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise CheckpointError(
            f"{folder / METADATA} names program {missing[0]}{more}, which {folder / PROGRAMS} does not hold: "
            "copy the whole checkpoint folder"
        )


def _program(file: _ProgramFile, island_of: dict[str, int], islands: int, artifacts: dict[str, str]) -> StoredProgram:
    of_metadata = file.metadata.island or 0
    return StoredProgram(
        id=file.id,
        source=file.code,
        parent=file.parent_id,
        generation=file.generation,
        timestamp=file.timestamp,
        iteration=file.iteration_found,
        island=island_of.get(file.id, of_metadata if of_metadata < islands else 0),
        migrant=file.metadata.migrant,
        rewritten=file.metadata.changes in (None, "Full rewrite"),
        metrics=file.metrics,
        artifacts={
            name[:NAME_CHARS]: text[:ARTIFACT_CHARS] for name, text in list(artifacts.items())[:MAX_ARTIFACTS]
        },  # within the bounds of a program judged here
        origin=file.metadata.vpo,
    )


def _artifacts(folder: Path, path: Path, file: _ProgramFile) -> tuple[dict[str, str], bool]:
    """A program's artifacts, and whether they are all there."""
    artifacts: dict[str, str] = {}
    if file.artifacts_json:
        try:
            small = json.loads(file.artifacts_json)
        except (ValueError, RecursionError) as error:
            raise CheckpointError(f"{path}: artifacts_json is not valid JSON ({error}): remove it") from None
        if not isinstance(small, dict):
            raise CheckpointError(f"{path}: artifacts_json must be an object: remove it")
        artifacts |= {
            str(name): value if isinstance(value, str) else json.dumps(value) for name, value in small.items()
        }
    if file.artifact_dir is None:
        return artifacts, True
    where = _artifact_folder(folder, file.id)
    if where is None:
        return artifacts, False
    for large in sorted(where.iterdir()):
        if large.is_file() and not large.is_symlink():
            with large.open(encoding="utf-8", errors="replace") as stream:
                artifacts[large.name] = stream.read(ARTIFACT_CHARS)
    return artifacts, True


def _artifact_folder(folder: Path, name: str) -> Path | None:
    """Where a program's large artifacts lie: beside its checkpoint, its run's output or where the run was started."""
    if Path(name).name != name or name == "..":
        return None
    bases = [folder, *folder.resolve().parents[:3]]
    found = (base / "artifacts" / name for base in bases)
    return next((path for path in found if path.is_dir() and not path.is_symlink()), None)
