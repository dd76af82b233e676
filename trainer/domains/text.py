"""How texts are compared: normalised, by words, by exact match; and F1 over multisets."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Hashable, Iterable

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised(text: object, *, articles: bool = False, underscores: bool = True) -> str:
    """Lower case, without punctuation and repeated blanks (as SQuAD does).

    articles: keep "a", "an" and "the". underscores: they separate words (names as Wikipedia writes them), else they
    are punctuation.
    """
    words = str(text).replace("_", " ") if underscores else str(text)
    words = words.lower()
    words = words if articles else _ARTICLES.sub(" ", words)
    return " ".join(words.translate(_NO_PUNCTUATION).split())


def multiset_f1(found: Iterable[Hashable], wanted: Iterable[Hashable]) -> float:
    """Harmonic mean of precision and recall over multisets, in [0, 1]; 1 where both are empty."""
    got, gold = Counter(iter(found)), Counter(iter(wanted))  # a mapping counts by its keys
    if not got and not gold:
        return 1.0
    overlap = sum((got & gold).values())
    return 2 * overlap / (got.total() + gold.total())


def word_f1(found: object, wanted: object, *, articles: bool = False, underscores: bool = False) -> float:
    """F1 over the words of the normalised texts."""
    options = {"articles": articles, "underscores": underscores}
    return multiset_f1(normalised(found, **options).split(), normalised(wanted, **options).split())
