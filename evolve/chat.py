"""Chat messages for instruction models.

The conversation is a system message, one worked example (a request and a well-formed reply, made by the same code as
the real request: small models follow what they are shown) and the request itself. Every part is bounded in characters
by a :class:`Budget`; what does not fit is cut in its middle and says so. Untrusted text (programs, messages, artifacts)
only appears inside fences that it cannot close.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

from evolve.chain import ChainFormat
from evolve.chat_example import example_context, example_edits, example_programs
from evolve.prompts import PromptContext, ShownProgram, ShownTest

SYSTEM = (
    "You are an expert programmer who improves programs step by step. You answer with complete, correct code in "
    "exactly the form that is asked for, as in the example."
)
_LEFT_OUT = "\n… {} characters left out …\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """Most characters of each part of the request.

    test: one test. tests, inspirations, artifacts: all of them together. parent: the program to improve.
    """

    statement: int = 8_000
    tests: int = 5_000
    test: int = 600
    parent: int = 16_000
    artifacts: int = 3_000
    inspirations: int = 8_000

    def scaled(self, total: int) -> Budget:
        """The same shares of ``total`` characters (at least 20 a part)."""
        names = ("statement", "tests", "parent", "artifacts", "inspirations")
        factor = total / sum(getattr(self, name) for name in names)
        return replace(self, **{name: max(20, int(getattr(self, name) * factor)) for name in (*names, "test")})


def render_chat(
    context: PromptContext,
    chain: ChainFormat | None = None,
    system: str | None = None,
    *,
    budget: Budget | None = None,
) -> list[dict[str, str]]:
    """The messages (``role``, ``content``) that ask for ``context.m`` answers, marked as ``chain`` says.

    system: another system message than :data:`SYSTEM`. budget: other bounds than the default ones.
    """
    chain = chain or ChainFormat(m=context.m)
    shown = example_context(context)
    return [
        {"role": "system", "content": system if system is not None else SYSTEM},
        {"role": "user", "content": _request(shown, chain, Budget())},
        {"role": "assistant", "content": _example_reply(shown, chain)},
        {"role": "user", "content": _request(context, chain, budget or Budget())},
    ]


def _request(context: PromptContext, chain: ChainFormat, budget: Budget) -> str:
    parts = [
        f"# Task\n{clip(context.statement.strip(), budget.statement)}",
        _interface(context),
        _preamble(context, budget),
        _tests(context, budget),
        _parent(context, budget),
        _artifacts(context, budget),
        _inspirations(context, budget),
        f"# Your reply\n{_instruction(context, chain)}",
    ]
    return "\n\n".join(part for part in parts if part)


def _interface(context: PromptContext) -> str:
    if context.entry_point is not None:
        return f"The program must define the function `{context.entry_point}`."
    if any(test.stdin is not None for test in context.tests):
        return "The program reads standard input and writes its answer to standard output."
    return ""


def _preamble(context: PromptContext, budget: Budget) -> str:
    """What the program may use without defining it; a statement that shows it already is only referred to."""
    code = context.preamble.strip()
    if not code:
        return ""
    if code in context.statement:
        return (
            "The imports and helper functions in the task above are already defined when the program runs; it need "
            "not repeat them."
        )
    head = "This code runs before the program, which may use what it defines and need not repeat it:"
    return f"{head}\n{fence(clip(code, budget.artifacts), context.language)}"


def _tests(context: PromptContext, budget: Budget) -> str:
    lines: list[str] = []
    # Failures first: they are what there is to mend, and the first to be worth the room.
    tests = sorted(context.tests, key=lambda test: test.status == "passed")
    room = budget.tests
    for i, test in enumerate(tests):
        line = _test(test, context.entry_point, budget.test)
        if len(line) > room:
            lines.append(f"- and {len(tests) - i} more")
            break
        room -= len(line)
        lines.append(line)
    if context.hidden:
        failed = f"; the current program fails {context.hidden_failed} of them" if context.parent else ""
        lines.append(f"- {context.hidden} hidden tests{failed}")
    return "# Tests\n" + "\n".join(lines) if lines else ""


def _test(test: ShownTest, entry_point: str | None, limit: int) -> str:
    if test.stdin is not None:
        case = f"input {json.dumps(test.stdin)} must print {json.dumps(test.expected)}{test.other_answers}"
    else:
        case = f"{entry_point}({', '.join(map(repr, test.args))}) must return {test.expected!r}{test.other_answers}"
    if test.status is None:
        return "- " + clip(_one_line(case), limit)
    verdict = "passed" if test.status == "passed" else f"FAILED ({test.status})"
    message = f": {test.message}" if test.message and test.status != "passed" else ""
    return f"- {verdict}: {clip(_one_line(case + message), limit)}"


def _one_line(text: str) -> str:
    return " ".join(text.split("\n"))


def _parent(context: PromptContext, budget: Budget) -> str:
    if context.parent is None:
        return ""
    head = f"# Current program ({_score(context.parent, context)})"
    return f"{head}\n{fence(clip(context.parent.source, budget.parent), context.language)}{_metrics(context.parent)}"


def _score(program: ShownProgram, context: PromptContext) -> str:
    if not context.tests and not context.hidden:
        return f"score {program.scalar:.3f}"
    return f"score {program.scalar:.3f}, passes {program.passed} of {program.total} tests"


def _metrics(program: ShownProgram) -> str:
    if not program.metrics:
        return ""
    values = ", ".join(f"{name} = {value:.6g}" for name, value in sorted(program.metrics.items()))
    return f"\nMetrics: {clip(_one_line(values), 1_000)}"


def _artifacts(context: PromptContext, budget: Budget) -> str:
    artifacts = context.parent.artifacts if context.parent else {}
    if not artifacts:
        return ""
    share = max(20, budget.artifacts // len(artifacts))
    shown = sorted(artifacts.items())[: max(1, budget.artifacts // share)]
    parts = [f"{clip(_one_line(name), 80)}:\n{fence(clip(text.strip(), share), '')}" for name, text in shown]
    return "# What the evaluator said about it\n" + "\n".join(parts)


def _inspirations(context: PromptContext, budget: Budget) -> str:
    if not context.inspirations:
        return ""
    share = max(20, budget.inspirations // len(context.inspirations))
    parts = [
        f"{_score(program, context)}:\n{fence(clip(program.source, share), context.language)}"
        for program in context.inspirations
    ]
    return "# Other programs for the same task\n" + "\n".join(parts)


def _instruction(context: PromptContext, chain: ChainFormat) -> str:
    m, edits = context.m, context.edit == "diff" and context.parent is not None
    if edits:
        form = "SEARCH/REPLACE blocks as in the example; each SEARCH part repeats lines of the current program exactly"
        form = f"one or more {form}"
        lines = [f"Reply with {form}." if m == 1 else f"Give {m} different edits, each {form}."]
    elif m == 1:
        lines = [f"Reply with the complete {context.language} program in one fenced code block."]
    else:
        lines = [f"Give {m} different complete {context.language} programs that try different ideas."]
    if m > 1:
        lines.append(f"Put each between {chain.open} and {chain.close}.")
    if context.parent is not None and "EVOLVE-BLOCK-START" in context.parent.source:
        lines.append("Change only what is between the EVOLVE-BLOCK-START and EVOLVE-BLOCK-END lines; keep these lines.")
    return " ".join(lines)


def _example_reply(context: PromptContext, chain: ChainFormat) -> str:
    answers = example_edits(context) if context.edit == "diff" else example_programs(context)
    if context.m > 1:
        return "\n".join(f"{chain.open}\n{answer}\n{chain.close}" for answer in answers)
    return answers[0] if context.edit == "diff" else fence(answers[0], "python")


def clip(text: str, limit: int) -> str:
    """``text`` within about ``limit`` characters: its first two thirds and its end, and how much is left out."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return text[:head] + _LEFT_OUT.format(len(text) - head - tail) + text[len(text) - tail :]


def fence(text: str, language: str) -> str:
    """``text`` in a Markdown fence longer than any run of backquotes in it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    body = text.removesuffix("\n")
    return f"{ticks}{language}\n{body}\n{ticks}"
