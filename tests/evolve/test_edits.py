"""Edits: every outcome by name, and what holds for any edit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolve.edits import Outcome, apply_edit, has_diff_blocks

PLAIN = "def f(x):\n    y = x\n    return y\n"
MARKED = """\
import math

# EVOLVE-BLOCK-START
def f(x):
    return x
# EVOLVE-BLOCK-END

def main():
    return f(1)
"""
TWO = """\
# EVOLVE-BLOCK-START
a = 1
# EVOLVE-BLOCK-END
fixed = 0
// EVOLVE-BLOCK-START
b = 1
// EVOLVE-BLOCK-END
"""


def block(search: str, replace: str) -> str:
    return f"<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n"


def edited(answer: str, parent: str | None = PLAIN, edit: str = "diff") -> tuple[str, str | None]:
    result = apply_edit(answer, parent=parent, edit=edit)
    return str(result.outcome), result.source


def test_a_block_replaces_lines() -> None:
    assert edited(block("    y = x", "    y = 2 * x")) == ("applied", "def f(x):\n    y = 2 * x\n    return y\n")


def test_blocks_apply_in_order_with_text_around() -> None:
    answer = "First:\n```\n" + block("    y = x", "    z = x") + "```\nThen:\n" + block("    return y", "    return z")
    assert edited(answer) == ("applied", "def f(x):\n    z = x\n    return z\n")


def test_a_replacement_may_be_empty() -> None:
    answer = "<<<<<<< SEARCH\n    y = x\n=======\n>>>>>>> REPLACE"
    assert edited(answer) == ("applied", "def f(x):\n    return y\n")


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("  \n", Outcome.NO_CODE),
        ("I would rather not.", Outcome.NO_BLOCKS),
        ("hello", Outcome.NO_BLOCKS),
        (block("    nothing like it", "x"), Outcome.NOT_FOUND),
        (block("", "x"), Outcome.EMPTY_SEARCH),
        (block("  ", "x"), Outcome.EMPTY_SEARCH),
        ("<<<<<<< SEARCH\n    y = x\n", Outcome.MALFORMED),
        ("<<<<<<< SEARCH\n    y = x\n=======\n    y = 2\n", Outcome.MALFORMED),
        ("<<<<<<< SEARCH\n    y = x\n>>>>>>> REPLACE\n", Outcome.MALFORMED),
        ("<<<<<<< SEARCH\na\n=======\nb\n=======\nc\n>>>>>>> REPLACE\n", Outcome.MALFORMED),
        ("<<<<<<< SEARCH\n<<<<<<< SEARCH\n=======\nb\n>>>>>>> REPLACE\n", Outcome.MALFORMED),
        (block("    y = x", "    y = 3") + ">>>>>>> REPLACE\n", Outcome.MALFORMED),
    ],
)
def test_bad_answers_have_names(answer: str, outcome: Outcome) -> None:
    result = apply_edit(answer, parent=PLAIN, edit="diff")
    assert (result.outcome, result.source) == (outcome, None)
    assert result.detail


def test_nothing_is_applied_when_one_block_is_bad() -> None:
    assert edited(block("    y = x", "    y = 2") + block("nowhere", "x")) == ("search_not_found", None)


def test_two_places_are_ambiguous() -> None:
    assert edited(block("a", "b"), "a\nc\na\n") == ("ambiguous", None)
    assert edited(block("c\na", "b"), "a\nc\na\n") == ("applied", "a\nb\n")


def test_blocks_need_a_program_to_edit() -> None:
    assert edited(block("a", "b"), None) == ("no_parent", None)


def test_no_change_is_named() -> None:
    assert edited(block("    y = x", "    y = x")) == ("unchanged", PLAIN)
    assert edited(PLAIN, edit="whole") == ("unchanged", PLAIN)


def test_trailing_white_space_is_forgiven_and_reported() -> None:
    result = apply_edit(block("    y = x  \n    return y", "    return x"), parent=PLAIN, edit="diff")
    assert (result.source, result.fuzzy) == ("def f(x):\n    return x\n", True)
    exact = apply_edit(block("    y = x", "    y = 1"), parent=PLAIN, edit="diff")
    assert not exact.fuzzy


def test_another_indentation_is_forgiven_and_kept_relative() -> None:
    result = apply_edit(block("y = x\nreturn y", "if x:\n    return 1\nreturn x"), parent=PLAIN, edit="diff")
    assert (result.source, result.fuzzy) == ("def f(x):\n    if x:\n        return 1\n    return x\n", True)
    deeper = apply_edit(block("        y = x", "        y = 1"), parent=PLAIN, edit="diff")
    assert deeper.source == "def f(x):\n    y = 1\n    return y\n"


def test_white_space_of_any_kind_is_forgiven() -> None:
    expected = "def f(x):\n    return x\n"
    assert edited(block("y = x\n      return y", "return x")) == ("applied", expected)
    assert edited(block("\ty  =  x\n\n\treturn y", "\treturn x")) == ("applied", expected)
    assert edited(block("    y=x", "    y=x\n    y += 1")) == (
        "applied",
        "def f(x):\n    y = x\n    y += 1\n    return y\n",
    )
    assert edited(block("    y = z", "    y = 1"))[0] == "search_not_found"


def test_a_replacement_that_is_indented_as_the_program_stays_so() -> None:
    assert edited(block("y = x", "    y = x\n    y += 1")) == (
        "applied",
        "def f(x):\n    y = x\n    y += 1\n    return y\n",
    )


def test_tabs_of_the_program_are_kept() -> None:
    parent = "def f(x):\n\tif x:\n\t\treturn 1\n"
    assert edited(block("    if x:\n        return 1", "    if x:\n        y = 2\n        return 1"), parent) == (
        "applied",
        "def f(x):\n\tif x:\n\t\ty = 2\n\t\treturn 1\n",
    )


def test_loosely_the_same_in_two_places_is_ambiguous() -> None:
    assert edited(block("a=1", "a=2"), "a = 1\nb\na =  1\n") == ("ambiguous", None)


def test_a_program_may_be_too_long() -> None:
    long = apply_edit("x = 1\n" * 9, parent=PLAIN, edit="whole", max_chars=50)
    assert (long.outcome, long.source) == (Outcome.TOO_LONG, None)
    assert "54 characters, at most 50" in long.detail
    assert apply_edit("x = 1\n", parent=PLAIN, edit="whole", max_chars=6).outcome == "applied"


def test_crlf_is_kept_and_read() -> None:
    parent = PLAIN.replace("\n", "\r\n")
    expected = "def f(x):\r\n    y = 1\r\n    z = 2\r\n    return y\r\n"
    answer = block("    y = x", "    y = 1\n    z = 2")
    assert edited(answer, parent) == ("applied", expected)
    assert edited(answer.replace("\n", "\r\n"), parent) == ("applied", expected)
    assert edited(answer.replace("\n", "\r\n"), PLAIN) == ("applied", expected.replace("\r\n", "\n"))


def test_a_missing_last_line_end_stays_missing() -> None:
    assert edited(block("b", "c"), "a\nb") == ("applied", "a\nc")


def test_inside_a_block() -> None:
    answer = block("    return x", "    return x + 1")
    assert edited(answer, MARKED) == ("applied", MARKED.replace("return x", "return x + 1"))


def test_outside_of_the_blocks_nothing_changes() -> None:
    assert edited(block("    return f(1)", "    return 2"), MARKED) == ("outside_block", None)
    assert edited(block("# EVOLVE-BLOCK-END", ""), MARKED) == ("outside_block", None)
    assert edited(block("    return x", "    return x\n# EVOLVE-BLOCK-END\nimport os"), MARKED)[0] == "outside_block"


def test_a_block_may_repeat_the_markers_and_fixed_lines() -> None:
    answer = block(
        "# EVOLVE-BLOCK-START\ndef f(x):\n    return x\n# EVOLVE-BLOCK-END",
        "# EVOLVE-BLOCK-START\ndef f(x):\n    return -x\n# EVOLVE-BLOCK-END",
    )
    assert edited(answer, MARKED) == ("applied", MARKED.replace("return x", "return -x"))


def test_the_one_place_inside_a_block_is_not_ambiguous() -> None:
    parent = "a = 1\n# EVOLVE-BLOCK-START\na = 1\n# EVOLVE-BLOCK-END\na = 1\n"
    assert (
        edited(block("a = 1", "a = 2"), parent)[1] == "a = 1\n# EVOLVE-BLOCK-START\na = 2\n# EVOLVE-BLOCK-END\na = 1\n"
    )


def test_unmatched_markers_protect_nothing() -> None:
    assert edited(block("a", "b"), "a\n# EVOLVE-BLOCK-END\n")[0] == "applied"


def test_a_whole_program_replaces_the_parent() -> None:
    assert edited("def f(x):\n    return 1", edit="whole") == ("applied", "def f(x):\n    return 1\n")
    assert edited("def f(x):\r\n    return 1\r\n", None, "whole") == ("applied", "def f(x):\n    return 1\n")


def test_a_whole_programs_block_goes_into_the_fixed_parts() -> None:
    answer = "import os\n# EVOLVE-BLOCK-START\ndef f(x):\n    return 9\n# EVOLVE-BLOCK-END\nprint(1)\n"
    assert edited(answer, MARKED, "whole") == ("applied", MARKED.replace("return x", "return 9"))


def test_a_whole_program_without_markers_is_the_block() -> None:
    expected = ("applied", MARKED.replace("return x", "return 9"))
    assert edited("def f(x):\n    return 9\n", MARKED, "whole") == expected


def test_a_whole_program_without_markers_that_repeats_the_fixed_parts() -> None:
    answer = "import math\n\ndef f(x):\n    return 9\n\ndef main():\n    return f(1)\n"
    outcome, source = edited(answer, MARKED, "whole")
    assert outcome == "applied"
    assert source is not None
    assert source.count("import math") == source.count("def main") == 1
    assert "return 9" in source


def test_several_blocks_need_their_markers() -> None:
    assert edited("a = 2\nb = 2\n", TWO, "whole") == ("markers_changed", None)
    assert edited(TWO.replace("= 1", "= 2").replace("fixed = 0", "fixed = 9"), TWO, "whole") == (
        "applied",
        TWO.replace("= 1", "= 2"),
    )


def test_the_other_form_is_understood() -> None:
    assert edited("def f(x):\n    return 1\n", edit="diff") == ("applied", "def f(x):\n    return 1\n")
    assert edited(block("    y = x", "    y = 1"), edit="whole")[0] == "applied"


LINE = st.text(alphabet="ab =#\t\r<>", max_size=6)
TEXT = st.lists(LINE, max_size=8).map("\n".join)
ANSWER = st.lists(
    LINE
    | st.sampled_from(["<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "# EVOLVE-BLOCK-START", "# EVOLVE-BLOCK-END"]),
    max_size=12,
).map("\n".join)


@given(answer=ANSWER | st.text(), parent=st.none() | ANSWER | st.text(), edit=st.sampled_from(["whole", "diff"]))
def test_no_answer_raises_and_outcomes_tell_whether_there_is_a_program(
    answer: str, parent: str | None, edit: str
) -> None:
    result = apply_edit(answer, parent=parent, edit=edit)
    assert (result.source is not None) == (result.outcome in (Outcome.APPLIED, Outcome.UNCHANGED))
    assert (result.outcome is Outcome.UNCHANGED) == (result.source is not None and result.source == parent)


WORDS = st.lists(st.text(alphabet="abc ", min_size=1, max_size=5), min_size=1, max_size=6)


@given(before=WORDS, middle=WORDS, after=WORDS, new=WORDS, data=st.data())
def test_fixed_parts_survive_any_edit(
    before: list[str], middle: list[str], after: list[str], new: list[str], data: st.DataObject
) -> None:
    start, end = "# EVOLVE-BLOCK-START", "# EVOLVE-BLOCK-END"
    lines = [*before, start, *middle, end, *after]
    parent = "\n".join(lines) + "\n"
    first = data.draw(st.integers(0, len(lines) - 1))
    last = data.draw(st.integers(first, len(lines) - 1))
    answers = [block("\n".join(lines[first : last + 1]), "\n".join(new)), "\n".join(new), "\n".join(lines[first:])]
    for answer in answers:
        source = apply_edit(answer, parent=parent).source
        if source is not None:
            assert source.startswith("\n".join([*before, start]) + "\n")
            assert source.endswith("\n".join([end, *after]) + "\n")


@given(lines=st.lists(st.text(alphabet="abcd", min_size=1), min_size=1, max_size=8, unique=True), data=st.data())
def test_a_unique_line_is_replaced_and_all_others_keep_their_bytes(lines: list[str], data: st.DataObject) -> None:
    ends = [data.draw(st.sampled_from(["\n", "\r\n"])) for _ in lines]
    place = data.draw(st.integers(0, len(lines) - 1))
    parent = "".join(line + end for line, end in zip(lines, ends, strict=True))
    source = apply_edit(block(lines[place], "NEW"), parent=parent, edit="diff").source
    assert source is not None
    kept = source.split("NEW")
    assert kept[0] == "".join(line + end for line, end in zip(lines[:place], ends[:place], strict=True))
    assert kept[1].lstrip("\r\n").startswith("".join(lines[place + 1 : place + 2]))
    assert kept[1].endswith(
        "".join(line + end for line, end in zip(lines[place + 1 :], ends[place + 1 :], strict=True))
    )


def test_what_counts_as_a_block() -> None:
    assert has_diff_blocks("text\n<<<<<<< SEARCH\r\nx")
    assert not has_diff_blocks("x = '<<<<<<< SEARCH'")
