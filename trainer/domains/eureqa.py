"""EUREQA: a chain of masked entities that must be resolved backwards, after the paper (arXiv 2605.22817).

Components: ``entity_A`` (the answer of the question) to ``entity_E``, each 1 where the name given for that entity is
the right one, normalised as Wikipedia names (blanks for underscores, no case, articles or punctuation). The task scalar
is their mean.

Files: records with ``question`` (a list of sentences), ``entity_masks`` and ``entities`` (six each; the last one is
shown), as published. An answer is one line per entity, ``A: Robert_Rodriguez``. Synthetic problems tell the facts that
a pretrained model would know.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainer.domains.text import normalised
from trainer.domains.textual import TextDomain

LETTERS = "ABCDE"
COMPONENTS = tuple(f"entity_{letter}" for letter in LETTERS)
_LINE = re.compile(r"^\s*([A-E])\s*:(.*)$", re.MULTILINE)
_ENTITIES = tuple(
    a + b
    for a in ("Al", "Bri", "Cas", "Dor", "Eng", "Fal", "Gri", "Hes", "Iv", "Jor")
    for b in ("an", "bury", "dale", "fort", "mere", "stad", "thorpe", "ville")
)
_RELATIONS = ("borders", "founded", "admires", "supplies", "succeeded", "opposes", "sponsors", "mapped")
_DISTRACTORS = 6


@dataclass(frozen=True, slots=True)
class Narrative:
    """sentences: with masks such as "Person A". masks, entities: shape (5,), in the order of A to E."""

    sentences: tuple[str, ...]
    masks: tuple[str, ...]
    entities: tuple[str, ...]


class EureqaDomain(TextDomain[Narrative]):
    name = "eureqa"
    answer_tokens = (20, 96)
    samples = (
        "A: Robert_Rodriguez\nB: Desperado_(film)\nC: Salma_Hayek\nD: Coatzacoalcos\nE: Veracruz",
        "A: Guillermo_del_Toro\nB: Cronos_(film)\nC: Ron_Perlman\nD: New_York_City\nE: Hudson_River",
    )

    def components(self, problem: Narrative) -> tuple[str, ...]:
        return COMPONENTS

    def rewards(self, problem: Narrative, answer: str) -> np.ndarray:
        given = {letter: normalised(name) for letter, name in reversed(_LINE.findall(answer))}
        wanted = {letter: normalised(name) for letter, name in zip(LETTERS, problem.entities, strict=True)}
        return np.array([float(bool(given.get(letter)) and given[letter] == wanted[letter]) for letter in LETTERS])

    def read(self, record: Mapping[str, Any]) -> Narrative:
        masks, entities, hidden = record["entity_masks"], record["entities"], len(LETTERS)
        if min(len(masks), len(entities)) <= hidden:
            raise ValueError(f"needs {hidden + 1} entity_masks and entities, not {len(masks)} and {len(entities)}")
        return Narrative(tuple(record["question"]), tuple(masks[:hidden]), tuple(entities[:hidden]))

    def synthetic(self, source: random.Random) -> Narrative:
        """Facts in random order, then the chain from A to the entity that is shown."""
        names = source.sample(_ENTITIES, len(LETTERS) + 1 + _DISTRACTORS)
        chain, others = names[: len(LETTERS) + 1], names[len(LETTERS) + 1 :]
        relations = [source.choice(_RELATIONS) for _ in LETTERS]
        facts = [f"{chain[i]} {relations[i]} {chain[i + 1]} ." for i in range(len(LETTERS))]
        unambiguous = {(relations[i], chain[i + 1]) for i in range(len(LETTERS))}
        for other in others:
            relation, target = source.choice(_RELATIONS), source.choice(names)
            if (relation, target) not in unambiguous and target != other:
                unambiguous.add((relation, target))
                facts.append(f"{other} {relation} {target} .")
        source.shuffle(facts)
        shown = [*(f"Entity {letter}" for letter in LETTERS), chain[-1]]
        story = [f"{shown[i]} {relations[i]} {shown[i + 1]} ." for i in range(len(LETTERS))]
        return Narrative((*facts, *story), tuple(shown[:-1]), tuple(chain[:-1]))

    def content(self, problem: Narrative) -> str:
        return "\n".join((*sorted(problem.sentences), *problem.entities))

    def words(self) -> Iterable[str]:
        return [*_ENTITIES, *_RELATIONS, "Entity", ".", *(f"{letter}:" for letter in LETTERS)]

    def facts(self, problem: Narrative) -> str:
        return "\n".join(problem.sentences)

    def instruction(self, problem: Narrative) -> str:
        masks = ", ".join(f"{letter} for {mask}" for letter, mask in zip(LETTERS, problem.masks, strict=True))
        return (
            "In the narrative below entities are hidden behind masks and linked by relations; one is named at the end. "
            "Work backwards and find the others. An answer has five lines, a letter and a name as Wikipedia writes it, "
            f"such as 'A: Robert_Rodriguez' ({masks}). The answer to the question is A."
        )

    def solution(self, problem: Narrative) -> str:
        return _written(problem.entities)

    def variation(self, problem: Narrative, source: random.Random) -> str:
        """One to three names exchanged for others of the narrative."""
        names = list(problem.entities)
        pool = sorted({word for s in problem.sentences for word in s.split() if word[:1].isupper()} - {"Entity"})
        for place in source.sample(range(len(names)), source.randint(1, 3)):
            names[place] = source.choice(pool or names)
        return _written(names)


def _written(names: Iterable[str]) -> str:
    return "\n".join(f"{letter}: {name}" for letter, name in zip(LETTERS, names, strict=True))
