"""A task in OpenEvolve's format: ``initial_program.EXT``, ``evaluator.py`` and, if wanted, ``config.yaml``.

Beyond that format: a folder ``initial_program/`` in its place is a program of several files (:mod:`evolve.files`), and
``evaluate`` gets the path of a folder.
"""

from __future__ import annotations

import ast
import math
import re
from dataclasses import asdict
from functools import cached_property
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from evolve.config import STRATEGY_NAMES, SearchConfig
from evolve.files import check_files, commonest_language, join_files, language_of, split_files
from evolve.openevolve import OpenEvolveConfig, split_config
from evolve.strict import StrictModel
from evolve.tests_task import Name, Text, check_json, check_limits, make_limits
from sandbox.evaluation import EVALUATOR_LIMITS, EvaluatorSettings
from sandbox.limits import Limits

COMBINED = "combined_score"
EVALUATOR = "evaluator.py"
PROGRAM_STEM = "initial_program"
_FOLDER = f"{PROGRAM_STEM}/"
MAX_FILES_CHARS = 4_000_000
_DEFAULT_STATEMENT = (
    "Improve the program so that its evaluator gives it higher scores. Keep the names and signatures of the functions "
    "that the evaluator calls."
)
FolderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")]
_BUILT_IN = {"complexity": "length", "score": "scalar", "diversity": "diversity"}
_POPULATION = 1_000  # OpenEvolve's default
_MIGRATION_INTERVAL = 50
_MIGRATION_RATE = 0.1

Bounds = tuple[float, float]


class Environment(StrictModel):
    """What the evaluator needs of the machine that it runs on.

    packages: Python packages that must be installed, by name of the distribution or the module; all installed ones are
        visible. An empty list shows none; without it all are visible and none is asked for.
    folders: names of folders that the operator offers (``VPO_FOLDERS``); they are read-only under ``/data/NAME``.
    """

    packages: Annotated[tuple[Name, ...], Field(max_length=256)] | None = None
    folders: Annotated[tuple[FolderName, ...], Field(max_length=64)] = ()


class OpenEvolveTask(StrictModel):
    """A task judged by its own evaluator, which runs in the jail beside the program.

    files: text by relative path: ``evaluator.py``, one ``initial_program.EXT`` or the files of a folder
        ``initial_program``, and whatever the evaluator reads.
    new_files: whether answers may add files to a program that is a folder.
    config: OpenEvolve's configuration; keys without effect are moved to ``ignored`` (their dotted names).
    ranges: raw metric value that gives reward 0 and the one that gives reward 1, by metric; ``[10, 0]`` is a loss.
        Default [0, 1]; values outside are clamped.
    limits: fields of :class:`sandbox.limits.Limits`, over those of ``config.evaluator``.
    environment: what the evaluator needs of the machine: packages, folders.
    target: the task scalar at which the task counts as solved, in (0, 1].

    The task scalar is ``combined_score`` if the evaluator gives one, else the mean of the reward vector. The reward
    components are the metrics that ``ranges`` names (``combined_score`` apart) or, where it names none, those that the
    seed program's evaluation gives, in order of name. ``combined_score`` is a component only if there is no other, and
    a metric that serves as a feature dimension only if ``ranges`` names it.
    """

    format: Literal["openevolve"] = "openevolve"
    name: Name
    files: dict[str, Text]
    new_files: bool = False
    config: OpenEvolveConfig = OpenEvolveConfig()
    ranges: dict[Name, Bounds] = Field(default_factory=dict)
    limits: dict[str, float] = Field(default_factory=dict)
    environment: Environment = Environment()
    target: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    ignored: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _split(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not isinstance(data.get("config"), dict):
            return data
        config, ignored = split_config(data["config"])
        folder = config.get("prompt", {}).get("template_dir")
        if folder and not any(str(path).startswith(f"{_folder(folder)}/") for path in data.get("files") or ()):
            ignored = (*ignored, f"prompt.template_dir {folder!r}, which is no folder of the task")
        already = data.get("ignored") or ()
        if not isinstance(already, list | tuple):
            return data
        return {**data, "config": config, "ignored": tuple(dict.fromkeys((*already, *ignored)))}

    @property
    def template_folder(self) -> str | None:
        """The folder of ``files`` that may hold prompt templates."""
        return _folder(self.config.prompt.template_dir) if self.config.prompt.template_dir else None

    @field_validator("files")
    @classmethod
    def _check_files(cls, files: dict[str, str]) -> dict[str, str]:
        if sum(map(len, files.values())) > MAX_FILES_CHARS:
            raise ValueError(f"files hold more than {MAX_FILES_CHARS:,} characters: leave out what is not needed")
        for path, text in files.items():
            parts = PurePosixPath(path).parts
            if not path or path != str(PurePosixPath(path)) or path.startswith("/") or ".." in parts or "\\" in path:
                raise ValueError(f"file name {path!r} must be a relative path without '..'")
            check_json([path, text])
        _check_programs(files)
        _check_evaluator(files[EVALUATOR])
        return files

    @field_validator("ranges")
    @classmethod
    def _check_ranges(cls, ranges: dict[str, Bounds]) -> dict[str, Bounds]:
        for metric, bounds in ranges.items():
            if not all(map(math.isfinite, bounds)) or bounds[0] == bounds[1]:
                raise ValueError(f"ranges.{metric} must be two different finite numbers, not {list(bounds)}")
        return ranges

    @field_validator("limits")
    @classmethod
    def _check_limits(cls, value: dict[str, float]) -> dict[str, float]:
        check_limits(value)
        return value

    @property
    def components(self) -> tuple[str, ...]:
        """The reward components that are known before the first evaluation; empty if that decides."""
        return tuple(name for name in self.ranges if name != COMBINED)

    @cached_property  # asked for in every iteration
    def several_files(self) -> bool:
        """Whether a program is a folder; its source is then the text of :func:`evolve.files.join_files`."""
        return not any(map(_is_program, self.files))

    @property
    def program_file(self) -> str:
        """The path of the seed program within ``files``; of its folder, where it has several files."""
        return next((path for path in self.files if _is_program(path)), PROGRAM_STEM)

    @property
    def suffix(self) -> str:
        """The file suffix that the evaluator expects of a program, for instance ``.py``; empty for a folder."""
        suffix = PurePosixPath(self.program_file).suffix
        return suffix if self.several_files else self.config.file_suffix or suffix

    @cached_property  # asked for in every iteration
    def language(self) -> str:
        if self.config.language:
            return self.config.language
        if self.several_files:
            return commonest_language(_folder_files(self.files))
        return language_of(f"program{self.suffix}") or "text"

    @property
    def seed_source(self) -> str:
        """The program a search starts from."""
        return join_files(_folder_files(self.files)) if self.several_files else self.files[self.program_file]

    def candidate(self, source: str) -> str | dict[str, str]:
        """A program as the sandbox takes it: its text, or its files by path where it is a folder.

        Raises ``ValueError`` where it should be a folder and is not.
        """
        if not self.several_files:
            return source
        files = split_files(source)
        if files is None:
            raise ValueError("the program is no text of several files: each begins with '==> PATH (N lines) <=='")
        return files

    @property
    def support_files(self) -> dict[str, str]:
        """What lies beside a candidate in the jail: everything but the seed program."""
        folder = {path for path in self.files if path.startswith(_FOLDER)}
        seed = folder if self.several_files else {self.program_file}
        return {path: text for path, text in self.files.items() if path not in seed}

    @property
    def statement(self) -> str:
        message = (self.config.prompt.system_message or "").strip()
        return message if message and message != "system_message" else _DEFAULT_STATEMENT

    @property
    def entry_point(self) -> None:
        """The evaluator calls what it likes."""
        return None

    @property
    def shows_artifacts(self) -> bool:
        """Whether prompts may show what the evaluator said about a program."""
        return self.config.prompt.include_artifacts and self.config.evaluator.enable_artifacts

    @property
    def sandbox_limits(self) -> Limits:
        """The limits of one evaluation: the sandbox's for evaluators, then the configuration's, then ``limits``."""
        settings = self.config.evaluator
        values: dict[str, float] = asdict(EVALUATOR_LIMITS) | {"wall_s": settings.timeout, "cpu_s": settings.timeout}
        if settings.memory_limit_mb is not None:
            values["memory_mb"] = settings.memory_limit_mb
        return make_limits(values | self.limits)

    @property
    def evaluator_settings(self) -> EvaluatorSettings:
        """How the sandbox is to call the evaluator."""
        settings, environment = self.config.evaluator, self.environment
        return EvaluatorSettings(
            thresholds=settings.cascade_thresholds if settings.cascade_evaluation else (),
            arguments=settings.evaluator_args,
            packages=environment.packages != (),
            required=environment.packages or (),
            folders=environment.folders,
        )

    def search_settings(self) -> dict[str, Any]:
        """What the configuration says about the search, as fields of :class:`evolve.config.SearchConfig`."""
        config, database = self.config, self.config.database
        settings: dict[str, Any] = {
            "edit": None if config.diff_based_evolution is None else "diff" if config.diff_based_evolution else "whole",
            "temperature": config.llm.temperature,
            "top_p": config.llm.top_p,
            "max_tokens": config.llm.max_tokens,
            "max_source_chars": config.max_code_length,
            "inspirations": self._inspirations(),
            "islands": database.num_islands,
            "budget": {"stagnation": config.early_stopping_patience} if config.early_stopping_patience else None,
            "selection": self._selection() or None,
            **self._migration(),
        }
        capacity = self._per_island(database.population_size, 262_144)
        archive = {"capacity": capacity, "features": self._features()}
        settings["archive"] = {key: value for key, value in archive.items() if value} or None
        return {key: value for key, value in settings.items() if value is not None}

    def _per_island(self, total: int | None, most: int) -> int | None:
        """An island's share of a number of programs, at least one; islands here have an archive each."""
        islands = self.config.database.num_islands or SearchConfig().islands
        return None if total is None else min(most, max(1, -(-total // islands)))

    def _migration(self) -> dict[str, int]:
        """OpenEvolve counts turns of an island and moves a share of its programs, of which each turn brought one."""
        database = self.config.database
        settings: dict[str, int] = {}
        turns = database.migration_interval or _MIGRATION_INTERVAL
        if database.migration_interval is not None:
            settings["migration_interval"] = turns * (database.num_islands or SearchConfig().islands)
        if database.migration_rate is not None or database.migration_interval is not None:
            rate = _MIGRATION_RATE if database.migration_rate is None else database.migration_rate
            members = min(turns, self._per_island(database.population_size or _POPULATION, turns) or turns)
            settings["migration_count"] = min(64, max(1, int(rate * members)))
        return settings

    def _selection(self) -> dict[str, Any]:
        """Weights of the strategies: the ratios, and for the rest the best by a random weighting of the rewards."""
        database = self.config.database
        settings: dict[str, Any] = {}
        if (elites := self._per_island(database.archive_size, 1_024)) is not None:
            settings["elites"] = elites
        explore, exploit = database.exploration_ratio, database.exploitation_ratio
        if explore is None and exploit is None:
            return settings
        explore, exploit = 0.2 if explore is None else explore, 0.7 if exploit is None else exploit
        weights = dict.fromkeys(STRATEGY_NAMES, 0.0) | {"explore": explore, "exploit": min(exploit, 1.0 - explore)}
        return settings | weights | {"dirichlet": max(0.0, 1.0 - explore - exploit)}

    def _inspirations(self) -> int | None:
        prompt = self.config.prompt
        if prompt.num_top_programs is None and prompt.num_diverse_programs is None:
            return None
        return min(16, (prompt.num_top_programs or 0) + (prompt.num_diverse_programs or 0))

    def _features(self) -> list[dict[str, Any]]:
        """OpenEvolve's feature dimensions; ``diversity`` is that of behaviour, not of text."""
        database = self.config.database
        features: list[dict[str, Any]] = []
        for dimension in dict.fromkeys(database.feature_dimensions or ()):
            feature: dict[str, Any] = {"name": _BUILT_IN.get(dimension, f"metric:{dimension}")}
            bins = database.feature_bins
            bins = bins.get(dimension) if isinstance(bins, dict) else bins
            if bins is not None:
                feature["bins"] = bins
            if dimension not in _BUILT_IN:
                feature["low"], feature["high"] = sorted(self.ranges.get(dimension, (0.0, 1.0)))
            features.append(feature)
        return features


def _folder(name: object) -> str:
    return str(PurePosixPath(str(name)))


def _is_program(path: str) -> bool:
    return re.fullmatch(re.escape(PROGRAM_STEM) + r"\.[A-Za-z0-9]+", path) is not None


def _folder_files(files: dict[str, str]) -> dict[str, str]:
    """The files of the folder ``initial_program``, by their path in it."""
    return {path.removeprefix(_FOLDER): text for path, text in files.items() if path.startswith(_FOLDER)}


def _check_programs(files: dict[str, str]) -> None:
    programs, folder = [path for path in files if _is_program(path)], _folder_files(files)
    if programs and folder:
        raise ValueError(f"files have both {programs[0]} and the folder {_FOLDER}: keep the one that is the program")
    if EVALUATOR not in files or len(programs) + bool(folder) != 1:
        given = ", ".join(sorted(files)) or "none"
        raise ValueError(
            f"files need {EVALUATOR} and one {PROGRAM_STEM}.EXT, or the folder {_FOLDER}, at the top, not {given}"
        )
    if folder:
        try:
            check_files(folder)
        except ValueError as error:
            raise ValueError(f"{_FOLDER}: {error}") from None
    elif split_files(files[programs[0]]) is not None:
        raise ValueError(f"{programs[0]} is the text of a program of several files: write them into {_FOLDER}")


def _check_evaluator(source: str) -> None:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{EVALUATOR} is not valid Python: {error}") from None
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    names |= {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    if not names & {"evaluate", "*"}:
        raise ValueError(f"{EVALUATOR} defines no function evaluate(program_path): add it")
