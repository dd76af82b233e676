"""Reading replies: tags, fences, bare programs, reasoning, duplicates, what is missing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evolve.chain import ChainFormat, parse_chain

A, B, C = "def f(x):\n    return 1\n", "def f(x):\n    return 2\n", "def f(x):\n    return 3\n"
THREE = ChainFormat(m=3)
ONE = ChainFormat(m=1)
EDIT = "<<<<<<< SEARCH\n    return 1\n=======\n    return 2\n>>>>>>> REPLACE\n"


def tagged(*answers: str, chain: ChainFormat = THREE) -> str:
    return "\n".join(f"{chain.open}\n{answer}{chain.close}" for answer in answers)


def fenced(*answers: str, language: str = "python") -> str:
    return "\n".join(f"```{language}\n{answer}```" for answer in answers)


def texts(reply: str, chain: ChainFormat = THREE, m: int | None = None) -> list[str]:
    return [answer.text for answer in parse_chain(reply, chain, m=m).answers]


@pytest.mark.parametrize("reply", [tagged(A, B, C), fenced(A, B, C), tagged(fenced(A), fenced(B), fenced(C))])
def test_three_answers(reply: str) -> None:
    parsed = parse_chain("Some words.\n" + reply + "\nMore words.", THREE)
    assert [answer.text for answer in parsed.answers] == [A, B, C]
    assert [answer.index for answer in parsed.answers] == [0, 1, 2]
    assert (parsed.duplicates, parsed.missing, parsed.surplus) == (0, 0, 0)


def test_spans_cover_tags_and_fences() -> None:
    for reply in (tagged(A, B), fenced(A, B)):
        for answer, mark in zip(parse_chain(reply, THREE).answers, "AB", strict=True):
            part = reply[answer.start : answer.end]
            assert part.startswith(("<answer>", "```")), mark
            assert part.endswith(("</answer>", "```"))
            assert answer.text.strip() in part


def test_missing_and_surplus_are_counted() -> None:
    short = parse_chain(tagged(A), THREE)
    assert (len(short.answers), short.missing, short.surplus) == (1, 2, 0)
    long = parse_chain(tagged(A, B, C), THREE, m=2)
    assert (len(long.answers), long.missing, long.surplus) == (2, 0, 1)


def test_duplicates_are_equal_by_syntax_tree() -> None:
    same = "# a comment\ndef f( x ):\n\n    return 1"
    parsed = parse_chain(tagged(A, same, B), THREE)
    assert [answer.index for answer in parsed.answers] == [0, 2]
    assert (parsed.duplicates, parsed.missing) == (1, 0)


def test_reasoning_is_no_answer() -> None:
    assert texts(f"<think>{tagged(A)}</think>{tagged(B)}") == [B]
    assert texts(f"{tagged(A)}</think>{tagged(B)}") == [B]
    assert texts(f"<think>{tagged(A)}") == []
    assert texts(f"<think>one</think>{tagged(A)}<think>two</think>{tagged(B)}") == [B]


def test_an_unclosed_answer_is_none() -> None:
    assert texts(tagged(A) + "\n<answer>\n" + B) == [A]
    assert texts("<answer>\ncut off\n" + tagged(B)) == [B]
    assert texts("```python\n" + A) == []


def test_empty_answers_are_none() -> None:
    assert parse_chain("<answer> \n</answer>", ONE).missing == 1
    assert parse_chain("```\n\n```", ONE).missing == 1
    assert parse_chain("", THREE).missing == 3


def test_a_bare_program_counts_where_one_answer_was_asked_for() -> None:
    assert texts(A, ONE) == [A]
    assert texts("\n\n" + A + "\n\n", ONE) == [A]
    assert texts(A, THREE) == []
    assert texts("I cannot do that", ONE) == []
    assert texts("hello", ONE) == []


def test_own_tags() -> None:
    chain = ChainFormat(m=2, open="[A]", close="[/A]")
    assert texts(tagged(A, B, chain=chain), chain) == [A, B]
    assert texts(tagged(A, B), chain) == []


def test_other_fences() -> None:
    assert texts("~~~\n" + A + "~~~", ONE) == [A]
    assert texts("````python\ntext = '''\n```\n'''\n````", ONE) == ["text = '''\n```\n'''\n"]
    assert texts("1. First:\n   ```python\n   x = 1\n   ```", ONE) == ["   x = 1\n"]


def test_crlf() -> None:
    assert parse_chain(fenced(A).replace("\n", "\r\n"), ONE).missing == 0
    assert texts(tagged(A).replace("\n", "\r\n"), ONE)[0].startswith("def f")


def test_edit_blocks_stay_together() -> None:
    two = "First\n```\n" + EDIT + "```\nthen\n```\n" + EDIT.replace("1", "7") + "```\n"
    assert texts(two, ONE) == [two]
    assert texts(EDIT, ONE) == [EDIT]
    assert texts(f"<answer>\n{two}</answer>", ONE) == [two]
    assert texts(tagged(EDIT, EDIT.replace("2", "3"))) == [EDIT, EDIT.replace("2", "3")]
    assert texts(fenced(EDIT, EDIT.replace("2", "3"))) == [EDIT, EDIT.replace("2", "3")]
    assert texts(f"<think>{EDIT}</think>\n{A}", ONE) == [A]


PIECES = st.sampled_from(
    ["<answer>", "</answer>", "```", "```python\n", "\n", "<think>", "</think>", A, B, "x = 1\n", EDIT]
)


@given(reply=st.lists(PIECES | st.text(max_size=8), max_size=12).map("".join), m=st.integers(1, 5))
def test_any_reply_is_accounted_for(reply: str, m: int) -> None:
    parsed = parse_chain(reply, ChainFormat(m=m))
    assert len(parsed.answers) + parsed.duplicates + parsed.missing == m
    assert parsed.surplus == 0 or parsed.missing == 0
    spans = [(answer.start, answer.end) for answer in parsed.answers]
    assert spans == sorted(spans)
    assert all(0 <= start < end <= len(reply) for start, end in spans)
    assert len({answer.digest for answer in parsed.answers}) == len(parsed.answers)
    assert all(answer.text.strip() for answer in parsed.answers)


@pytest.mark.parametrize("values", [{"m": 0}, {"m": 65}, {"open": ""}, {"tags": 1}])
def test_impossible_formats_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ChainFormat.model_validate(values)
