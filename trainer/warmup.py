"""Supervised warm-up: cross-entropy on the completions of a domain's examples."""

from __future__ import annotations

import torch
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from evolve.randomness import generator
from trainer.config import WarmupConfig
from trainer.domains.base import Domain, Example
from trainer.engine import Engine
from trainer.rollout.base import prompt_tokens

_SORTED_BATCHES = 4
"""Examples of so many steps are drawn together and sorted by length, so that a batch holds little padding."""


def tokenize_example(example: Example, tokenizer: PreTrainedTokenizerFast) -> tuple[list[int], list[int]]:
    """Ids of the prompt and of the completion with its end mark."""
    prompt = prompt_tokens(example.prompt, tokenizer)
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


def cross_entropy(model: Qwen3ForCausalLM, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Summed cross-entropy (nats) of the completion tokens."""
    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
    targets = labels[:, 1:]
    chosen = targets != -100
    logits = model.lm_head(hidden[chosen])
    return torch.nn.functional.cross_entropy(logits.float(), targets[chosen], reduction="sum")


class WarmupSteps:
    """Takes supervised steps; ``tokens`` counts the completion tokens learned from."""

    def __init__(self, batches: WarmupBatches, config: WarmupConfig, engine: Engine) -> None:
        self._batches, self._config, self._engine = batches, config, engine
        self.tokens = 0

    def __call__(self, step: int) -> dict[str, float]:
        """Take step ``step``, each process on its slice of the batch."""
        world = self._engine.world
        ids, labels = self._batches(step)
        tokens = int((labels[:, 1:] != -100).sum())
        mine = world.share(len(ids))
        size = self._config.micro_batch or len(mine)
        total = torch.zeros((), dtype=torch.float64)
        for start in range(mine.start, mine.stop, size):
            rows = slice(start, min(start + size, mine.stop))
            part = (ids[rows].to(world.device), labels[rows].to(world.device))
            loss = self._engine.call(cross_entropy, *part)
            self._engine.backward(loss / tokens)
            total += loss.detach().double().cpu()
        norm = self._engine.apply(step)
        self.tokens += tokens
        return {"loss": float(world.total(total)) / tokens, "grad_norm": norm, "tokens": self.tokens}
