"""Supervised warm-up: cross-entropy on the completions of a domain's examples."""

from __future__ import annotations

from collections.abc import Callable

import torch
from transformers import PreTrainedTokenizerFast

from evolve.randomness import generator
from trainer.config import WarmupConfig
from trainer.domains.base import Domain, Example

_SORTED_BATCHES = 4
"""Examples of so many steps are drawn together and sorted by length, so that a batch holds little padding."""


def tokenize_example(example: Example, tokenizer: PreTrainedTokenizerFast) -> tuple[list[int], list[int]]:
    """Ids of the prompt and of the completion with its end mark."""
    prompt = tokenizer(example.prompt, add_special_tokens=False)["input_ids"]
    completion = tokenizer(example.completion, add_special_tokens=False)["input_ids"]
    return prompt, [*completion, tokenizer.eos_token_id]


def collate(pairs: list[tuple[list[int], list[int]]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Right-padded ids and labels, shape (batch, length); labels are -100 outside of completions."""
    length = max(len(prompt) + len(completion) for prompt, completion in pairs)
    ids = torch.full((len(pairs), length), pad)
    labels = torch.full((len(pairs), length), -100)
    for row, (prompt, completion) in enumerate(pairs):
        end = len(prompt) + len(completion)
        ids[row, :end] = torch.tensor(prompt + completion)
        labels[row, len(prompt) : end] = torch.tensor(completion)
    return ids, labels


class WarmupBatches:
    """The batches of a warm-up run; batch ``step`` depends on (seed, step) alone."""

    def __init__(self, domain: Domain, tokenizer: PreTrainedTokenizerFast, config: WarmupConfig, seed: int) -> None:
        self._domain, self._tokenizer, self._config, self._seed = domain, tokenizer, config, seed
        self._block = -1
        self._batches: list[list[tuple[list[int], list[int]]]] = []

    def __call__(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        block, position = divmod(step, _SORTED_BATCHES)
        if block != self._block:
            self._block, self._batches = block, self._draw(block)
        return collate(self._batches[position], self._tokenizer.pad_token_id)

    def _draw(self, block: int) -> list[list[tuple[list[int], list[int]]]]:
        rng = generator(self._seed, block, "warmup")
        count = self._config.batch * _SORTED_BATCHES
        chains = rng.random(count) < self._config.chain_share
        sizes = [self._domain.chain_length if chain else 1 for chain in chains]
        pairs = [tokenize_example(self._domain.example(rng, m), self._tokenizer) for m in sizes]
        pairs.sort(key=lambda pair: len(pair[0]) + len(pair[1]))
        batches = [pairs[i : i + self._config.batch] for i in range(0, count, self._config.batch)]
        rng.shuffle(batches)
        return batches


def warmup_loss(model: Callable[..., torch.Tensor], ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy (nats) over the completion tokens."""
    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
    targets = labels[:, 1:]
    chosen = targets != -100
    logits = model.lm_head(hidden[chosen])
    return torch.nn.functional.cross_entropy(logits, targets[chosen])
