"""The worked example of chat prompts: a small task of the same kind, and replies that solve it in different ways."""

from __future__ import annotations

from evolve.files import join_files
from evolve.prompts import PromptContext, ShownProgram, ShownTest
from evolve.shown import fence

_STATEMENT = "Add up the squares of the numbers{}."
_WRONG = "sum(x for x in xs)"
_RIGHT: tuple[tuple[tuple[str, ...], str], ...] = (
    ((), "sum(x * x for x in xs)"),
    (("total = 0", "for x in xs:", "    total += x * x"), "total"),
    (("squares = [x ** 2 for x in xs]",), "sum(squares)"),
    ((), "sum(map(lambda x: x ** 2, xs))"),
)
"""Ways to the answer: statements, and the expression that holds it then."""
_MAIN, _SQUARES = "main.py", "lib/squares.py"
_RIGHT_FILES: tuple[tuple[str, str], ...] = (
    ("sum(square(x) for x in xs)", "x * x"),
    ("sum(map(square, xs))", "x ** 2"),
    ("sum([square(x) for x in xs])", "pow(x, 2)"),
    ("sum(square(abs(x)) for x in xs)", "x * x"),
)
"""Ways to the answer in two files: what ``total`` and what ``square`` return."""


def example_context(context: PromptContext) -> PromptContext:
    """A request of the same form: as many answers (at most four), with a parent or without, calls or standard input."""
    stdin = any(test.stdin is not None for test in context.tests)
    source = join_files(_files(_WRONG, "x")) if context.several_files else _program((), _WRONG, stdin)
    parent = ShownProgram(source=source, scalar=0.5, passed=1, total=2) if context.parent else None
    passed, wrong = ("passed", "wrong") if parent else (None, None)
    if stdin:
        message = "expected output '14\\n', got '6\\n'" if parent else ""
        tests = (
            ShownTest(name="t00", stdin="1 1\n", expected="2\n", status=passed),
            ShownTest(name="t01", stdin="1 2 3\n", expected="14\n", status=wrong, message=message),
        )
    else:
        message = "expected 14, got 6" if parent else ""
        tests = (
            ShownTest(name="t00", args=([1, 1],), expected=2, status=passed),
            ShownTest(name="t01", args=([1, 2, 3],), expected=14, status=wrong, message=message),
        )
    return PromptContext(
        statement=_STATEMENT.format(" on standard input" if stdin else " in xs"),
        entry_point=None if stdin else "total",
        tests=tests,
        parent=parent,
        m=min(context.m, len(_RIGHT)),
        edit=context.edit if parent else "whole",
        several_files=context.several_files,
        new_files=context.new_files,
    )


def example_programs(example: PromptContext) -> list[str]:
    """``example.m`` complete programs that solve the example."""
    if example.several_files:
        return [_whole_files(*right) for right in _RIGHT_FILES[: example.m]]
    stdin = example.entry_point is None
    return [_program(lines, result, stdin).rstrip("\n") for lines, result in _RIGHT[: example.m]]


def example_edits(example: PromptContext) -> list[str]:
    """``example.m`` SEARCH/REPLACE edits that make the example's parent solve it."""
    if example.several_files:
        return [_edited_files(*right) for right in _RIGHT_FILES[: example.m]]
    stdin = example.entry_point is None
    search = "\n".join(_body((), _WRONG, stdin))
    return [_block(search, "\n".join(_body(lines, result, stdin))) for lines, result in _RIGHT[: example.m]]


def _program(lines: tuple[str, ...], result: str, stdin: bool) -> str:
    head = "xs = [int(word) for word in input().split()]" if stdin else "def total(xs):"
    return "\n".join([head, *_body(lines, result, stdin)]) + "\n"


def _body(lines: tuple[str, ...], result: str, stdin: bool) -> list[str]:
    if stdin:
        return [*lines, f"print({result})"]
    return [f"    {line}" for line in (*lines, f"return {result}")]


def _block(search: str, replace: str) -> str:
    return f"<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE"


def _files(total: str, square: str) -> dict[str, str]:
    return {
        _MAIN: f"from lib.squares import square\n\n\ndef total(xs):\n    return {total}\n",
        _SQUARES: f"def square(x):\n    return {square}\n",
    }


def _whole_files(total: str, square: str) -> str:
    return "\n".join(f"{path}\n{fence(text, 'python')}" for path, text in _files(total, square).items())


def _edited_files(total: str, square: str) -> str:
    blocks = {_MAIN: (_WRONG, total), _SQUARES: ("x", square)}
    return "\n".join(
        f"{path}\n{_block(f'    return {old}', f'    return {new}')}" for path, (old, new) in blocks.items()
    )
