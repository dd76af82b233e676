"""Reading tasks and suites from folders and files (YAML, JSON, JSON lines, HumanEval, MBPP, LiveCodeBench)."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field, TypeAdapter, ValidationError

from evolve.humaneval import Skipped, is_humaneval, read_humaneval
from evolve.livecodebench import is_livecodebench, read_livecodebench
from evolve.mbpp import is_mbpp, read_mbpp
from evolve.openevolve_keys import is_foreign
from evolve.openevolve_task import EVALUATOR, MAX_FILES_CHARS, PROGRAM_STEM, OpenEvolveTask
from evolve.strict import explain, unknown_key
from evolve.tests_task import TestsTask

AnyTask = TestsTask | OpenEvolveTask

_ADAPTER: TypeAdapter[AnyTask] = TypeAdapter(Annotated[AnyTask, Field(discriminator="format")])
_DOCUMENTS = (".yaml", ".yml", ".json")
_TASK_FILES = tuple(f"task{suffix}" for suffix in _DOCUMENTS)
_CONFIG_FILES = ("config.yaml", "config.yml")
_READERS: tuple[tuple[Callable[[Any], bool], Callable[[Iterable[Any]], tuple[list[TestsTask], list[Skipped]]]], ...] = (
    (is_humaneval, read_humaneval),
    (is_livecodebench, read_livecodebench),
    (is_mbpp, read_mbpp),
)
_SKIPPED_FOLDERS = ("__pycache__", "openevolve_output")


class TaskError(ValueError):
    """A task or suite cannot be read; the message names the file, the field and the fix."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Suite:
    """A list of tasks with different names. skipped: problems of the source that could not become tasks, and why."""

    name: str
    tasks: tuple[AnyTask, ...]
    skipped: tuple[Skipped, ...] = ()

    @property
    def digest(self) -> str:
        """Digest of the tasks' content, the same wherever they were read from."""
        documents = [task.model_dump(mode="json") for task in self.tasks]
        text = json.dumps(documents, sort_keys=True, ensure_ascii=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def load_task(path: Path | str) -> AnyTask:
    """One task: a folder (``task.yaml``/``task.json``, or OpenEvolve's layout) or a YAML or JSON file.

    Raises :class:`TaskError`.
    """
    path = Path(path)
    if path.is_dir():
        document = next((path / name for name in _TASK_FILES if (path / name).is_file()), None)
        if document is not None:
            return _parse(_with_folder(_read_document(document), path), document, default_name=path.resolve().name)
        if (path / EVALUATOR).is_file():
            return _parse(_with_folder({"format": "openevolve"}, path), path, default_name=path.resolve().name)
        raise TaskError(
            f"{path} is no task: it needs {_TASK_FILES[0]}, or {EVALUATOR} and {PROGRAM_STEM}.py or {PROGRAM_STEM}/"
        )
    if not path.is_file():
        raise TaskError(f"{path} does not exist: name a task folder or file")
    return _parse(_read_document(path), path, default_name=path.stem)


def load_suite(path: Path | str) -> Suite:
    """A suite: a folder of tasks, a file (``name`` and ``tasks``, JSON lines of any kind that is known), or one task.

    Raises :class:`TaskError`.
    """
    path = Path(path)
    if path.is_dir():
        if _is_task_folder(path):
            return _suite(path.resolve().name, [load_task(path)], path)
        members = sorted(member for member in path.iterdir() if _is_member(member))
        if not members:
            raise TaskError(f"{path} holds no tasks: put task folders, YAML or JSON files in it")
        return _suite(path.resolve().name, [load_task(member) for member in members], path)
    if not path.is_file():
        raise TaskError(f"{path} does not exist: name a folder or file of tasks")
    name = path.name.split(".")[0]
    if path.name.endswith((".jsonl", ".jsonl.gz")):
        return _from_lines(name, path)
    document = _read_document(path)
    if isinstance(document, dict) and "tasks" in document and "format" not in document:
        return _from_document(name, document, path)
    return _suite(name, [_parse(document, path, default_name=name)], path)


def _from_document(name: str, document: dict[str, Any], path: Path) -> Suite:
    for key in document:
        if key not in ("name", "tasks"):
            raise TaskError(f"{path}: {unknown_key(key, ('name', 'tasks'))}")
    tasks, given = document["tasks"], document.get("name", name)
    if not isinstance(tasks, list) or not isinstance(given, str):
        raise TaskError(f"{path}: tasks must be a list and name a text")
    return _suite(given, [_parse(task, path, where=f"tasks[{i}]") for i, task in enumerate(tasks)], path)


def read_lines(path: Path) -> list[tuple[int, Any]]:
    """The values of a file of JSON lines, compressed or not, with their line numbers. Raises :class:`TaskError`."""
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return [(number, json.loads(line)) for number, line in enumerate(data.decode().splitlines(), 1) if line.strip()]
    except (OSError, EOFError, ValueError, RecursionError) as error:
        raise TaskError(f"{path}: not JSON lines: {error}") from None


def _from_lines(name: str, path: Path) -> Suite:
    records = read_lines(path)
    for is_known, read in _READERS:
        if records and is_known(records[0][1]):
            tasks, skipped = read(record for _, record in records)
            return _suite(name, tasks, path, skipped=tuple(skipped))
    return _suite(name, [_parse(record, path, where=f"line {number}") for number, record in records], path)


def _suite(name: str, tasks: Iterable[AnyTask], path: Path, *, skipped: tuple[Skipped, ...] = ()) -> Suite:
    tasks = tuple(tasks)
    if not tasks:
        raise TaskError(f"{path} holds no usable task" + (f": {skipped[0].reason}" if skipped else ""))
    names = [task.name for task in tasks]
    for task_name in names:
        if names.count(task_name) > 1:
            raise TaskError(f"{path}: two tasks are named {task_name!r}: rename one")
    return Suite(name=name, tasks=tasks, skipped=skipped)


def _is_task_folder(path: Path) -> bool:
    return any((path / name).is_file() for name in (*_TASK_FILES, EVALUATOR))


def _is_member(path: Path) -> bool:
    if path.name.startswith("."):
        return False
    return _is_task_folder(path) if path.is_dir() else path.suffix in _DOCUMENTS


def _with_folder(document: Any, folder: Path) -> Any:
    """Fill in the files and configuration that lie beside the document of an OpenEvolve task."""
    if not isinstance(document, dict) or document.get("format") != "openevolve" or "files" in document:
        return document
    files, unread = _read_files(folder)
    filled = {**document, "files": files, "ignored": [*(document.get("ignored") or []), *unread]}
    config = next((folder / name for name in _CONFIG_FILES if (folder / name).is_file()), None)
    if config is not None and "config" not in document:
        read = _read_document(config) or {}
        if is_foreign(read):
            files[config.name] = config.read_text(encoding="utf-8")
            filled["ignored"].append(f"{config.name} as a configuration: it has no key of OpenEvolve's")
        else:
            filled["config"] = read
    return filled


def _read_files(folder: Path) -> tuple[dict[str, str], list[str]]:
    """Text files of a task folder by relative path, and names of those that are no text."""
    files: dict[str, str] = {}
    unread: list[str] = []
    size = 0
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if any(p.startswith((".", *_SKIPPED_FOLDERS)) for p in relative.parts):
            continue
        if relative.parts[0] == PROGRAM_STEM and path.is_symlink():
            raise TaskError(f"{path} is a symbolic link, and programs have none: put the file itself there")
        if not path.is_file():
            continue
        if len(relative.parts) == 1 and path.name in (*_TASK_FILES, *_CONFIG_FILES):
            continue
        size += path.stat().st_size
        if size > 4 * MAX_FILES_CHARS:
            raise TaskError(f"{folder} holds too much for a task ({relative}): keep only what the evaluator needs")
        try:
            files[relative.as_posix()] = path.read_bytes().decode()
        except UnicodeDecodeError:
            if relative.parts[0] == PROGRAM_STEM:
                raise TaskError(
                    f"{path} is no text, and programs hold nothing else: move it out of the folder"
                ) from None
            unread.append(f"file {relative.as_posix()}")
    return files, unread


def _parse(document: Any, path: Path, *, where: str = "", default_name: str | None = None) -> AnyTask:
    place = f"{path}: {where}" if where else str(path)
    if not isinstance(document, dict):
        raise TaskError(f"{place}: a task must be a mapping, not {type(document).__name__}")
    if default_name is not None and "name" not in document:
        document = {**document, "name": default_name}
    if "format" not in document:
        raise TaskError(f"{place}: format is missing: add 'format: tests' or 'format: openevolve'")
    try:
        return _ADAPTER.validate_python(document)
    except ValidationError as error:
        raise TaskError(f"{place}: {explain(error)}") from None


class _UniqueKeys(yaml.SafeLoader):
    """YAML without repeated keys, which would silently drop the first one's value."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.value != "<<"]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is given twice", node.start_mark)
        return super().construct_mapping(node, deep)


def _read_document(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
        return json.loads(text) if path.suffix == ".json" else yaml.load(text, _UniqueKeys)  # noqa: S506 (safe)
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path} cannot be read: {error}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise TaskError(f"{path} is not valid {'JSON' if path.suffix == '.json' else 'YAML'}: {error}") from None
