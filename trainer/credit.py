"""Which advantage each token of a chain gets: the one of the answer that it may still influence.

With A_j the advantage of answer j, a token written after j answers were complete gets A_j: it belongs to answer j or to
the reasoning before it. What follows the last answer (the end mark) gets that of the last place. An estimator that
gives all answers of a rollout the same advantage therefore gives it to every token.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast

from evolve.chain import Answer
from trainer.rollout.base import Rollouts


def token_places(
    rollouts: Rollouts, answers: Sequence[Sequence[Answer]], m: int, tokenizer: PreTrainedTokenizerFast
) -> torch.Tensor:
    """The place in [0, m) of the answer that each token gets its advantage from, shape (B, T)."""
    places = torch.zeros(rollouts.ids.shape, dtype=torch.long)
    lengths = rollouts.mask.sum(dim=1).tolist()
    for row, found in enumerate(answers):
        if m == 1 or not found:
            continue
        ids = rollouts.ids[row, : lengths[row]].tolist()
        for answer in found:
            done = _tokens_until(ids, answer.end, tokenizer)
            places[row, done:] = min(answer.index + 1, m - 1)
    return places


def _tokens_until(ids: list[int], end: int, tokenizer: PreTrainedTokenizerFast) -> int:
    """The smallest number of tokens whose text has ``end`` characters: a search, since decoding is not additive."""
    sizes = range(len(ids) + 1)
    return bisect_left(sizes, end, key=lambda size: len(tokenizer.decode(ids[:size])))


def spread(advantages: np.ndarray, places: torch.Tensor) -> torch.Tensor:
    """Advantages (P, G, m) to tokens, shape (B, T), by the places of :func:`token_places`."""
    rows = torch.from_numpy(np.ascontiguousarray(advantages.reshape(-1, advantages.shape[-1]))).float()
    return rows.gather(1, places)
