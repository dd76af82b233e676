"""OpenEvolve's configuration: what is kept, what is reported, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from evolve.config import SearchConfig
from evolve.openevolve import _SECTIONS, OpenEvolveConfig, explain_ignored, split_config
from evolve.openevolve_keys import KNOWN, is_foreign, reason
from evolve.openevolve_models import configured_endpoints, configured_models
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


EFFECTIVE = {
    f"{section}.{key}" if section else key for section, model in _SECTIONS.items() for key in model.model_fields
}


def task(config: dict[str, Any], **values: Any) -> OpenEvolveTask:
    return OpenEvolveTask.model_validate({"name": "t", "files": FILES, "config": config, **values})


def test_a_real_configuration_is_taken_and_its_rest_reported() -> None:
    made = task(REAL, ranges={"speed": [0, 50]})
    assert made.statement == "Pack circles."
    assert made.config.seed == 7
    assert made.sandbox_limits.wall_s == 60
    assert set(made.ignored) >= {"checkpoint_interval", "llm.api_key", "llm.models[0].api_key", "llm.evaluator_models"}
    assert not {"llm.temperature", "llm.models", "llm.api_base", "early_stopping_patience"} & set(made.ignored)
    assert [(model.name, model.weight) for model in made.config.llm.models] == [("small", 0.8), ("large", 0.2)]
    assert "hunter2" not in made.model_dump_json()


def test_the_search_follows_the_configuration() -> None:
    config = SearchConfig.model_validate(task(REAL, ranges={"speed": [50, 0]}).search_settings())
    assert (config.edit, config.temperature, config.top_p, config.max_tokens) == ("diff", 0.7, 0.95, 4096)
    assert (config.islands, config.migration_interval, config.migration_count) == (5, 250, 5)
    assert (config.inspirations, config.max_source_chars, config.budget.stagnation) == (5, 10_000, None)
    assert (config.archive.capacity, config.selection.elites) == (200, 20)
    features = [(feature.name, feature.bins, feature.low, feature.high) for feature in config.archive.features]
    assert features == [
        ("length", 10, None, None),
        ("diversity", 10, None, None),
        ("scalar", 10, None, None),
        ("metric:speed", 10, 0.0, 50.0),
    ]


def test_selection_ratios_and_patience_have_their_meaning() -> None:
    config = {
        "early_stopping_patience": 30,
        "database": {"exploration_ratio": 0.25, "exploitation_ratio": 0.5, "migration_rate": 0.5},
    }
    settings = SearchConfig.model_validate(task(config).search_settings())
    assert settings.selection.weights() == {"dirichlet": 0.25, "exploit": 0.5, "explore": 0.25}
    assert settings.budget.stagnation == 30
    assert settings.migration_count == 25
    everything = {"database": {"exploration_ratio": 0.9, "exploitation_ratio": 0.7}}
    only = SearchConfig.model_validate(task(everything).search_settings()).selection.weights()
    assert only == pytest.approx({"exploit": 0.1, "explore": 0.9})


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
        ({"llm": {"api_base": "http://me:secret@127.0.0.1/v1"}}, "config.llm.api_base"),
        ({"llm": {"primary_modle": "x"}}, "llm: unknown key 'primary_modle': did you mean 'primary_model'?"),
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


def test_misplaced_keys_are_reported_with_their_right_place() -> None:
    made = task({"num_islands": 3, "database": {"max_iterations": 9}, "llm": {"system_message": "x"}, "api_key": "s3c"})
    assert made.ignored == (
        "api_key (belongs in llm.api_key)",
        "database.max_iterations (belongs in max_iterations at the top level)",
        "llm.system_message",
        "num_islands (belongs in database.num_islands)",
    )
    assert made.search_settings() == {}
    text = explain_ignored(made.ignored)
    assert text is not None
    assert "misplaced, and without effect as in OpenEvolve: api_key (belongs in llm.api_key)" in text
    assert "llm.system_message (belongs in prompt.system_message)" in text
    assert "s3c" not in made.model_dump_json()


def test_variables_are_never_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_FOR_TEST", "s3cret")
    made = task({"prompt": {"system_message": "${TOKEN_FOR_TEST}"}, "llm": {"api_key": "${TOKEN_FOR_TEST}"}})
    assert made.statement == "${TOKEN_FOR_TEST}"
    assert made.config.llm.api_key == "${TOKEN_FOR_TEST}"
    assert "s3cret" not in made.model_dump_json()


def test_what_always_holds_is_not_reported() -> None:
    assert task({"enforce_evolve_blocks": True, "llm": {"provider": "openai"}}).ignored == ()
    assert task({"enforce_evolve_blocks": False}).ignored == ("enforce_evolve_blocks",)
    pattern = {"diff_pattern": "<<<<<<< SEARCH\\n(.*?)=======\\n(.*?)>>>>>>> REPLACE"}
    assert task(pattern).ignored == ()


def test_every_key_has_an_effect_or_a_reason() -> None:
    for section, keys in KNOWN.items():
        for key in keys:
            dotted = f"{section}.{key}" if section else key
            assert dotted in EFFECTIVE or key in KNOWN or reason(dotted), dotted
    with pytest.raises(KeyError):
        reason("a_key_of_the_top_level_without_any")


def test_the_report_gives_reasons_and_keeps_secrets_apart() -> None:
    assert explain_ignored(()) is None
    text = explain_ignored(("checkpoint_interval", "database.in_memory", "file data.bin", "llm.api_key"))
    assert text == (
        "without effect here: checkpoint_interval, database.in_memory (everything is stored, iteration by iteration)\n"
        "without effect here: file data.bin\n"
        "secrets were dropped, not stored: llm.api_key (write ${NAME_API_KEY} instead)"
    )


def test_the_older_way_of_naming_two_models() -> None:
    llm = {"primary_model": "a", "primary_model_weight": 0.6, "secondary_model": "b", "api_base": "http://127.0.0.1/v1"}
    made = task({"llm": llm})
    assert [(model.name, model.weight) for model in made.config.llm.models] == [("a", 0.6), ("b", 0.2)]
    assert made.ignored == ()


def test_models_of_the_configuration_become_clients() -> None:
    llm = {
        "api_base": "http://127.0.0.1:9/v1",
        "api_key": "${ONE_API_KEY}",
        "models": [
            {"name": "a", "weight": 3},
            {"name": "b", "api_base": "http://127.0.0.1:8/v1", "api_key": "${TWO_API_KEY}"},
            {"name": "never", "weight": 0},
        ],
    }
    client, models = configured_models(task({"llm": llm}), {"ONE_API_KEY": "k1", "TWO_API_KEY": "k2"})
    assert [(model.name, model.weight) for model in models] == [("a", 3.0), ("b", 1.0)]
    shown = repr(client.clients)
    assert "127.0.0.1:9" in shown
    assert "127.0.0.1:8" in shown
    assert "k1" not in shown


def test_models_of_the_configuration_may_have_parameters_of_their_own() -> None:
    llm = {
        "api_base": "http://127.0.0.1:9/v1",
        "temperature": 0.7,
        "timeout": 60,
        "models": [
            {
                "name": "a",
                "temperature": 0.2,
                "top_p": 0.5,
                "max_tokens": 64,
                "timeout": 5,
                "retries": 0,
                "retry_delay": 1,
            },
            {"name": "a", "provider": "openai", "reasoning_effort": "low"},
        ],
    }
    made = task({"llm": llm})
    first, second = configured_endpoints(made)
    assert (first.name, first.served_as, second.name, second.served_as) == ("a", "a", "a-2", "a")
    assert (first.temperature, first.top_p, first.max_tokens) == (0.2, 0.5, 64)
    assert (first.timeout_s, first.retries, first.retry_delay_s) == (5, 0, 1)
    assert (second.temperature, second.timeout_s, second.retries) == (None, 60, None)
    assert SearchConfig.model_validate(made.search_settings()).temperature == 0.7
    assert made.ignored == ("llm.models[1].reasoning_effort",)
    assert "model's client" in str(explain_ignored(made.ignored))


@pytest.mark.parametrize(
    ("llm", "message"),
    [
        ({}, "names no model"),
        ({"models": [{"name": "a"}]}, "model a has no api_base"),
        ({"models": [{"name": "a"}], "api_base": "http://127.0.0.1/v1", "api_key": "${HOME}"}, "ends in _API_KEY"),
        ({"models": [{"name": "a"}], "api_base": "http://127.0.0.1/v1", "api_key": "${NO_API_KEY}"}, "is not set"),
    ],
)
def test_models_that_cannot_be_asked(llm: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        configured_models(task({"llm": llm}), {"HOME": "/somewhere"})


def test_a_configuration_of_something_else_is_known() -> None:
    assert is_foreign({"type": "default", "checker": "chk.cc", "time": "10s", "memory": "256m"})
    assert not is_foreign({"max_iteration": 3})
    assert not is_foreign({"num_islands": 3})
    assert not is_foreign({})


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
