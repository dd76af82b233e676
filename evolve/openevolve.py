"""OpenEvolve's ``config.yaml`` (version 0.4.0).

A configuration is accepted as OpenEvolve has it. Keys that mean something here are kept, under OpenEvolve's own names.
Keys that have no effect are collected, each with the reason; so are keys in a wrong section, which OpenEvolve drops
without a word, with their right place. A key that OpenEvolve does not know at all is an error.

``${VAR}`` is never replaced in a task. OpenEvolve replaces it in ``api_key`` alone; there the reference is kept as it
stands, and only :func:`evolve.openevolve_models.configured_models` looks the variable up, when its client is made. A
key that is written out is dropped and reported, so that a stored task never holds one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, JsonValue
from pydantic.fields import FieldInfo

from evolve.config import MaxTokens, Temperature, TopP, Weight
from evolve.openevolve_keys import KNOWN, MODEL_KEYS, OLDER_MODEL_KEYS, SECRET_KEYS, misplaced, reason
from evolve.strict import StrictModel, unknown_key

REFERENCE = re.compile(r"^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$")
DEFAULT_DIFF_PATTERN = r"<<<<<<< SEARCH\n(.*?)=======\n(.*?)>>>>>>> REPLACE"
_BELONGS = " (belongs in "
_ONLY_WITH_TEMPLATES = (
    "use_template_stochasticity",
    "template_variations",
    "max_artifact_bytes",
    "suggest_simplification_after_chars",
)
_ALWAYS_SO: dict[str, tuple[Any, ...]] = {
    "enforce_evolve_blocks": (True,),
    "diff_pattern": (DEFAULT_DIFF_PATTERN,),
    "early_stopping_metric": ("combined_score",),
    "llm.provider": ("openai",),
    "llm.evaluator_models": ([],),
    "prompt.use_meta_prompting": (False,),
    "prompt.programs_as_changes_description": (False,),
    "evaluator.distributed": (False,),
    "evaluator.use_llm_feedback": (False,),
}
"""Values that ask for what is done anyway; they are not worth a report."""

Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
Unit = Annotated[float, Field(ge=0.0, le=1.0)]
Url = Annotated[str, Field(pattern=r"^https?://[^/@\s]+(/\S*)?$", max_length=2_000)]  # without a password
Reference = Annotated[str, Field(pattern=REFERENCE.pattern)]


class _ModelSettings(StrictModel):
    """How a model is asked, and where.

    temperature in [0, 2], top_p in (0, 1], max_tokens per completion. timeout: seconds of one answer. retries, and
    retry_delay in seconds: after a failed request. api_key: the name of an environment variable, as ``${NAME}``.
    """

    temperature: Temperature | None = None
    top_p: TopP | None = None
    max_tokens: MaxTokens | None = None
    timeout: Annotated[float, Field(gt=0.0, le=86_400.0)] | None = None
    retries: Annotated[int, Field(ge=0, le=100)] | None = None
    retry_delay: Annotated[float, Field(ge=0.0, le=3_600.0)] | None = None
    api_base: Url | None = None
    api_key: Reference | None = None


class ModelEntry(_ModelSettings):
    """One model of an ensemble. weight: how often it is asked. What it does not say, ``llm`` says for all."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    weight: Weight = 1.0


class LLMSettings(_ModelSettings):
    """The models, and what holds for all of them."""

    models: Annotated[tuple[ModelEntry, ...], Field(max_length=16)] = ()


class PromptSettings(StrictModel):
    """system_message is the task's statement; the numbers add up to the inspirations shown.

    template_dir: folder of the task with OpenEvolve's prompt templates; the keys after it are about those. See
    :mod:`evolve.openevolve_prompt`.
    """

    system_message: Annotated[str, Field(max_length=100_000)] | None = None
    num_top_programs: Annotated[int, Field(ge=0)] | None = None
    num_diverse_programs: Annotated[int, Field(ge=0)] | None = None
    include_artifacts: bool = True
    template_dir: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    use_template_stochasticity: bool = True
    template_variations: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    max_artifact_bytes: Annotated[int, Field(ge=0)] = 20 * 1024
    suggest_simplification_after_chars: Annotated[int, Field(ge=1)] | None = 500


class DatabaseSettings(StrictModel):
    """The population. feature_bins: for all dimensions, or by dimension. migration_interval: turns of an island.

    exploration_ratio, exploitation_ratio: shares of parents drawn from the whole island and from the best
    ``archive_size`` programs; the rest is drawn by score.
    """

    num_islands: Annotated[int, Field(ge=1, le=64)] | None = None
    population_size: Annotated[int, Field(ge=1)] | None = None
    archive_size: Annotated[int, Field(ge=1, le=65_536)] | None = None
    exploration_ratio: Unit | None = None
    exploitation_ratio: Unit | None = None
    migration_interval: Count | None = None
    migration_rate: Unit | None = None
    feature_dimensions: Annotated[tuple[str, ...], Field(max_length=4)] | None = None
    feature_bins: Annotated[int, Field(ge=1, le=64)] | dict[str, Annotated[int, Field(ge=1, le=64)]] | None = None
    random_seed: Annotated[int, Field(ge=0)] | None = None


class EvaluatorSettings(StrictModel):
    """How the evaluator is run; the defaults are OpenEvolve's.

    timeout: wall-clock seconds of one evaluation, or of one stage of a cascade. memory_limit_mb: MiB of one process.
    cascade_evaluation: whether ``evaluate_stage1`` to ``3`` run instead of ``evaluate`` where the evaluator has them.
    cascade_thresholds: what ``combined_score`` (or the mean of the metrics) must reach after a stage for the next one.
    enable_artifacts: whether prompts may show artifacts. evaluator_args: keyword arguments of ``evaluate``.
    """

    timeout: Annotated[float, Field(gt=0.0, le=86_400.0)] = 300.0
    memory_limit_mb: Annotated[int, Field(ge=1)] | None = None
    cascade_evaluation: bool = True
    cascade_thresholds: Annotated[
        tuple[Annotated[float, Field(allow_inf_nan=False)], ...], Field(min_length=1, max_length=16)
    ] = (0.5, 0.75, 0.9)
    enable_artifacts: bool = True
    evaluator_args: dict[str, JsonValue] = Field(default_factory=dict)


class OpenEvolveConfig(StrictModel):
    """The part of OpenEvolve's configuration that has an effect here; itself a valid OpenEvolve configuration.

    max_code_length: characters of a program; a longer one is refused. early_stopping_patience: iterations without a
    better score that end a run.
    """

    max_iterations: Count | None = None
    random_seed: Annotated[int, Field(ge=0)] | None = None
    language: str | None = None
    file_suffix: Annotated[str, Field(pattern=r"^\.[A-Za-z0-9]+$")] | None = None
    diff_based_evolution: bool | None = None
    max_code_length: Count | None = None
    early_stopping_patience: Count | None = None
    llm: LLMSettings = LLMSettings()
    prompt: PromptSettings = PromptSettings()
    database: DatabaseSettings = DatabaseSettings()
    evaluator: EvaluatorSettings = EvaluatorSettings()

    @property
    def seed(self) -> int | None:
        """``random_seed``, of the database if only that is given."""
        return self.database.random_seed if self.random_seed is None else self.random_seed


_SECTIONS: dict[str, type[StrictModel]] = {
    "": OpenEvolveConfig,
    "llm": LLMSettings,
    "prompt": PromptSettings,
    "database": DatabaseSettings,
    "evaluator": EvaluatorSettings,
}


def split_config(raw: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The effective part of an OpenEvolve configuration, and the dotted names of the keys that have no effect.

    A key whose value is null counts as not given. The name of a misplaced key goes on with its right place. Raises
    ``ValueError`` for an unknown key, naming the nearest one.
    """
    if not isinstance(raw, dict):
        raise ValueError(f"config must be a mapping, not {type(raw).__name__}")
    ignored: list[str] = []
    kept = _split_section("", raw, ignored)
    return kept, tuple(sorted(ignored))


def _split_section(section: str, values: dict[str, Any], ignored: list[str]) -> dict[str, Any]:
    effective = _SECTIONS[section].model_fields if section in _SECTIONS else {}
    kept: dict[str, Any] = {}
    for key, value in values.items():
        dotted = f"{section}.{key}" if section else str(key)
        if place := misplaced(section, key):
            ignored.append(f"{dotted}{_BELONGS}{place})")
        elif not section and key in KNOWN:
            if value is not None and not isinstance(value, dict):
                raise ValueError(f"{dotted} must be a mapping, not {value!r}")
            inner = _split_section(key, _with_models(value or {}) if key == "llm" else value or {}, ignored)
            if key in effective:
                kept[key] = inner
        elif dotted == "llm.models":
            kept[key] = _split_models(value, ignored)
        elif key in SECRET_KEYS and not _is_reference(value):
            ignored.extend([dotted] * (value is not None))
        elif key in effective and not (key in _ONLY_WITH_TEMPLATES and not values.get("template_dir")):
            kept.update({} if value in (None, "") else {key: value})
        elif value not in _ALWAYS_SO.get(dotted, ()) and not _is_default(effective, key, value):
            ignored.append(dotted)
    return kept


def _is_default(fields: Mapping[str, FieldInfo], key: str, value: Any) -> bool:
    """Whether a key that could have an effect elsewhere says what holds anyway."""
    return key in fields and value == fields[key].get_default(call_default_factory=True)


def _is_reference(value: Any) -> bool:
    return isinstance(value, str) and REFERENCE.match(value) is not None


def _with_models(llm: dict[str, Any]) -> dict[str, Any]:
    """``llm`` with the older way of naming two models put into ``models``."""
    rest = {key: value for key, value in llm.items() if key not in OLDER_MODEL_KEYS}
    older: list[dict[str, Any]] = []
    for kind, default in (("primary", 1.0), ("secondary", 0.2)):
        name, weight = llm.get(f"{kind}_model"), llm.get(f"{kind}_model_weight")
        if name:
            older.append({"name": name, "weight": default if weight is None else weight})
    return rest | ({"models": [*(llm.get("models") or []), *older]} if older else {})


def _split_models(models: Any, ignored: list[str]) -> list[dict[str, Any]]:
    if models is None:
        return []
    if not isinstance(models, list | tuple) or not all(isinstance(model, dict) for model in models):
        raise ValueError("llm.models must be a list of mappings")
    kept: list[dict[str, Any]] = []
    for i, model in enumerate(models):
        entry: dict[str, Any] = {}
        for key, value in model.items():
            if key not in MODEL_KEYS:
                raise ValueError(f"llm.models[{i}]: {unknown_key(key, MODEL_KEYS)}")
            usable = key in ModelEntry.model_fields and (key not in SECRET_KEYS or _is_reference(value))
            if value is not None and usable:
                entry[key] = value
            elif value is not None and value not in _ALWAYS_SO.get(f"llm.{key}", ()):
                ignored.append(f"llm.models[{i}].{key}")
        kept.append(entry)
    return kept


def explain_ignored(ignored: tuple[str, ...]) -> str | None:
    """For the user, a line each: what was given and has no effect, and why; ``None`` if there is nothing to say."""
    secrets = [key for key in ignored if key.rsplit(".", 1)[-1] in SECRET_KEYS]
    moved = [key for key in ignored if _BELONGS in key]
    others: dict[str, list[str]] = {}
    for key in ignored:
        if key not in secrets and key not in moved:
            others.setdefault(_why(key), []).append(key)
    lines = [f"misplaced, and without effect as in OpenEvolve: {', '.join(moved)}"] if moved else []
    lines += [f"without effect here: {', '.join(keys)}{f' ({why})' if why else ''}" for why, keys in others.items()]
    if secrets:
        lines.append(f"secrets were dropped, not stored: {', '.join(secrets)} (write ${{NAME_API_KEY}} instead)")
    return "\n".join(lines) or None


def _why(key: str) -> str:
    """Why a key has no effect; empty for what is no key but says so itself (a file that is no text)."""
    key = re.sub(r"^llm\.models\[\d+\]\.", "llm.", key)
    section, _, name = key.rpartition(".")
    if name not in KNOWN.get(section, frozenset()):
        return ""
    return "needs prompt.template_dir" if name in _ONLY_WITH_TEMPLATES else reason(key)
