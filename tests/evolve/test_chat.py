"""Chat prompts: what they say, their bounds, and that their own example is read back as it is meant."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolve.chain import ChainFormat, parse_chain
from evolve.chat import Budget, fit_chat, render_chat
from evolve.chat_example import example_context
from evolve.edits import Outcome, apply_edit
from evolve.prompts import PromptContext, PromptError, ShownChange, ShownProgram, ShownTest
from evolve.shown import clip, fence
from evolve.tokens import MESSAGE_TOKENS, estimate_tokens, tokenizer_counter

PARENT = ShownProgram(source="def f(x):\n    return x\n", scalar=0.5, passed=1, total=2)
CONTEXT = PromptContext(
    statement="Reverse the list.",
    entry_point="f",
    tests=(
        ShownTest(name="t00", args=([1, 1],), expected=[1, 1], status="passed"),
        ShownTest(name="t01", args=([1, 2],), expected=[2, 1], status="wrong", message="expected [2, 1], got [1, 2]"),
    ),
    hidden=3,
    hidden_failed=2,
    parent=PARENT,
    inspirations=(ShownProgram(source="def f(x):\n    return x[::-1]\n", scalar=0.75, passed=3, total=4),),
)
SCRATCH = replace(
    CONTEXT, parent=None, inspirations=(), hidden_failed=0, tests=(ShownTest(name="t", args=(1,), expected=2),)
)
STDIN = replace(CONTEXT, entry_point=None, tests=(ShownTest(name="t", stdin="1\n", expected="2\n", status="wrong"),))


def request(context: PromptContext, **settings: object) -> str:
    return render_chat(context, **settings)[-1]["content"]  # type: ignore[arg-type]


def test_the_request_says_all_there_is() -> None:
    text = request(CONTEXT)
    for part in [
        "Reverse the list.",
        "must define the function `f`",
        "- FAILED (wrong): f([1, 2]) must return [2, 1]: expected [2, 1], got [1, 2]",
        "- passed: f([1, 1]) must return [1, 1]",
        "- 3 hidden tests; the current program fails 2 of them",
        "# Current program (score 0.500, passes 1 of 2 tests)",
        "```python\ndef f(x):\n    return x\n```",
        "score 0.750, passes 3 of 4 tests:\n```python\ndef f(x):\n    return x[::-1]",
        "complete python program in one fenced code block",
    ]:
        assert part in text
    assert text.index("FAILED") < text.index("passed:")


def test_from_scratch_nothing_is_said_of_a_program() -> None:
    text = request(SCRATCH)
    assert "- f(1) must return 2" in text
    assert "3 hidden tests" in text
    assert "urrent program" not in text


def test_standard_input_is_shown_as_text() -> None:
    assert r'input "1\n" must print "2\n"' in request(STDIN)
    assert "reads standard input" in request(STDIN)


def test_metrics_and_artifacts_of_an_evaluator() -> None:
    parent = replace(PARENT, metrics={"speed": 0.25, "size": 3.0}, artifacts={"log": "boom", "trace": "line 3"})
    text = request(PromptContext(statement="Improve it.", parent=parent))
    assert "Current program (score 0.500)\n" in text
    assert "Metrics: size = 3, speed = 0.25" in text
    assert "log:\n```\nboom\n```" in text
    assert "line 3" in text


def test_markers_are_explained_where_the_parent_has_them() -> None:
    marked = replace(PARENT, source="# EVOLVE-BLOCK-START\nx = 1\n# EVOLVE-BLOCK-END\n")
    assert "between the EVOLVE-BLOCK-START" in request(replace(CONTEXT, parent=marked))
    assert "EVOLVE" not in request(CONTEXT)


def test_roles_and_the_system_message() -> None:
    assert [message["role"] for message in render_chat(CONTEXT)] == ["system", "user", "assistant", "user"]
    assert render_chat(CONTEXT, system="Be brief.")[0]["content"] == "Be brief."


@pytest.mark.parametrize("base", [CONTEXT, SCRATCH, STDIN], ids=["calls", "scratch", "stdin"])
@pytest.mark.parametrize("edit", ["whole", "diff"])
@pytest.mark.parametrize("m", [1, 2, 3, 9])
@pytest.mark.parametrize("chain", [None, ChainFormat(m=9, open="[A]", close="[/A]")], ids=["default", "own"])
def test_the_example_is_read_back_as_right_answers(
    base: PromptContext, edit: str, m: int, chain: ChainFormat | None
) -> None:
    context = replace(base, m=m, edit=edit)
    messages = render_chat(context, chain)
    example = example_context(context)
    parsed = parse_chain(messages[2]["content"], chain or ChainFormat(m=m), m=example.m)
    assert len(parsed.answers) == example.m == min(m, 4)
    assert parsed.missing == parsed.surplus == 0
    for answer in parsed.answers:
        parent = example.parent.source if example.parent else None
        result = apply_edit(answer.text, parent=parent, edit=example.edit)
        assert result.outcome is Outcome.APPLIED
        assert result.source is not None
        assert not result.fuzzy
        ast.parse(result.source)
        if example.entry_point:
            names: dict[str, object] = {}
            exec(result.source, names)
            assert names["total"]([1, 2, 3]) == 14  # type: ignore[operator]
    if m > 1:
        assert (chain or ChainFormat()).open in messages[-1]["content"]


@given(
    text=st.text(max_size=300),
    total=st.integers(500, 3000),
    count=st.integers(0, 30),
    long=st.integers(1, 500),
)
def test_every_part_stays_within_its_budget(text: str, total: int, count: int, long: int) -> None:
    big = text * long
    program = ShownProgram(
        source=big,
        scalar=0.0,
        passed=0,
        total=1,
        artifacts={f"a{i}": big for i in range(count)},
        metrics={"x" * 500: 1.0},
    )
    context = PromptContext(
        statement=big,
        entry_point="f",
        tests=tuple(ShownTest(name="t", args=(big,), expected=big, status="wrong", message=big) for _ in range(count)),
        parent=program,
        inspirations=(program,) * min(count, 16),
    )
    content = request(context, budget=Budget().scaled(total))
    assert len(content) < 3 * total + 5_000  # headings, fences and notes of what was left out


@given(text=st.text(alphabet="`ab\n", max_size=60))
def test_no_text_closes_its_fence(text: str) -> None:
    lines = fence(text, "python").split("\n")
    assert lines[0] == lines[-1] + "python"
    assert lines[-1] not in [line.strip() for line in lines[1:-1]]


def test_clipping_keeps_both_ends() -> None:
    assert clip("short", 10) == "short"
    cut = clip("a" * 100 + "z" * 100, 30)
    assert cut.startswith("a" * 20)
    assert cut.endswith("z" * 10)
    assert "170 characters left out" in cut


def tokens(messages: list[dict[str, str]]) -> int:
    return sum(estimate_tokens(message["content"]) + MESSAGE_TOKENS for message in messages)


@pytest.mark.parametrize("limit", [100_000, 2_000, 900, 400])
def test_a_prompt_fits_its_tokens_and_gives_up_the_example_last(limit: int) -> None:
    parent = replace(PARENT, source="x = 1  # filler\n" * 500, artifacts={"log": "y" * 4000})
    context = replace(CONTEXT, parent=parent, statement="Reverse the list. " * 300)
    messages = fit_chat(context, ChainFormat(), limit=limit, count=estimate_tokens)
    assert tokens(messages) <= limit
    assert len(messages) == (4 if limit > 600 else 2)
    assert ("FAILED (wrong)" in messages[-1]["content"]) == (limit > 600)
    if limit == 100_000:
        assert messages == render_chat(context, ChainFormat())


def test_a_prompt_that_cannot_fit_says_so() -> None:
    with pytest.raises(PromptError, match="more than the 120 tokens it may have: raise prompt_tokens"):
        fit_chat(CONTEXT, ChainFormat(), limit=120, count=estimate_tokens)


def test_tokens_are_counted_by_the_tokenizer_where_there_is_one(tmp_path: Path) -> None:
    count = tokenizer_counter(Path(__file__).parents[2] / "checkpoints" / "minicode-vpo")
    assert count("def f(x):") > 0
    assert count("") == 0
    with pytest.raises(ValueError, match="is no tokenizer"):
        tokenizer_counter(tmp_path)
    assert estimate_tokens("") == 0
    assert estimate_tokens("abcd") == 2
    assert estimate_tokens("日本") == 2


def test_what_surrounds_the_parent_is_bounded_too() -> None:
    history = (ShownChange(operator="diff", before=0.25, after=0.5, diff="+" + "z" * 9000),) * 3
    text = request(replace(CONTEXT, history=history, notes=("n" * 900, "m" * 900), mate=PARENT, operator="crossover"))
    assert "diff, score 0.250 to 0.500" in text
    assert text.count("z") <= Budget().history
    assert "n" * 900 in text
    assert "m" * 900 not in text
    assert "Combine what is right in both programs into one that passes what either of them passes." in text
    assert "{focus}" not in text
    assert "Second program" not in request(replace(SCRATCH, mate=PARENT))
