"""Components that rise together: where vector rewards should not help (DESIGN.md section 6, weakness 4).

A prompt gives digits, an answer should give them in ascending order. Its quality q is the share of places with the
right digit (0 for another length), and the components are q to the powers 2/3, 4/5, 1, 5/4 and 3/2: different numbers,
but every weighting ranks answers as q does, and the set score of a chain is that of its best answer.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainer.domains.textual import TextDomain

POWERS = {"lenient": 2 / 3, "mild": 4 / 5, "plain": 1.0, "strict": 5 / 4, "severe": 3 / 2}
_LENGTHS = (5, 8)


@dataclass(frozen=True, slots=True)
class Digits:
    given: tuple[int, ...]

    @property
    def sorted(self) -> tuple[int, ...]:
        return tuple(sorted(self.given))


class CollinearDomain(TextDomain[Digits]):
    name = "collinear"
    answer_tokens = (2 * _LENGTHS[1], 48)
    reasoning_tokens = 64
    samples = ("0 2 2 7", "0 2 7 2")

    def components(self, problem: Digits) -> tuple[str, ...]:
        return tuple(POWERS)

    def rewards(self, problem: Digits, answer: str) -> np.ndarray:
        words, wanted = answer.split(), problem.sorted
        right = sum(word == str(digit) for word, digit in zip(words, wanted, strict=False))
        quality = right / len(wanted) if len(words) == len(wanted) else 0.0
        return np.array([quality**power for power in POWERS.values()])

    def read(self, record: Mapping[str, Any]) -> Digits:
        """Records have ``digits``, a list of numbers from 0 to 9."""
        digits = tuple(int(digit) for digit in record["digits"])
        if not digits or not all(0 <= digit <= 9 for digit in digits):
            raise ValueError("digits must be numbers from 0 to 9")
        return Digits(digits)

    def synthetic(self, source: random.Random) -> Digits:
        return Digits(tuple(source.choices(range(10), k=source.randint(*_LENGTHS))))

    def content(self, problem: Digits) -> str:
        """Every order of the same digits is on the same side."""
        return str(problem.sorted)

    def words(self) -> Iterable[str]:
        return (f" {digit}" for digit in range(10))

    def facts(self, problem: Digits) -> str:
        return " ".join(map(str, problem.given))

    def instruction(self, problem: Digits) -> str:
        return "Put the digits below in ascending order. An answer is the digits with blanks between them."

    def solution(self, problem: Digits) -> str:
        return " ".join(map(str, problem.sorted))

    def variation(self, problem: Digits, source: random.Random) -> str:
        """Some places exchanged."""
        digits = list(problem.sorted)
        for _ in range(source.randint(1, 3)):
            a, b = source.sample(range(len(digits)), 2)
            digits[a], digits[b] = digits[b], digits[a]
        return " ".join(map(str, digits))
