"""Answers for programs of several files: what is meant for which file, every outcome by name, and what always holds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evolve.chain import ChainFormat
from evolve.edits import EditResult, Outcome
from evolve.file_answers import read_parts
from evolve.file_edits import FileRules, apply_file_edits, file_rules
from evolve.files import join_files, split_files
from evolve.program import Reply, Usage
from evolve.reading import Candidates, read_reply
from evolve.request import Request
from tests.evolve.test_edits import block
from tests.evolve.test_files import possible

FREE = {"main.py": "from lib.b import f\n\nprint(f(1))\n", "lib/b.py": "def f(x):\n    return x\n"}
MARKED = {
    "main.py": "import lib.b\n# EVOLVE-BLOCK-START\nx = 1\n# EVOLVE-BLOCK-END\n",
    "lib/b.py": "def f(x):\n    return x  # as it is\n",
}
NEW_B = "def f(x):\n    return 2 * x\n"


def fenced(path: str, text: str, words: str = "python") -> str:
    return f"{path}\n```{words}\n{text}```\n"


def edited(answer: str, files: dict[str, str] = FREE, *, new_files: bool = False, edit: str = "whole") -> EditResult:
    source = join_files(files)
    rules = file_rules(source, new_files=new_files)
    assert rules is not None
    return apply_file_edits(answer, parent=source, rules=rules, edit=edit)


def changed(answer: str, files: dict[str, str] = FREE, **settings: bool) -> dict[str, str]:
    """The files that an answer changes, with their new content."""
    result = edited(answer, files, **settings)
    assert result.source is not None, result
    new = split_files(result.source)
    assert new is not None
    assert files.keys() <= new.keys()
    return {path: text for path, text in new.items() if files.get(path) != text}


@pytest.mark.parametrize(
    "answer",
    [
        fenced("lib/b.py", NEW_B),
        fenced("**`lib/b.py`**:", NEW_B),
        fenced("### File: lib/b.py\n", NEW_B),
        fenced("2. ./lib/b.py", NEW_B, ""),
        fenced("Double it.", NEW_B, "python lib/b.py"),
        fenced("Double it:", NEW_B, "lib/b.py"),
        fenced("", NEW_B, 'python title="lib/b.py"'),
        fenced("", NEW_B, "python:lib/b.py"),
        fenced("==> lib/b.py (2 lines) <==", NEW_B),
        fenced("An idea:", "x = 1\n") + fenced("lib/b.py", NEW_B) + fenced("Try it:", "python main.py\n", "bash"),
        fenced("lib/b.py", NEW_B) + fenced("main.py", FREE["main.py"]),
        "lib/b.py\n" + block("    return x", "    return 2 * x"),
        "lib/b.py\n```\n" + block("    return x", "    return 2 * x") + "```\n",
        "```python lib/b.py\n" + block("    return x", "    return 2 * x") + "```\n",
        "```diff\nlib/b.py\n" + block("    return x", "    return 2 * x") + "```\n",
        "lib/b.py\r\n```\r\n" + NEW_B.replace("\n", "\r\n") + "```\r\n",
    ],
)
def test_ways_to_name_a_file(answer: str) -> None:
    assert changed(answer) == {"lib/b.py": NEW_B}


def test_a_comment_in_the_file_may_name_it() -> None:
    assert changed(fenced("Double it:", f"# lib/b.py\n{NEW_B}")) == {"lib/b.py": f"# lib/b.py\n{NEW_B}"}


def test_all_files_at_once_and_both_forms_together() -> None:
    answer = fenced("lib/b.py", NEW_B) + "Then\nmain.py\n" + block("print(f(1))", "print(f(2))")
    assert changed(answer) == {"lib/b.py": NEW_B, "main.py": "from lib.b import f\n\nprint(f(2))\n"}


def test_blocks_without_a_name_belong_to_the_file_before() -> None:
    answer = "main.py\n" + block("print(f(1))", "print(f(2))") + "and\n" + block("print(f(2))", "print(f(3))")
    assert changed(answer) == {"main.py": "from lib.b import f\n\nprint(f(3))\n"}


def test_the_only_file_that_may_change_needs_no_name() -> None:
    assert changed(block("x = 1", "x = 2"), MARKED).keys() == {"main.py"}
    assert changed("```python\nx = 2\n```", MARKED)["main.py"] == MARKED["main.py"].replace("x = 1", "x = 2")


def test_a_fence_may_hold_another_one_if_it_is_longer() -> None:
    text = '"""Use:\n```\nf(1)\n```\n"""\n'
    assert changed(f"lib/b.py\n````python\n{text}````\n") == {"lib/b.py": text}


@pytest.mark.parametrize(
    ("answer", "outcome", "detail"),
    [
        ("I would rather not.", Outcome.NO_CODE, ""),
        (fenced("Like this:", NEW_B) + fenced("Or this:", NEW_B), Outcome.NO_FILE, "no code block names a file"),
        (block("    return x", "    return 2"), Outcome.NO_FILE, "SEARCH/REPLACE block names no file"),
        (
            fenced("lib/c.py", NEW_B),
            Outcome.UNKNOWN_FILE,
            "lib/c.py: the program has no such file, only lib/b.py, main.py",
        ),
        ("b.py\n" + block("    return x", "    return 2"), Outcome.UNKNOWN_FILE, "b.py: the program has no such file"),
        (fenced("../evaluator.py", NEW_B), Outcome.UNKNOWN_FILE, "../evaluator.py"),
        (fenced("lib/b.py", ""), Outcome.NO_CODE, "lib/b.py: its code block is empty, and no file can be removed"),
        (fenced("lib/b.py", NEW_B) * 2, Outcome.MALFORMED, "lib/b.py: given more than once"),
        (
            fenced("lib/b.py", NEW_B) + "main.py\n```python\nx = 1\n",
            Outcome.MALFORMED,
            "line 7 of the answer is not closed",
        ),
        ("lib/b.py\n<<<<<<< SEARCH\n    return x\n", Outcome.MALFORMED, "lib/b.py: block 1 is not closed"),
        (
            "main.py\n" + block("    return x", "    return 2"),
            Outcome.NOT_FOUND,
            "main.py: block 1 is not in the program",
        ),
        ("main.py\n" + block("", "x"), Outcome.EMPTY_SEARCH, "main.py"),
        (
            ("```x\n" + block("x", "y")) * 8_000 + "```\n" * 8_000,  # not after minutes
            Outcome.MALFORMED,
            "within too many others",
        ),
    ],
)
def test_bad_answers_have_names(answer: str, outcome: Outcome, detail: str) -> None:
    result = edited(answer)
    assert (result.outcome, result.source) == (outcome, None)
    assert detail in result.detail


def test_one_bad_file_refuses_all() -> None:
    result = edited(fenced("lib/b.py", NEW_B) + "main.py\n" + block("print(g(1))", "print(2)"))
    assert (result.outcome, result.source) == (Outcome.NOT_FOUND, None)


def test_new_files_where_the_task_allows_them() -> None:
    answer = fenced("lib/c.py", NEW_B) + fenced("lib/__init__.py", "")
    assert changed(answer, new_files=True) == {"lib/c.py": NEW_B, "lib/__init__.py": ""}
    for path in ("/etc/passwd", "../up.py", "evaluator.py", "main.py/x.py", "a\\b.py"):
        assert edited(fenced(path, NEW_B), new_files=True).outcome == Outcome.BAD_FILE, path
    assert edited("new.py\n" + block("x", "y"), new_files=True).outcome == Outcome.UNKNOWN_FILE


def test_fences_that_are_all_closed_are_not_within_each_other() -> None:
    blocks = [block(f"x = {i}", f"x = {i + 1}") for i in range(40)]  # each edits what the one before wrote
    answer = "main.py\n" + "".join(f"```python\n{text}```\n" for text in blocks)
    assert changed(answer, {"main.py": "x = 0\n"}) == {"main.py": "x = 40\n"}


def test_too_many_or_too_long() -> None:
    many = "".join(fenced(f"f{i}.py", "x = 1\n") for i in range(70))
    assert edited(many, new_files=True).outcome == Outcome.BAD_FILE
    source = join_files(FREE)
    result = apply_file_edits(fenced("lib/b.py", NEW_B), parent=source, rules=FileRules(), max_chars=len(source))
    assert result.outcome == Outcome.TOO_LONG


def test_markers_protect_the_rest_of_their_file_and_files_without_any() -> None:
    kept = fenced("lib/b.py", "def f(x): return x\n")
    answer = fenced("main.py", "# EVOLVE-BLOCK-START\nx = 2\n# EVOLVE-BLOCK-END\n") + kept
    assert changed(answer, MARKED) == {"main.py": MARKED["main.py"].replace("x = 1", "x = 2")}
    for answer in (fenced("lib/b.py", NEW_B), "lib/b.py\n" + block("    return x  # as it is", "    return 2")):
        assert edited(answer, MARKED).outcome == Outcome.OUTSIDE_BLOCK
    assert edited("main.py\n" + block("import lib.b", "import os"), MARKED).outcome == Outcome.OUTSIDE_BLOCK


def test_markers_that_an_answer_adds_do_not_lock_the_other_files() -> None:
    seed = join_files(FREE)
    rules = file_rules(seed)
    assert rules is not None
    marked = apply_file_edits(fenced("main.py", MARKED["main.py"]), parent=seed, rules=rules).source
    assert marked is not None
    assert apply_file_edits(fenced("lib/b.py", NEW_B), parent=marked, rules=rules).outcome == Outcome.APPLIED


pieces = st.one_of(
    st.sampled_from(["```\n", "```python\n", "main.py\n", "lib/b.py\n", "x.py\n", "<<<<<<< SEARCH\n", "=======\n"]),
    st.sampled_from([">>>>>>> REPLACE\n", "    return x\n", "def f(x):\n", "print(f(1))\n", "~~~~\n", "````\n"]),
    st.text(max_size=6),
)
answers = st.lists(pieces, max_size=14).map("".join)


@settings(deadline=None, max_examples=60)
@given(answers, st.sampled_from([FREE, MARKED]), st.booleans())
def test_any_answer_has_an_outcome_and_touches_only_what_it_names(
    answer: str, files: dict[str, str], new_files: bool
) -> None:
    result = edited(answer, files, new_files=new_files)
    assert (result.source is not None) == (result.outcome in (Outcome.APPLIED, Outcome.UNCHANGED))
    if result.source is None:
        return
    new = split_files(result.source)
    assert new is not None
    named = {part.path for part in read_parts(answer, files)}
    rules = file_rules(join_files(files))
    assert rules is not None
    for path, text in new.items():
        if path not in named and None not in named:
            assert text == files[path]
        if path in rules.read_only:
            assert text == files[path]
    assert files.keys() <= new.keys()
    assert new_files or new.keys() == files.keys()


@settings(deadline=None, max_examples=60)
@given(possible, st.text(st.characters(exclude_characters="`~<>=\r", exclude_categories=["Cs"]), min_size=1), st.data())
def test_a_file_is_replaced_and_the_others_keep_their_bytes(
    files: dict[str, str], text: str, data: st.DataObject
) -> None:
    path = data.draw(st.sampled_from(sorted(files)))
    result = edited(f"{path}\n```\n{text}\n```\n", files)
    if not text.strip():
        assert result.outcome in (Outcome.NO_CODE, Outcome.UNCHANGED)
    else:
        assert result.source == join_files({**files, path: f"{text}\n"})


# Replies


def read(*texts: str, m: int = 1, finished: bool = True, edit: str = "whole", new_files: bool = False) -> Candidates:
    request = Request(iteration=1, island=0, edit=edit, parent_source=join_files(FREE), n=len(texts), m=m)
    reply = Reply(texts=texts, finished=(finished,) * len(texts), usage=Usage())
    return read_reply(
        request,
        reply,
        ChainFormat(m=m),
        seed_source=join_files(FREE),
        language="python",
        known=lambda digest: None,
        new_files=new_files,
    )


def test_a_reply_is_read_as_one_answer_for_several_files() -> None:
    text = "<think>\n" + fenced("main.py", "1 +\n") + "</think>\nHere:\n" + fenced("lib/b.py", NEW_B)
    found = read(text, fenced("lib/b.py", f"# the same\n{NEW_B}"), "Nothing comes to mind.")
    assert [child.source for child in found.children] == [join_files(FREE | {"lib/b.py": NEW_B})]
    assert [(item.index, item.reason) for item in found.rejected] == [(1, "duplicate"), (2, "missing")]


def test_a_chain_of_answers_for_several_files() -> None:
    answers = [fenced("lib/b.py", NEW_B) + fenced("main.py", "x = 1\n"), "main.py\n" + block("print(f(1))", "f(2)")]
    found = read("".join(f"<answer>\n{answer}</answer>\n" for answer in answers), m=3)
    assert [len(split_files(child.source) or {}) for child in found.children] == [2, 2]
    assert [item.reason for item in found.rejected] == ["missing"]


def test_what_becomes_no_program_says_why() -> None:
    texts = fenced("lib/b.py", "def f(:\n"), fenced("lib/x.py", NEW_B), fenced("notes.txt", "def f(:\n")
    found = read(*texts, new_files=True)
    assert [child.index for child in found.children] == [1, 2]
    assert found.rejected[0].reason == "unparsable"
    assert found.rejected[0].detail.startswith("lib/b.py: SyntaxError")
    refused = read(texts[1]).rejected[0]
    assert (refused.reason, refused.detail[:22]) == ("bad_edit", "unknown_file: lib/x.py")


def test_a_reply_that_was_cut_off_between_files_is_no_answer() -> None:
    found = read(fenced("lib/b.py", NEW_B), finished=False)
    assert [(item.reason, item.detail) for item in found.rejected] == [("missing", "cut off by the token limit")]
    assert len(read(f"<answer>\n{fenced('lib/b.py', NEW_B)}</answer>", finished=False).children) == 1
