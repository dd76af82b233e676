"""Compact prompts: templates see the context's fields and nothing else."""

from __future__ import annotations

import pytest

from evolve.prompts import PromptContext, PromptError, ShownProgram, ShownTest, render_completion

CONTEXT = PromptContext(
    statement="Sort.",
    tests=(ShownTest(name="t00", args=([2, 1],), expected=[1, 2], status="wrong"),),
    hidden=2,
    parent=ShownProgram(source="pass\n", scalar=0.5, passed=1, total=2),
    m=3,
)


def test_fields_are_variables() -> None:
    template = (
        "{% for test in tests %}\n{{ test.args[0] }} {{ test.status }}\n{% endfor %}\n{{ parent.source }}{{ m }}\n"
    )
    assert render_completion(template, CONTEXT) == "[2, 1] wrong\npass\n3\n"


def test_values_are_not_templates() -> None:
    assert render_completion("{{ statement }}", PromptContext(statement="{{ 1 + 1 }} <b>")) == "{{ 1 + 1 }} <b>"


@pytest.mark.parametrize(
    "template",
    [
        "{{ missing }}",
        "{% if %}",
        "{{ statement.__class__.__mro__ }}",
        "{{ tests[7].name }}",
        "{{ parent.nothing }}",
        "{{ 1 / 0 }}",
        "{{ tests.append(1) }}",
        "{{ statement + 1 }}",
        "{% for i in range(10 ** 9) %}x{% endfor %}",
        "{% include 'other' %}",
    ],
)
def test_templates_that_do_not_fit_or_reach_out_are_refused(template: str) -> None:
    with pytest.raises(PromptError):
        render_completion(template, CONTEXT)
