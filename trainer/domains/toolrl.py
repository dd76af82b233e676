"""ToolRL: which tools to call with which arguments (arXiv 2504.13958), with the paper's reward (arXiv 2605.22817).

Components: ``format`` (one thought, and tool calls exactly where calls are wanted), ``tool_name`` (multiset F1 of the
names), ``arg_key`` (F1 of the argument names, mean over aligned calls) and ``arg_value`` (share of the wanted arguments
whose value matches, mean over aligned calls; text by word F1, numbers and booleans exactly). Calls are aligned greedily
by name, then by shared argument names; a call without a partner counts 0. The task scalar is the mean.

Files: ``rlla_4k`` as published (Parquet; ``prompt`` messages, ``reward_model.ground_truth``) or ``rlla_rl.json``
(``instruction``, ``input``, ``output``). One departure: the thought inside an answer is tagged ``<thought>`` rather
than ``<think>``, since a chain may think before its answers and everything up to ``</think>`` is not an answer.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainer.domains.base import Messages
from trainer.domains.text import multiset_f1, normalised, word_f1
from trainer.domains.textual import TextDomain

COMPONENTS = ("format", "tool_name", "arg_key", "arg_value")
_THOUGHT = re.compile(r"<thought>.*?</thought>", re.DOTALL)
_CALLS = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_VERBS = ("book", "find", "send", "play", "track", "order", "check", "plan")
_NOUNS = ("flight", "song", "parcel", "table", "film", "route", "report", "ticket")
_KEYS = ("city", "day", "name", "size", "count", "colour")
_VALUES = ("Rome", "Oslo", "Lima", "Monday", "Friday", "Ada", "Ben", "small", "large", "red", "blue", "green")


@dataclass(frozen=True, slots=True)
class Call:
    """One call; arguments: JSON values by name."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolProblem:
    """system: the tools. user: the conversation. calls: those wanted, maybe none."""

    system: str
    user: str
    calls: tuple[Call, ...]


class ToolDomain(TextDomain[ToolProblem]):
    name = "toolrl"
    answer_tokens = (96, 320)
    samples = (
        "<thought>They want the forecast.</thought>\n<tool_call>\n"
        '{"name": "get_weather", "parameters": {"city": "Oslo", "days": 3}}\n</tool_call>',
        "<thought>No tool is needed.</thought>\n<response>You are welcome.</response>",
    )

    def components(self, problem: ToolProblem) -> tuple[str, ...]:
        return COMPONENTS

    def rewards(self, problem: ToolProblem, answer: str) -> np.ndarray:
        if not answer.strip():
            return np.zeros(len(COMPONENTS))
        blocks = _CALLS.findall(answer)
        called = read_calls(blocks[0]) if blocks else []
        structure = bool(called) and len(blocks) == 1 if problem.calls else not any(block.strip() for block in blocks)
        well_formed = len(_THOUGHT.findall(answer)) == 1 and structure
        return np.array([float(well_formed), *score_calls(called, problem.calls)])

    def read(self, record: Mapping[str, Any]) -> ToolProblem:
        if "prompt" in record:
            parts = {message["role"]: message["content"] for message in record["prompt"]}
            system, user, output = parts.get("system", ""), parts["user"], record["reward_model"]["ground_truth"]
        else:
            system, user, output = record["instruction"], record["input"], record["output"]
        block = _CALLS.search(output)
        calls = tuple(read_calls(block[1])) if block else ()
        if block and not calls:
            raise ValueError(f"the tool calls of the reference cannot be read: {block[1]!r}")
        return ToolProblem(_with_own_thoughts(system), _with_own_thoughts(user), calls)

    def synthetic(self, source: random.Random) -> ToolProblem:
        """One or two wanted calls out of three tools, or none."""
        names = source.sample([f"{verb}_{noun}" for verb in _VERBS for noun in _NOUNS], 3)
        tools = {name: source.sample(_KEYS, source.randint(1, 2)) for name in names}
        wanted = source.sample(names, source.choice((0, 1, 1, 2)))
        calls = tuple(Call(name, {key: _value(key, source) for key in tools[name]}) for name in wanted)
        system = "\n".join(f"tool {name} : {' '.join(keys)}" for name, keys in tools.items())
        requests = [
            " ".join(["please", *call.name.split("_"), *(f"{key} {value}" for key, value in call.arguments.items())])
            for call in calls
        ]
        return ToolProblem(system, "\n".join(requests) or "thank you", calls)

    def content(self, problem: ToolProblem) -> str:
        return f"{problem.system}\n{problem.user}"

    def words(self) -> Iterable[str]:
        joined = [f'{{"name": "{verb}_{noun}", "parameters": {{' for verb in _VERBS for noun in _NOUNS]
        names = [f"{verb}_{noun}" for verb in _VERBS for noun in _NOUNS]
        keys = [f'"{key}": ' for key in _KEYS]
        tags = ["<thought>", "</thought>", "<tool_call>", "</tool_call>", "<response>", "</response>", "}}"]
        return [*joined, *names, *keys, *tags, *_VERBS, *_NOUNS, *_KEYS, *_VALUES, "tool", "please", "thank", "you"]

    def facts(self, problem: ToolProblem) -> str:
        return f"{problem.system}\n{problem.user}"

    def instruction(self, problem: ToolProblem) -> str:
        return (
            "An answer is a short thought in <thought></thought>, then the tool calls, if any are needed, in "
            "<tool_call></tool_call>, one JSON object a line with 'name' and 'parameters', then, if there is something "
            "to say, <response></response>."
        )

    def messages(self, problem: ToolProblem, closing: str) -> Messages:
        """The record's own system message, with the form of an answer after it."""
        system = "\n\n".join(part for part in (problem.system, self.instruction(problem)) if part)
        return [{"role": "system", "content": system}, {"role": "user", "content": f"{problem.user}\n\n{closing}"}]

    def solution(self, problem: ToolProblem) -> str:
        return _written(problem.calls)

    def variation(self, problem: ToolProblem, source: random.Random) -> str:
        """A value, an argument or a call wrong; calls where none are wanted."""
        calls = [Call(call.name, dict(call.arguments)) for call in problem.calls]
        if not calls:
            return _written([Call(f"{source.choice(_VERBS)}_{source.choice(_NOUNS)}", {})])
        call = source.choice(calls)
        kind = source.random()
        if call.arguments and kind < 0.6:
            key = source.choice(sorted(call.arguments))
            call.arguments[key] = _value(key, source)
        elif call.arguments and kind < 0.8:
            del call.arguments[source.choice(sorted(call.arguments))]
        else:
            calls[calls.index(call)] = Call(f"{source.choice(_VERBS)}_{source.choice(_NOUNS)}", call.arguments)
        return _written(calls)


def read_calls(block: str) -> list[Call]:
    """The calls of a ``<tool_call>`` block: JSON objects in a row, or a list of them; reading stops at an error.

    Arguments may be named ``parameters`` or ``arguments``; anything but an object there counts as none.
    """
    decoder, position, found = json.JSONDecoder(), 0, []
    text = block.strip()
    while position < len(text):
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        found += value if isinstance(value, list) else [value]
        while position < len(text) and text[position] in " \t\r\n,":
            position += 1
    calls = []
    for value in found:
        if isinstance(value, dict):
            arguments = value.get("parameters", value.get("arguments"))
            calls.append(Call(str(value.get("name", "")), arguments if isinstance(arguments, dict) else {}))
    return calls


def score_calls(called: list[Call], wanted: tuple[Call, ...]) -> tuple[float, float, float]:
    """``tool_name``, ``arg_key`` and ``arg_value``, each in [0, 1]; all 1 where no call is made and none wanted."""
    if not called and not wanted:
        return 1.0, 1.0, 1.0
    names = multiset_f1([normalised(call.name) for call in called], [normalised(call.name) for call in wanted])
    pairs, spare = _aligned(called, wanted)
    keys = values = 0.0
    for gold, call in pairs:
        keys += multiset_f1(call.arguments, gold.arguments)
        shared = [key for key in gold.arguments if key in call.arguments]
        matches = sum(value_match(call.arguments[key], gold.arguments[key]) for key in shared)
        values += matches / len(gold.arguments) if gold.arguments else 1.0
    return names, keys / (len(pairs) + spare), values / (len(pairs) + spare)


def value_match(value: Any, wanted: Any) -> float:
    """How well an argument's value matches, in [0, 1]."""
    if isinstance(wanted, bool) or isinstance(value, bool):
        return float(value is wanted)
    if isinstance(wanted, int | float):
        try:
            return float(abs(float(value) - wanted) < 1e-9)
        except (TypeError, ValueError, OverflowError):
            return 0.0
    if isinstance(wanted, list):
        given = value if isinstance(value, list) else [value]
        return multiset_f1(map(normalised, given), map(normalised, wanted))
    if isinstance(wanted, dict):
        return multiset_f1(value, wanted) if isinstance(value, dict) else 0.0
    if isinstance(wanted, str) and isinstance(value, str):
        return word_f1(value, wanted, articles=True)
    return float(normalised(value, articles=True) == normalised(wanted, articles=True))


def _aligned(called: list[Call], wanted: tuple[Call, ...]) -> tuple[list[tuple[Call, Call]], int]:
    """Pairs of (wanted, made), and how many of either have no partner."""
    left, pairs = list(called), []
    for gold in wanted:
        if not left:
            break
        best = max(left, key=lambda call: (_same_name(call, gold), len(call.arguments.keys() & gold.arguments.keys())))
        left.remove(best)
        pairs.append((gold, best))
    return pairs, len(left) + len(wanted) - len(pairs)


def _same_name(call: Call, gold: Call) -> bool:
    return bool(call.name) and normalised(call.name) == normalised(gold.name)


def _with_own_thoughts(text: str) -> str:
    return text.replace("<think>", "<thought>").replace("</think>", "</thought>")


def _value(key: str, source: random.Random) -> Any:
    return source.randint(1, 9) if key == "count" else source.choice(_VALUES)


def _written(calls: Iterable[Call]) -> str:
    lines = [json.dumps({"name": call.name, "parameters": call.arguments}) for call in calls]
    thought = "<thought></thought>"
    return thought + ("<tool_call>" + "\n".join(lines) + "</tool_call>" if lines else "<response></response>")
