"""OpenEvolve's prompt templates and variations."""

from __future__ import annotations

from typing import Any

import pytest

from evolve.config import SearchConfig
from evolve.openevolve_prompt import read_templates
from evolve.openevolve_task import OpenEvolveTask
from evolve.program import Evaluation
from evolve.request import Request
from evolve.search import Search
from sandbox.verdict import Status

FILES = {
    "evaluator.py": "def evaluate(path):\n    return {'a': 1.0}\n",
    "initial_program.py": "x = 1\n",
    "prompts/diff_user.txt": "Score {fitness_score}, {{braces}}. {advice}\n{current_program}{artifacts}\n{metrics}",
    "prompts/system_message.txt": "You are terse.",
}
PROMPT = {
    "template_dir": "./prompts",
    "template_variations": {"advice": ["Be bold {x}.", "Be careful."]},
    "max_artifact_bytes": 30,
}


def task(prompt: dict[str, Any], files: dict[str, str] | None = None, **config: Any) -> OpenEvolveTask:
    given = {"name": "t", "files": files or FILES, "config": {"prompt": prompt, "diff_based_evolution": True, **config}}
    return OpenEvolveTask.model_validate(given)


def request(made: OpenEvolveTask, seed: int = 0, **settings: Any) -> Request:
    search = Search(made, SearchConfig.model_validate({**made.search_settings(), **settings}), seed=seed)
    evaluation = Evaluation(
        components=("a",),
        reward=(0.25,),
        statuses=(Status.WRONG,),
        messages=("",),
        scalar=0.25,
        solved=False,
        metrics={"a": 0.25, "combined_score": 12.5},
        artifacts={"log": "q" * 500},
    )
    search.begin(evaluation)
    return search.ask()


def test_the_tasks_own_words_are_used() -> None:
    asked = request(task(PROMPT))
    assert asked.messages is not None
    assert [message["role"] for message in asked.messages] == ["system", "user"]
    assert asked.messages[0]["content"] == "You are terse."
    text = asked.messages[1]["content"]
    assert text.startswith("Score 12.5000, {braces}. Be ")
    assert "x = 1\n## Last Execution Output" in text
    assert "characters left out" in text
    assert text.endswith("- a: 0.2500\n- combined_score: 12.5000")


def test_variations_are_drawn_from_the_seed_and_not_filled_in() -> None:
    texts = {request(task(PROMPT), seed=seed).messages[1]["content"].splitlines()[0] for seed in range(12)}  # type: ignore[index]
    assert {text.split("}. ")[-1] for text in texts} == {"Be bold {x}.", "Be careful."} or len(texts) == 2
    first = request(task(PROMPT), seed=3).messages
    assert first == request(task(PROMPT), seed=3).messages
    fixed = {
        request(task({**PROMPT, "use_template_stochasticity": False}), seed=seed).messages[1]["content"]  # type: ignore[index]
        for seed in range(6)
    }
    assert len(fixed) == 1


def test_several_answers_are_asked_for_after_the_template() -> None:
    asked = request(task(PROMPT), answers=3)
    assert asked.messages is not None
    assert "Give 3 different answers" in asked.messages[1]["content"]


def test_a_form_without_a_template_is_worded_as_always() -> None:
    asked = request(task(PROMPT), edit="whole")
    assert asked.messages is not None
    assert len(asked.messages) == 4


def test_a_prompt_fits_its_tokens() -> None:
    files = {**FILES, "initial_program.py": "x = 1\n" * 3_000}
    asked = request(task(PROMPT, files), prompt_tokens=600)
    assert asked.messages is not None
    assert sum(len(message["content"]) for message in asked.messages) < 1_900


def test_a_placeholder_that_nobody_fills_in_is_an_error() -> None:
    files = {**FILES, "prompts/full_rewrite_user.txt": "{curent_program}"}
    with pytest.raises(ValueError, match=r"full_rewrite_user.txt: .*did you mean 'current_program'"):
        read_templates(task(PROMPT, files))
    harmless = task(PROMPT, {**FILES, "prompts/diff_user.txt": "{metrics.__class__} {0} { }"})
    text = request(harmless).messages[1]["content"]  # type: ignore[index]
    assert text == "{metrics.__class__} {0} { }"


def test_a_folder_without_templates_is_reported() -> None:
    made = task({"template_dir": "../elsewhere"})
    assert read_templates(made) is None
    assert made.ignored == ("prompt.template_dir '../elsewhere', which is no folder of the task",)
    assert task({"template_variations": {"advice": ["x"]}}).ignored == ("prompt.template_variations",)
