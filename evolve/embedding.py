"""A program as a point: how its code differs from another program's, without any model.

1. A program is a bag of n-grams (n = 1, 2, 3) of its tokens. A Python program's tokens are the nodes of its syntax tree
   in order, with the names of attributes and built-ins and with constants, so that layout, comments and the names of
   variables do not count; any other text's are its words and signs; those of several files follow each other.
2. A gram that occurs c times weighs 1 + ln c; the bag has Euclidean norm 1.
3. The bag is projected to k numbers by signs that a hash of the gram gives: feature hashing (Weinberger et al. 2009,
   arXiv 0902.2206) straight into a binary random projection (Achlioptas 2003), which keeps distances on average. The
   signs are fixed: the same program has the same point in every run, on every machine.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evolve.files import split_files
from evolve.program import parse_python

MAX_DIMENSIONS = 32
_LONGEST_GRAM = 3
_MAX_TOKENS = 20_000  # bounds what one program costs; the rest of a longer one does not count
_CONSTANT_CHARS = 40
_BUILT_IN = frozenset(dir(builtins))

Floats = NDArray[np.float64]


@lru_cache(maxsize=1_024)
def embedding(source: str) -> Floats:
    """The program's point, shape (MAX_DIMENSIONS,). Treat as read-only: it is shared."""
    counts = Counter(_grams(_tokens(source)))
    weights = np.array([1.0 + math.log(count) for count in counts.values()])
    point = np.zeros(MAX_DIMENSIONS)
    if len(weights):
        signs = np.array([_signs(gram) for gram in counts])
        point = (weights / np.linalg.norm(weights)) @ signs
    point.setflags(write=False)
    return point


def direction(source: str, origin: str, dimensions: int) -> list[float]:
    """How a program's code differs from that of ``origin``: for each dimension a number in (0, 1).

    0.5 everywhere where it does not. Programs that share nothing (distance sqrt 2) spread about evenly over [0, 1], as
    the normal distribution function of a projected difference does; similar ones stay near the middle.
    """
    difference = (embedding(source) - embedding(origin))[:dimensions]
    return [0.5 * (1.0 + math.erf(value / 2.0)) for value in difference.tolist()]


def _signs(gram: str) -> Floats:
    """+1 or -1 for each dimension."""
    digest = hashlib.blake2b(gram.encode("utf-8", "surrogatepass"), digest_size=MAX_DIMENSIONS // 8).digest()
    bits = np.unpackbits(np.frombuffer(digest, dtype=np.uint8))
    return np.where(bits > 0, 1.0, -1.0)


def _grams(tokens: list[str]) -> Iterator[str]:
    for length in range(1, _LONGEST_GRAM + 1):
        for start in range(len(tokens) - length + 1):
            yield "\n".join(tokens[start : start + length])


def _tokens(source: str) -> list[str]:
    files = split_files(source)
    if files is not None:
        return [token for text in files.values() for token in _tokens(text)][:_MAX_TOKENS]
    tree = parse_python(source)
    if tree is None:
        return re.findall(r"\w+|[^\w\s]", source)[:_MAX_TOKENS]
    found: list[str] = []
    waiting: list[ast.AST] = [tree]
    while waiting and len(found) < _MAX_TOKENS:
        node = waiting.pop()
        found.append(_token(node))
        waiting.extend(reversed(list(ast.iter_child_nodes(node))))
    return found


def _token(node: ast.AST) -> str:
    """A node's kind, with what matters of its content."""
    kind = type(node).__name__
    if isinstance(node, ast.Attribute):
        return f"{kind} {node.attr}"
    if isinstance(node, ast.Constant):
        return f"{kind} {repr(node.value)[:_CONSTANT_CHARS]}"
    return f"{kind} {node.id}" if isinstance(node, ast.Name) and node.id in _BUILT_IN else kind
