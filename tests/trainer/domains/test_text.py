"""Text comparison and data files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolve.randomness import generator
from trainer.domains.base import DomainError
from trainer.domains.records import is_held_out, make_split, read_records
from trainer.domains.text import multiset_f1, normalised, word_f1


def test_normalised() -> None:
    assert normalised("The  Robert_Rodriguez!") == normalised("robert rodriguez")
    assert normalised("The end", articles=True) == "the end"
    assert normalised("a_b", underscores=False) == "ab"
    assert normalised(3) == "3"


@pytest.mark.parametrize(
    ("found", "wanted", "f1"),
    [("", "", 1), ("a", "", 0), ("ab", "bc", 1 / 2), ("aab", "ab", 4 / 5), ("aa", "a", 2 / 3)],
)
def test_multiset_f1_by_hand(found: str, wanted: str, f1: float) -> None:
    assert multiset_f1(found, wanted) == pytest.approx(f1)


@given(st.text("abc "), st.text("abc "))
def test_word_f1_is_symmetric_and_bounded(a: str, b: str) -> None:
    assert word_f1(a, b) == pytest.approx(word_f1(b, a))
    assert 0 <= word_f1(a, b) <= 1
    assert word_f1(a, a) == 1


def test_records_of_every_format(tmp_path: Path) -> None:
    records = [{"a": 1, "b": ["x"]}, {"a": 2, "b": []}]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (tmp_path / "r.json").write_text(json.dumps(records))
    (tmp_path / "r.jsonl").write_text(lines)
    (tmp_path / "r.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), tmp_path / "r.parquet")
    for suffix in ("json", "jsonl", "jsonl.gz", "parquet"):
        assert read_records(tmp_path / f"r.{suffix}") == records


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("r.jsonl", "{", r"r\.jsonl: cannot be read"),
        ("r.json", '{"a": 1}', "list of records"),
        ("r.parquet", "x", "parquet"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DomainError, match=message):
        read_records(tmp_path / name)
    with pytest.raises(DomainError, match="no such file"):
        read_records(tmp_path / "missing.json")


@given(
    st.lists(st.text("abcd", max_size=3), max_size=40), st.lists(st.text("abcd", max_size=3), min_size=1, max_size=5)
)
def test_a_split_is_disjoint(training: list[str], heldout: list[str]) -> None:
    for given_heldout in (heldout, None):
        try:
            split = make_split(training, given_heldout, str)
        except DomainError:
            continue
        assert not set(split.training) & set(split.heldout)
        assert set(split.training) <= set(training)
        assert split.draw(generator(0), heldout=False) in training
        if given_heldout is None:
            assert all(is_held_out(problem) for problem in split.heldout)
