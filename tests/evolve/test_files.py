"""Programs of several files as one text: there and back, whatever is in them; what cannot be a program; digests."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evolve.embedding import embedding
from evolve.features import _size
from evolve.files import MAX_CHARS, MAX_FILES, check_files, commonest_language, header, join_files, split_files
from evolve.lineage import change
from evolve.program import source_digest
from tests.evolve.builders import program

names = st.builds(str.__add__, st.sampled_from("ab_7é"), st.text("ab.-+@_é7", max_size=5))
paths = st.lists(st.one_of(names, st.sampled_from(["a b.py", "lines 2"])), min_size=1, max_size=3).map("/".join)
lookalikes = st.sampled_from(
    ["==> a.py (1 line) <==\n", "==> a.py (0 lines) <==", "==> b (2 lines, no line end) <==\n", "x", "\n", "\r\n", "\r"]
)
contents = st.lists(st.one_of(lookalikes, st.text(max_size=8)), max_size=6).map("".join)
programs = st.dictionaries(paths, contents, min_size=1, max_size=5)


def is_possible(files: dict[str, str]) -> bool:
    try:
        check_files(files)
    except ValueError:
        return False
    return True


possible = programs.filter(is_possible)


@settings(deadline=None, max_examples=60)
@given(possible)
def test_there_and_back(files: dict[str, str]) -> None:
    assert split_files(join_files(files)) == files


@settings(deadline=None, max_examples=60)
@given(possible, possible)
def test_different_programs_have_different_texts(one: dict[str, str], other: dict[str, str]) -> None:
    assert (join_files(one) == join_files(other)) == (one == other)


@settings(deadline=None, max_examples=60)
@given(possible, st.data())
def test_a_text_is_what_was_written_or_no_program(files: dict[str, str], data: st.DataObject) -> None:
    text = join_files(files)
    at = data.draw(st.integers(0, len(text)))
    changed = text[:at] + data.draw(contents) + text[at + data.draw(st.integers(0, 3)) :]
    read = split_files(changed)
    assert read is None or join_files(read) == changed


def test_how_it_looks() -> None:
    files = {"main.py": "import b\n", "lib/b.py": "", "a b.txt": "one\ntwo"}
    assert join_files(files) == (
        "==> a b.txt (2 lines, no line end) <==\none\ntwo\n==> lib/b.py (0 lines) <==\n==> main.py (1 line) <==\nimport b\n"
    )
    assert header("main.py", "import b\n") == "==> main.py (1 line) <=="


@pytest.mark.parametrize(
    "text",
    [
        "",
        "def f(x):\n    return x\n",
        "==> ",
        "==> a.py (1 line) <==",
        "==> a.py (2 lines) <==\nx\n",
        "==> a.py (01 line) <==\nx\n",
        "==> a.py (1 lines) <==\nx\n",
        "==> b.py (0 lines) <==\n==> a.py (0 lines) <==\n",
        "==> a.py (0 lines) <==\n==> a.py (0 lines) <==\n",
        "==> ../a.py (0 lines) <==\n",
        "==> a.py (0 lines, no line end) <==\n",
        "==> a.py (99999999999999999999999999 lines) <==\nx\n",
        "==> a.py (1 line) <==\nx\nrest\n",
    ],
)
def test_other_texts_are_no_programs_of_several_files(text: str) -> None:
    assert split_files(text) is None


@pytest.mark.parametrize(
    "path",
    ["", "/a.py", "../a.py", "a/../b.py", "./a.py", "a//b.py", "a/", ".hidden", "a\\b.py", "a\nb", "a\0", "a  b", " a",
     "C:a.py", "`a`", "a/" * 150 + "b", "evaluator.py", "-x.py", "\ud800", "é" * 100 + "x"],
)  # fmt: skip
def test_paths_that_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match="file name"):
        check_files({path: "x"})


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "at least one file"),
        ({f"f{i}.py": "" for i in range(MAX_FILES + 1)}, "65 files; at most 64"),
        ({"a.py": "x" * (MAX_CHARS + 1)}, "1,000,001 characters"),
        ({"a": "", "a/b/c.py": ""}, "'a' cannot be a file and the folder of 'a/b/c.py'"),
    ],
)
def test_programs_that_are_refused(files: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        join_files(files)


def test_names_within_the_rules() -> None:
    check_files({"lib/evaluator.py": "", "__init__.py": "", "a b/c-d+e@1.tar.gz": "", "modèle.py": "", "é" * 100: ""})


def test_a_digest_is_of_each_file_by_itself() -> None:
    one = {"a.py": "x = 1  # why\n", "b.txt": "y = 1\n"}
    assert source_digest(join_files(one)) == source_digest(join_files(one | {"a.py": "x = 1"}))
    assert source_digest(join_files(one)) == source_digest(join_files(one | {"b.txt": "y = 1  \n\n"}))
    for other in ({"a.py": "x = 2\n"}, {"b.txt": "y = 1 # why\n"}, {"c.py": ""}):
        assert source_digest(join_files(one)) != source_digest(join_files(one | other))
    moved = {"c.py": one["a.py"], "b.txt": one["b.txt"]}
    assert source_digest(join_files(one)) != source_digest(join_files(moved))


def test_what_else_is_taken_file_by_file() -> None:
    old = {"a.py": "x = 1\ny = 2\n", "b.py": "z = 3\n"}
    before, after = (
        program(0, [0.0], source=join_files(old)),
        program(1, [1.0], source=join_files({**old, "b.py": "z = 4\n"})),
    )
    assert change(before, after).diff == "b.py\n-z = 3\n+z = 4"
    assert _size(join_files(old)) == _size("x = 1\ny = 2\n") + _size("z = 3\n")
    renamed = {**old, "b.py": "zz = 3  # why\n"}
    assert embedding(join_files(old)).tolist() == embedding(join_files(renamed)).tolist()
    assert embedding(join_files(old)).tolist() != embedding(join_files({**old, "b.py": "z = 4\n"})).tolist()
    assert commonest_language({"a.rs": "x" * 9, "b.py": "x", "c.txt": "x" * 99}) == "rust"
    assert commonest_language({"c.txt": "x"}) == "text"
