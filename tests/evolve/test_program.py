"""Digests of sources, and sums of usage."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evolve.program import Usage, source_digest


def test_layout_and_comments_do_not_count() -> None:
    assert source_digest("x = 1 # one\n") == source_digest("\nx=1")
    assert source_digest("x = 1") != source_digest("x = 2")
    assert source_digest("x = 1") != source_digest("x = 1.0")
    assert source_digest("x = 1") != source_digest("x = True")


def test_odd_escapes_neither_warn_nor_keep_a_program_from_parsing() -> None:
    assert source_digest("x = '\\d'") == source_digest("x='\\d'  # a digit")


def test_text_that_does_not_parse_is_compared_by_lines() -> None:
    assert source_digest("x = = 1  \r\ny") == source_digest("\nx = = 1\ny\n")
    assert source_digest("x = = 1") != source_digest("x = = 2")


@given(st.text())
def test_any_text_has_a_digest(text: str) -> None:
    assert len(source_digest(text)) == 32


def test_odd_sources_have_a_digest() -> None:
    for text in ("\ud800", "\x00", "(" * 5_000, "1" * 5_000, "-" * 5_000 + "1"):
        assert len(source_digest(text)) == 32


def test_usage_adds_up() -> None:
    one = Usage(calls=1, lost_calls=2, prompt_tokens=3, completion_tokens=4, seconds=0.5)
    assert one + one == Usage(calls=2, lost_calls=4, prompt_tokens=6, completion_tokens=8, seconds=1.0)
