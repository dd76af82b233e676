"""Chat messages for instruction models.

The conversation is a system message, one worked example (a request and a well-formed reply, made by the same code as
the real request: small models follow what they are shown) and the request itself. Every part is bounded in characters
by a :class:`Budget`; what does not fit is cut in its middle and says so. Untrusted text (programs, messages, artifacts)
only appears inside fences that it cannot close.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

from evolve.chain import ChainFormat
from evolve.chat_example import example_context, example_edits, example_programs
from evolve.operators import OPERATORS
from evolve.prompts import PromptContext, PromptError, ShownProgram, ShownTest
from evolve.shown import clip, fence, fenced_program
from evolve.tokens import MESSAGE_TOKENS, CountTokens

SYSTEM = (
    "You are an expert programmer who improves programs step by step. You answer with complete, correct code in "
    "exactly the form that is asked for, as in the example."
)
_PARTS = ("statement", "tests", "parent", "artifacts", "inspirations", "history", "notes")
_LEAST_CHARS = 200
_MARKS = {"passed": "+", None: "?"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """Most characters of each part of the request.

    test: one test. tests, inspirations, artifacts, history, notes: all of them together. parent: the program to
        improve, and likewise the mate.
    """

    statement: int = 8_000
    tests: int = 5_000
    test: int = 600
    parent: int = 16_000
    artifacts: int = 3_000
    inspirations: int = 8_000
    history: int = 3_000
    notes: int = 1_500

    @property
    def total(self) -> int:
        """All parts together, without the mate."""
        return sum(getattr(self, name) for name in _PARTS)

    def scaled(self, total: int) -> Budget:
        """The same shares of ``total`` characters (at least 20 a part)."""
        factor = total / self.total
        return replace(self, **{name: max(20, int(getattr(self, name) * factor)) for name in (*_PARTS, "test")})


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


def fit_chat(
    context: PromptContext, chain: ChainFormat, *, limit: int, count: CountTokens, budget: Budget | None = None
) -> list[dict[str, str]]:
    """The messages of :func:`render_chat` within ``limit`` tokens, as ``count`` counts them.

    The parts of the request shrink in proportion; where that is not enough, the worked example goes. Raises
    :class:`evolve.prompts.PromptError` where even the barest request is too long.
    """
    start = budget or Budget()

    def bare(room: Budget) -> list[dict[str, str]]:
        messages = render_chat(context, chain, budget=room)
        return [messages[0], messages[-1]]

    for render in (lambda room: render_chat(context, chain, budget=room), bare):
        if (messages := fit_messages(render, start, limit=limit, count=count)) is not None:
            return messages
    raise PromptError(f"the prompt needs more than the {limit} tokens it may have: raise prompt_tokens")


def fit_messages(
    render: Callable[[Budget], list[dict[str, str]]], start: Budget, *, limit: int, count: CountTokens
) -> list[dict[str, str]] | None:
    """The messages for ``start`` or a share of it, the largest that fits ``limit`` tokens; ``None``: none does."""
    room = start.total
    while room >= _LEAST_CHARS:
        messages = render(start.scaled(room) if room < start.total else start)
        tokens = sum(count(message["content"]) + MESSAGE_TOKENS for message in messages)
        if tokens <= limit:
            return messages
        room = min(room * 3 // 4, int(room * limit / tokens))
    return None


def _request(context: PromptContext, chain: ChainFormat, budget: Budget) -> str:
    parts = [
        f"# Task\n{clip(context.statement.strip(), budget.statement)}",
        _interface(context),
        _preamble(context, budget),
        _notes(context, budget),
        _tests(context, budget),
        _parent(context, budget),
        _artifacts(context, budget),
        _history(context, budget),
        _mate(context, budget),
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
    if context.parent and len(context.tests) > 1:
        marks = "".join(_MARKS.get(test.status, "-") for test in context.tests)
        signs = "+ passed, ? not run" if "?" in marks else "+ passed"
        lines.append(f"Verdicts on the current program, in order ({signs}): {clip(marks, budget.test)}")
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
    return f"{head}\n{fenced_program(context.parent.source, context.language, budget.parent)}{_metrics(context.parent)}"


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
    current = context.parent.source if context.parent else None
    parts = [
        f"{_score(program, context)}:\n{fenced_program(program.source, context.language, share, beside=current)}"
        for program in context.inspirations
    ]
    return "# Other programs for the same task\n" + "\n".join(parts)


def _notes(context: PromptContext, budget: Budget) -> str:
    lines: list[str] = []
    room = budget.notes
    for note in context.notes:
        line = f"- {_one_line(note)}"
        if len(line) > room:
            break
        room -= len(line)
        lines.append(line)
    return "# What is known so far\n" + "\n".join(lines) if lines else ""


def _history(context: PromptContext, budget: Budget) -> str:
    if not context.history or context.parent is None:
        return ""
    share = max(20, budget.history // len(context.history))
    parts = [
        f"{step.operator}, score {step.before:.3f} to {step.after:.3f}:\n{fence(clip(step.diff, share), 'diff')}"
        for step in context.history
    ]
    return "# How the current program came to be\n" + "\n".join(parts)


def _mate(context: PromptContext, budget: Budget) -> str:
    if context.mate is None or context.parent is None:
        return ""
    head = f"# Second program ({_score(context.mate, context)})"
    source, current = context.mate.source, context.parent.source
    return f"{head}\n{fenced_program(source, context.language, budget.parent, beside=current)}"


def _operation(context: PromptContext) -> str:
    """What the operator asks for; empty where it only asks for something better."""
    if context.parent is None:
        return ""
    operator = OPERATORS[context.operator]
    if operator.mates and not context.focus:  # what the mate adds lies in tests that are not shown
        return operator.instruction.split(". ")[0] + "."
    return operator.instruction.format(focus=clip(_one_line(", ".join(context.focus)), 400))


def _instruction(context: PromptContext, chain: ChainFormat) -> str:
    m, edits = context.m, context.edit == "diff" and context.parent is not None
    if context.several_files:
        lines = [file_instruction(context)]
    elif edits:
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
        if context.several_files:
            lines.append("Files without these lines may not change.")
    if operation := _operation(context):
        lines.insert(0, operation)
    return " ".join(lines)


def file_instruction(context: PromptContext) -> str:
    """How an answer for a program of several files is to look."""
    if context.edit == "diff" and context.parent is not None:
        form = (
            "one or more SEARCH/REPLACE blocks, each under a line with the path of its file; each SEARCH part repeats "
            "lines of that file exactly"
        )
    else:
        form = "every file that it changes, complete, in a fenced code block under a line with the file's path"
    text = f"Give {context.m} different answers, each with {form}." if context.m > 1 else f"Reply with {form}."
    new = "It may add files; none can be removed." if context.new_files else "Files can be neither added nor removed."
    return f"{text} The program consists of several files; those that an answer leaves out stay as they are. {new}"


def _example_reply(context: PromptContext, chain: ChainFormat) -> str:
    answers = example_edits(context) if context.edit == "diff" else example_programs(context)
    if context.m > 1:
        return "\n".join(f"{chain.open}\n{answer}\n{chain.close}" for answer in answers)
    return answers[0] if context.edit == "diff" or context.several_files else fence(answers[0], "python")
