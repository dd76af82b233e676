"""MuSiQue: multi-hop questions over paragraphs, after the paper (arXiv 2605.22817) and its released reward.

Components: ``hop_1`` ... ``hop_4`` (the answer cites the paragraph that supports this step of the decomposition; 1
where the question has fewer steps) and ``answer_f1`` (word F1 with the best of the answer and its aliases, normalised
as SQuAD does). Only the first four distinct citations count. An answer without an answer text earns nothing, whatever
it cites. The task scalar weights ``answer_f1`` by 3 and each hop by 1.

Files: MuSiQue-Ans as published (JSON lines with ``paragraphs``, ``question_decomposition``, ``answer``, ...). An answer
is written in two lines, ``support: 3, 7`` and ``answer: ...``: tags inside our answer tags would be ambiguous.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainer.domains.text import word_f1
from trainer.domains.textual import TextDomain

MAX_HOPS = 4
COMPONENTS = (*(f"hop_{i}" for i in range(1, MAX_HOPS + 1)), "answer_f1")
_ANSWER_WEIGHT = 3
_SUPPORT = re.compile(r"^\s*support\s*:(.*)$", re.IGNORECASE | re.MULTILINE)
_ANSWER = re.compile(r"^\s*answer\s*:(.*)$", re.IGNORECASE | re.MULTILINE)
_NAMES = tuple(
    a + b
    for a in ("Bel", "Cor", "Dan", "Fer", "Gal", "Hol", "Jas", "Kel", "Lor", "Mar", "Nor", "Pel")
    for b in ("ba", "den", "go", "lim", "mo", "ris", "ta", "wyn")
)
_RELATIONS = ("mother", "teacher", "rival", "heir", "doctor", "neighbour", "guide", "patron")
_PARAGRAPHS = 10


@dataclass(frozen=True, slots=True)
class Question:
    """paragraphs: texts by index. support: the paragraph of each hop. answers: the answer, then its aliases."""

    text: str
    paragraphs: tuple[str, ...]
    support: tuple[int, ...]
    answers: tuple[str, ...]


class MusiqueDomain(TextDomain[Question]):
    name = "musique"
    answer_tokens = (16, 64)
    samples = ("support: 3, 7\nanswer: Ada Lovelace", "support: 3, 12\nanswer: 1843")

    def components(self, problem: Question) -> tuple[str, ...]:
        return COMPONENTS

    def weights(self, problem: Question) -> np.ndarray:
        weights = np.ones(len(COMPONENTS))
        weights[-1] = _ANSWER_WEIGHT
        return weights / weights.sum()

    def rewards(self, problem: Question, answer: str) -> np.ndarray:
        cited, text = read_answer(answer)
        if not text:
            return np.zeros(len(COMPONENTS))
        counted = set(list(dict.fromkeys(cited))[:MAX_HOPS])
        hops = [float(index in counted) for index in problem.support[:MAX_HOPS]]
        hops += [1.0] * (MAX_HOPS - len(hops))
        return np.array([*hops, max(word_f1(text, gold) for gold in problem.answers)])

    def read(self, record: Mapping[str, Any]) -> Question | None:
        if not record.get("answerable", True):
            return None
        paragraphs = sorted(record["paragraphs"], key=lambda paragraph: paragraph["idx"])
        if [paragraph["idx"] for paragraph in paragraphs] != list(range(len(paragraphs))):
            raise ValueError("paragraphs must be numbered from 0 by idx")
        return Question(
            text=record["question"],
            paragraphs=tuple(f"{p['title']}: {p['paragraph_text']}" for p in paragraphs),
            support=tuple(int(step["paragraph_support_idx"]) for step in record["question_decomposition"]),
            answers=(record["answer"], *(record.get("answer_aliases") or ())),
        )

    def synthetic(self, source: random.Random) -> Question:
        """A chain of two to four relations among paragraphs that state one relation each."""
        hops = source.randint(2, MAX_HOPS)
        people = source.sample(_NAMES, _PARAGRAPHS + 1)
        relations = source.choices(_RELATIONS, k=hops)
        facts = [(people[i], relations[i], people[i + 1]) for i in range(hops)]
        used = {(person, relation) for person, relation, _ in facts}
        while len(facts) < _PARAGRAPHS:
            person, relation, other = source.choice(people), source.choice(_RELATIONS), source.choice(people)
            if (person, relation) not in used and person != other:
                used.add((person, relation))
                facts.append((person, relation, other))
        order = source.sample(range(_PARAGRAPHS), _PARAGRAPHS)
        paragraphs = [""] * _PARAGRAPHS
        for place, (person, relation, other) in zip(order, facts, strict=True):
            paragraphs[place] = f"the {relation} of {person} is {other} ."
        question = "who is" + "".join(f" the {relation} of" for relation in reversed(relations)) + f" {people[0]} ?"
        return Question(question, tuple(paragraphs), tuple(order[:hops]), (people[hops],))

    def content(self, problem: Question) -> str:
        return f"{problem.text}\n{problem.answers[0]}"

    def words(self) -> Iterable[str]:
        return [*_NAMES, *_RELATIONS, "who", "is", "the", "of", ".", "?", "support:", "answer:", ","]

    def facts(self, problem: Question) -> str:
        lines = [f"[{i}] {paragraph}" for i, paragraph in enumerate(problem.paragraphs)]
        return "\n".join([*lines, problem.text])

    def instruction(self, problem: Question) -> str:
        return (
            "Answer the question at the end from the numbered paragraphs. It takes several steps, each supported by "
            "one paragraph. An answer has two lines: 'support:' with the numbers of the supporting paragraphs, at most "
            "four and separated by commas, and 'answer:' with as few words as possible."
        )

    def solution(self, problem: Question) -> str:
        return _written(problem.support, problem.answers[0])

    def variation(self, problem: Question, source: random.Random) -> str:
        """One citation replaced, and half of the time another answer."""
        support = list(problem.support)
        support[source.randrange(len(support))] = source.randrange(len(problem.paragraphs))
        word = source.choice(source.choice(problem.paragraphs).split())
        return _written(tuple(support), word if source.random() < 0.5 else problem.answers[0])


def read_answer(text: str) -> tuple[list[int], str]:
    """The cited paragraphs in order and the answer text; empty where they are missing."""
    support, answer = _SUPPORT.search(text), _ANSWER.search(text)
    numbers = re.findall(r"\d{1,6}", support[1]) if support else []
    return [int(number) for number in numbers], answer[1].strip() if answer else ""


def _written(support: tuple[int, ...], answer: str) -> str:
    return f"support: {', '.join(map(str, support))}\nanswer: {answer}"
