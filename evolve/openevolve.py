"""OpenEvolve's ``config.yaml`` (version 0.4.0) and task layout.

A configuration is accepted as OpenEvolve has it. Keys that mean something here are kept, under OpenEvolve's own names;
keys that OpenEvolve knows but that have no effect here are collected, so that they can be reported; unknown or
misplaced keys are errors. ``${VAR}`` is never replaced, and secrets (``api_key``) are dropped and reported, so that a
stored task holds none.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, JsonValue

from evolve.strict import StrictModel, unknown_key


def _keys(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MODEL_KEYS = _keys("""
    api_base api_key name provider init_client weight system_message temperature top_p max_tokens timeout retries
    retry_delay random_seed reasoning_effort max_budget_usd max_ai_credits allow_all_tools manual_mode
""")
_KNOWN: dict[str, frozenset[str]] = {
    "": _keys("""
        max_iterations checkpoint_interval log_level log_dir random_seed language file_suffix llm prompt database
        evaluator evolution_trace diff_based_evolution max_code_length enforce_evolve_blocks diff_pattern
        early_stopping_patience convergence_threshold early_stopping_metric max_tasks_per_child
    """),
    "llm": _MODEL_KEYS
    | _keys("models evaluator_models primary_model primary_model_weight secondary_model secondary_model_weight"),
    "prompt": _keys("""
        template_dir system_message evaluator_system_message programs_as_changes_description
        system_message_changes_description initial_changes_description num_top_programs num_diverse_programs
        use_template_stochasticity template_variations use_meta_prompting meta_prompt_weight include_artifacts
        max_artifact_bytes artifact_security_filter suggest_simplification_after_chars include_changes_under_chars
        concise_implementation_max_lines comprehensive_implementation_min_lines diff_summary_max_line_len
        diff_summary_max_lines code_length_threshold
    """),
    "database": _keys("""
        db_path in_memory log_prompts population_size archive_size num_islands elite_selection_ratio
        exploration_ratio exploitation_ratio diversity_metric feature_dimensions feature_bins
        diversity_reference_size migration_interval migration_rate random_seed artifacts_base_path
        artifact_size_threshold cleanup_old_artifacts artifact_retention_days max_snapshot_artifacts novelty_llm
        embedding_model embedding_api_base similarity_threshold
    """),
    "evaluator": _keys("""
        timeout max_retries memory_limit_mb cpu_limit cascade_evaluation cascade_thresholds parallel_evaluations
        distributed use_llm_feedback llm_feedback_weight enable_artifacts max_artifact_storage evaluator_args
    """),
    "evolution_trace": _keys("enabled format include_code include_prompts output_path buffer_size compress"),
}
"""Every key of OpenEvolve 0.4.0's ``openevolve/config.py``, by section."""

SECRET_KEYS = frozenset({"api_key"})

Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
Unit = Annotated[float, Field(ge=0.0, le=1.0)]


class LLMSettings(StrictModel):
    """Generation parameters. temperature in [0, 2], top_p in (0, 1], max_tokens per completion."""

    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = None
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=131_072)] | None = None


class PromptSettings(StrictModel):
    """system_message is the task's statement; the numbers add up to the inspirations shown."""

    system_message: Annotated[str, Field(max_length=100_000)] | None = None
    num_top_programs: Annotated[int, Field(ge=0)] | None = None
    num_diverse_programs: Annotated[int, Field(ge=0)] | None = None
    include_artifacts: bool = True


class DatabaseSettings(StrictModel):
    """The population. feature_bins: for all dimensions, or by dimension."""

    num_islands: Annotated[int, Field(ge=1, le=64)] | None = None
    archive_size: Annotated[int, Field(ge=1, le=65_536)] | None = None
    migration_interval: Count | None = None
    feature_dimensions: Annotated[tuple[str, ...], Field(max_length=4)] | None = None
    feature_bins: Annotated[int, Field(ge=1, le=64)] | dict[str, Annotated[int, Field(ge=1, le=64)]] | None = None
    random_seed: Annotated[int, Field(ge=0)] | None = None


class EvaluatorSettings(StrictModel):
    """How the evaluator is run; the defaults are OpenEvolve's.

    timeout: wall-clock seconds of one evaluation, or of one stage of a cascade. memory_limit_mb: MiB of one process.
    cascade_evaluation: whether ``evaluate_stage1`` to ``3`` run instead of ``evaluate`` where the evaluator has them.
    cascade_thresholds: what ``combined_score`` (or the mean of the metrics) must reach after a stage for the next one.
    evaluator_args: keyword arguments of ``evaluate``.
    """

    timeout: Annotated[float, Field(gt=0.0, le=86_400.0)] = 300.0
    memory_limit_mb: Annotated[int, Field(ge=1)] | None = None
    cascade_evaluation: bool = True
    cascade_thresholds: Annotated[
        tuple[Annotated[float, Field(allow_inf_nan=False)], ...], Field(min_length=1, max_length=16)
    ] = (0.5, 0.75, 0.9)
    evaluator_args: dict[str, JsonValue] = Field(default_factory=dict)


class OpenEvolveConfig(StrictModel):
    """The part of OpenEvolve's configuration that has an effect here; itself a valid OpenEvolve configuration."""

    max_iterations: Count | None = None
    random_seed: Annotated[int, Field(ge=0)] | None = None
    language: str | None = None
    file_suffix: Annotated[str, Field(pattern=r"^\.[A-Za-z0-9]+$")] | None = None
    diff_based_evolution: bool | None = None
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

    A key whose value is null counts as not given. Raises ``ValueError`` for an unknown key, naming the nearest one, or
    the section it belongs to.
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
        _check_known(section, key)
        dotted = f"{section}.{key}" if section else key
        if not section and key in _KNOWN:
            if value is not None and not isinstance(value, dict):
                raise ValueError(f"{dotted} must be a mapping, not {value!r}")
            inner = _split_section(key, value or {}, ignored)
            if key in effective:
                kept[key] = inner
        elif key in ("models", "evaluator_models"):
            ignored.extend(_check_models(dotted, value))
        elif key in effective:
            if value is not None:
                kept[key] = value
        elif not (key == "enforce_evolve_blocks" and value is True):  # edits outside of the blocks never pass here
            ignored.append(dotted)
    return kept


def _check_known(section: str, key: object) -> None:
    if key in _KNOWN[section]:
        return
    homes = [name or "the top level" for name, keys in _KNOWN.items() if key in keys]
    if homes:
        place = f"{section}." if section else ""
        raise ValueError(f"{place}{key} is misplaced: {key!r} belongs in {' or '.join(homes)}")
    message = unknown_key(key, _KNOWN[section])
    raise ValueError(f"{section}: {message}" if section else message)


def _check_models(dotted: str, models: Any) -> list[str]:
    """Names of a list of models' keys: which model answers is up to the search, not to the task."""
    if not isinstance(models, list | tuple) or not all(isinstance(model, dict) for model in models):
        raise ValueError(f"{dotted} must be a list of mappings")
    names = [dotted]
    for i, model in enumerate(models):
        for key in model:
            if key not in _MODEL_KEYS:
                raise ValueError(f"{dotted}[{i}]: {unknown_key(key, _MODEL_KEYS)}")
            if key in SECRET_KEYS:
                names.append(f"{dotted}[{i}].{key}")
    return names


def explain_ignored(ignored: tuple[str, ...]) -> str | None:
    """One sentence for the user on what was given and has no effect; ``None`` if there is nothing to say."""
    if not ignored:
        return None
    secrets = [key for key in ignored if key.rsplit(".", 1)[-1] in SECRET_KEYS]
    others = [key for key in ignored if key not in secrets]
    parts = [f"without effect here: {', '.join(others)}"] if others else []
    if secrets:
        parts.append(f"secrets were dropped, not stored: {', '.join(secrets)}")
    return "; ".join(parts)
