"""Every key of OpenEvolve 0.4.0's ``config.yaml`` by section, and why those without effect here have none."""

from __future__ import annotations

from evolve.strict import unknown_key


def _keys(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODEL_KEYS = _keys("""
    api_base api_key name provider init_client weight system_message temperature top_p max_tokens timeout retries
    retry_delay random_seed reasoning_effort max_budget_usd max_ai_credits allow_all_tools manual_mode
""")
OLDER_MODEL_KEYS = _keys("primary_model primary_model_weight secondary_model secondary_model_weight")
KNOWN: dict[str, frozenset[str]] = {
    "": _keys("""
        max_iterations checkpoint_interval log_level log_dir random_seed language file_suffix llm prompt database
        evaluator evolution_trace diff_based_evolution max_code_length enforce_evolve_blocks diff_pattern
        early_stopping_patience convergence_threshold early_stopping_metric max_tasks_per_child
    """),
    "llm": MODEL_KEYS | OLDER_MODEL_KEYS | _keys("models evaluator_models"),
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
"""The keys of each section (of the top level under the empty name); ``evaluator_args`` is an addition of ours."""

SECRET_KEYS = frozenset({"api_key"})

_STORED = "everything is stored, iteration by iteration"
_LOGGING = "the environment decides on logging"
_CHANGES = "programs are always shown as code"
_WORDING = "prompts are worded otherwise"
_FEEDBACK = "models never judge programs"
_EMBEDDING = "equal programs are known by their syntax tree, novelty by behaviour"
_ARTIFACTS = "artifacts are bounded, and kept with their program"
_CLIENT = "the model's client decides"
_NEITHER = "OpenEvolve ignores it too"

_REASONS: dict[str, str] = {
    "checkpoint_interval": _STORED,
    "log_level": _LOGGING,
    "log_dir": _LOGGING,
    "enforce_evolve_blocks": "EVOLVE-BLOCK markers are always enforced",
    "diff_pattern": "the lines around SEARCH and REPLACE are fixed",
    "convergence_threshold": "any better score counts as progress",
    "early_stopping_metric": "the task scalar decides",
    "max_tasks_per_child": "every candidate gets a process of its own",
    "llm.provider": "models are asked over OpenAI's protocol",
    "llm.random_seed": "every request has a seed of its own, from random_seed",
    "llm.system_message": "belongs in prompt.system_message",
    "llm.evaluator_models": _FEEDBACK,
    "prompt.evaluator_system_message": _FEEDBACK,
    "prompt.programs_as_changes_description": _CHANGES,
    "prompt.system_message_changes_description": _CHANGES,
    "prompt.initial_changes_description": _CHANGES,
    "prompt.use_meta_prompting": _NEITHER,
    "prompt.meta_prompt_weight": _NEITHER,
    "prompt.artifact_security_filter": "programs see no secret that an artifact could hold",
    "database.db_path": _STORED,
    "database.in_memory": _STORED,
    "database.log_prompts": _STORED,
    "database.elite_selection_ratio": "the best programs shown are counted by prompt.num_top_programs",
    "database.diversity_metric": "diversity is measured by behaviour",
    "database.diversity_reference_size": "diversity is measured by behaviour",
    "database.novelty_llm": _EMBEDDING,
    "database.embedding_model": _EMBEDDING,
    "database.embedding_api_base": _EMBEDDING,
    "database.similarity_threshold": _EMBEDDING,
    "evaluator.max_retries": "an evaluator that raises is not run again; what the sandbox breaks is repeated",
    "evaluator.cpu_limit": _NEITHER,
    "evaluator.distributed": _NEITHER,
    "evaluator.parallel_evaluations": "the sandbox's concurrency decides (VPO_CONCURRENCY)",
    "evaluator.use_llm_feedback": _FEEDBACK,
    "evaluator.llm_feedback_weight": _FEEDBACK,
}
_REASONS_OF_REST = {
    "llm": _CLIENT,
    "prompt": _WORDING,
    "database": _ARTIFACTS,
    "evaluator": _ARTIFACTS,
    "evolution_trace": _STORED,
}


def reason(dotted: str) -> str:
    """Why a known key has no effect here. Raises ``KeyError`` for a top-level one that has no reason of its own."""
    return _REASONS.get(dotted) or _REASONS_OF_REST[dotted.rpartition(".")[0]]


def misplaced(section: str, key: object) -> str | None:
    """Where a key of ``section`` should be instead, ``None`` for one that is in its place.

    Raises ``ValueError`` for a key that OpenEvolve does not know anywhere.
    """
    if key in KNOWN[section]:
        return None
    homes = [f"{name}.{key}" if name else f"{key} at the top level" for name, keys in KNOWN.items() if key in keys]
    if not homes:
        message = unknown_key(key, KNOWN[section])
        raise ValueError(f"{section}: {message}" if section else message)
    return " or ".join(homes)


def is_foreign(raw: object) -> bool:
    """Whether a ``config.yaml`` is some other program's: no key is OpenEvolve's, or resembles one of its top level."""
    if not isinstance(raw, dict) or not raw:
        return False
    every = frozenset().union(*KNOWN.values())
    if any(key in every for key in raw):
        return False
    return not any("did you mean" in unknown_key(key, KNOWN[""]) for key in raw)
