"""OpenEvolve's configuration: what is kept, what is reported, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from evolve.config import SearchConfig
from evolve.openevolve import OpenEvolveConfig, explain_ignored, split_config
from evolve.openevolve_task import OpenEvolveTask

FILES = {"evaluator.py": "def evaluate(path):\n    return {'a': 1.0}\n", "initial_program.py": "x = 1\n"}

# The keys of OpenEvolve's own configs/default_config.yaml, shortened.
REAL: dict[str, Any] = {
    "max_iterations": 100,
    "checkpoint_interval": 10,
    "log_level": "INFO",
    "log_dir": None,
    "random_seed": 7,
    "diff_based_evolution": True,
    "max_code_length": 10000,
    "early_stopping_patience": None,
    "llm": {
        "models": [{"name": "small", "weight": 0.8, "api_key": "hunter2"}, {"name": "large", "weight": 0.2}],
        "evaluator_models": [{"name": "large"}],
        "api_base": "https://example.org/v1/",
        "api_key": "hunter2",
        "temperature": 0.7,
        "top_p": 0.95,
        "max_tokens": 4096,
    },
    "prompt": {"system_message": "Pack circles.", "num_top_programs": 3, "num_diverse_programs": 2},
    "database": {
        "population_size": 1000,
        "archive_size": 100,
        "num_islands": 5,
        "feature_dimensions": ["complexity", "diversity", "score", "speed"],
        "feature_bins": 10,
        "migration_interval": 50,
    },
    "evaluator": {"timeout": 60, "parallel_evaluations": 4, "memory_limit_mb": None},
    "evolution_trace": {"enabled": False},
}


def task(config: dict[str, Any], **values: Any) -> OpenEvolveTask:
    return OpenEvolveTask.model_validate({"name": "t", "files": FILES, "config": config, **values})


def test_a_real_configuration_is_taken_and_its_rest_reported() -> None:
    made = task(REAL, ranges={"speed": [0, 50]})
    assert made.statement == "Pack circles."
    assert made.config.seed == 7
    assert made.sandbox_limits.wall_s == 60
    assert set(made.ignored) >= {"checkpoint_interval", "llm.models", "llm.api_key", "llm.models[0].api_key"}
    assert "llm.temperature" not in made.ignored
    assert "hunter2" not in made.model_dump_json()


def test_the_search_follows_the_configuration() -> None:
    config = SearchConfig.model_validate(task(REAL, ranges={"speed": [50, 0]}).search_settings())
    assert (config.edit, config.temperature, config.top_p, config.max_tokens) == ("diff", 0.7, 0.95, 4096)
    assert (config.islands, config.migration_interval, config.inspirations) == (5, 50, 5)
    assert config.archive.capacity == 100
    features = [(feature.name, feature.bins, feature.low, feature.high) for feature in config.archive.features]
    assert features == [("length", 10, None, None), ("scalar", 10, None, None), ("metric:speed", 10, 0.0, 50.0)]


def test_an_empty_configuration_leaves_the_searchs_own_values() -> None:
    made = task({})
    assert made.search_settings() == {}
    assert made.ignored == ()
    assert made.sandbox_limits.wall_s == 300.0
    assert made.statement.startswith("Improve the program")


def test_bins_by_dimension() -> None:
    made = task({"database": {"feature_dimensions": ["complexity", "x"], "feature_bins": {"x": 4}}})
    features = SearchConfig.model_validate(made.search_settings()).archive.features
    assert [(feature.name, feature.bins) for feature in features] == [("length", 12), ("metric:x", 4)]


def test_the_kept_part_is_a_configuration_of_its_own() -> None:
    kept, _ = split_config(REAL)
    again, ignored = split_config(OpenEvolveConfig.model_validate(kept).model_dump())
    assert ignored == ()
    assert OpenEvolveConfig.model_validate(again) == OpenEvolveConfig.model_validate(kept)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"max_iteration": 1}, "did you mean 'max_iterations'?"),
        ({"llm": {"temprature": 1}}, "llm: unknown key 'temprature': did you mean 'temperature'?"),
        ({"llm": {"models": [{"nam": "x"}]}}, "llm.models[0]: unknown key 'nam'"),
        ({"llm": {"models": "x"}}, "llm.models must be a list"),
        ({"num_islands": 3}, "num_islands is misplaced: 'num_islands' belongs in database"),
        (
            {"database": {"max_iterations": 3}},
            "database.max_iterations is misplaced: 'max_iterations' belongs in the top",
        ),
        ({"llm": 3}, "llm must be a mapping"),
        ({"llm": {"temperature": 3}}, "config.llm.temperature"),
        ({"database": {"num_islands": 0}}, "config.database.num_islands"),
        ({"file_suffix": "py"}, "config.file_suffix"),
        ({"evaluator": {"cascade_thresholds": []}}, "config.evaluator.cascade_thresholds"),
        ({"evaluator": {"cascade_thresholds": [float("nan")]}}, "config.evaluator.cascade_thresholds[0]"),
    ],
)
def test_wrong_configurations_are_refused(config: dict[str, Any], message: str) -> None:
    from evolve.strict import explain

    with pytest.raises(ValidationError) as caught:
        task(config)
    assert message in explain(caught.value)


def test_variables_are_never_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_FOR_TEST", "s3cret")
    made = task({"prompt": {"system_message": "${TOKEN_FOR_TEST}"}, "llm": {"api_key": "${TOKEN_FOR_TEST}"}})
    assert made.statement == "${TOKEN_FOR_TEST}"
    assert "s3cret" not in made.model_dump_json()


def test_what_always_holds_is_not_reported() -> None:
    assert task({"enforce_evolve_blocks": True}).ignored == ()
    assert task({"enforce_evolve_blocks": False}).ignored == ("enforce_evolve_blocks",)


def test_the_report_keeps_secrets_apart() -> None:
    assert explain_ignored(()) is None
    text = explain_ignored(("checkpoint_interval", "llm.api_key"))
    assert text == "without effect here: checkpoint_interval; secrets were dropped, not stored: llm.api_key"


def test_other_languages_keep_their_suffix() -> None:
    files = {"evaluator.py": FILES["evaluator.py"], "initial_program.rs": "fn main() {}\n"}
    made = OpenEvolveTask.model_validate({"name": "t", "files": files})
    assert (made.suffix, made.language, made.seed_source) == (".rs", "rust", "fn main() {}\n")


def test_the_evaluators_settings_are_openevolves() -> None:
    plain = task({}).evaluator_settings
    assert (plain.thresholds, plain.packages, plain.required, plain.folders) == ((0.5, 0.75, 0.9), True, (), ())
    assert task({"evaluator": {"cascade_evaluation": False}}).evaluator_settings.thresholds == ()
    changed = task({"evaluator": {"cascade_thresholds": [0.1], "evaluator_args": {"size": 3}}}).evaluator_settings
    assert (changed.thresholds, changed.arguments) == ((0.1,), {"size": 3})


def test_a_task_says_what_it_needs_of_the_machine() -> None:
    made = task({}, environment={"packages": ["numpy"], "folders": ["tables"]}).evaluator_settings
    assert (made.packages, made.required, made.folders) == (True, ("numpy",), ("tables",))
    assert not task({}, environment={"packages": []}).evaluator_settings.packages
    for wrong in ({"folders": ["../etc"]}, {"folders": ["/etc"]}, {"package": []}):
        with pytest.raises(ValidationError):
            task({}, environment=wrong)
