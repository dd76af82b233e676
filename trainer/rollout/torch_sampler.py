"""Sampling with the trainer's own model: the prompt is prefilled once per group, then all rollouts decode in a batch.

Every draw is keyed by the caller's keys, one per rollout: the same key gives the same uniform numbers whatever else is
in the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import DynamicCache, PreTrainedTokenizerFast, Qwen3ForCausalLM

from evolve.randomness import generator

Key = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Rollouts:
    """Generations for P prompts, G each, at most T tokens.

    prompt_ids, prompt_mask: shape (P, L), left-padded. ids, mask: shape (P * G, T); the mask covers the end mark.
    texts: decoded completions without the end mark, length P * G. finished: whether the end mark was written.
    """

    prompt_ids: torch.Tensor
    prompt_mask: torch.Tensor
    ids: torch.Tensor
    mask: torch.Tensor
    texts: list[str]
    finished: list[bool]

    @property
    def group(self) -> int:
        return self.ids.shape[0] // self.prompt_ids.shape[0]


def encode_prompts(prompts: Sequence[str], tokenizer: PreTrainedTokenizerFast) -> tuple[torch.Tensor, torch.Tensor]:
    """Left-padded ids and mask, shape (P, L)."""
    batch = tokenizer(list(prompts), return_tensors="pt", padding=True, add_special_tokens=False)
    return batch["input_ids"], batch["attention_mask"]


@torch.no_grad()
def sample(
    model: Qwen3ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    prompts: Sequence[str],
    keys: Sequence[Sequence[Key]],
    *,
    max_tokens: int,
    temperature: float = 1.0,
) -> Rollouts:
    """Sample ``len(keys[p])`` completions for each prompt; every prompt must have equally many keys."""
    group = len(keys[0])
    prompt_ids, prompt_mask = encode_prompts(prompts, tokenizer)
    flat = [key for prompt_keys in keys for key in prompt_keys]
    uniforms = torch.from_numpy(np.stack([generator(*key).random(max_tokens) for key in flat]))
    last, cache = prefill(model, prompt_ids, prompt_mask, group)
    logits = model.lm_head(last).repeat_interleave(group, dim=0)
    mask = prompt_mask.repeat_interleave(group, dim=0)
    positions = mask.sum(dim=1)
    alive = torch.ones(len(flat), dtype=torch.bool)
    tokens = torch.full((len(flat), max_tokens), tokenizer.pad_token_id)
    for step in range(max_tokens):
        tokens[:, step] = torch.where(alive, _draw(logits, uniforms[:, step], temperature), tokenizer.pad_token_id)
        alive = alive & (tokens[:, step] != tokenizer.eos_token_id)
        if step + 1 == max_tokens or not alive.any():
            break
        mask = torch.cat([mask, mask.new_ones(len(flat), 1)], dim=1)
        output = model.model(
            input_ids=tokens[:, step : step + 1],
            attention_mask=mask,
            position_ids=(positions + step)[:, None],
            past_key_values=cache,
        )
        logits = model.lm_head(output.last_hidden_state[:, -1])
    return _finish(prompt_ids, prompt_mask, tokens, tokenizer)


def prefill(
    model: Qwen3ForCausalLM, ids: torch.Tensor, mask: torch.Tensor, group: int
) -> tuple[torch.Tensor, DynamicCache]:
    """Last hidden state of each prompt, shape (P, H), and the key-value cache repeated ``group`` times."""
    cache = DynamicCache()
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    output = model.model(input_ids=ids, attention_mask=mask, position_ids=positions, past_key_values=cache)
    cache.batch_repeat_interleave(group)
    return output.last_hidden_state[:, -1], cache


def _draw(logits: torch.Tensor, uniforms: torch.Tensor, temperature: float) -> torch.Tensor:
    """Inverse-CDF sampling, shape (B,); float64 so that the last token is never out of reach."""
    cumulative = torch.softmax(logits.double() / temperature, dim=-1).cumsum(dim=-1)
    draws = torch.searchsorted(cumulative, (uniforms * cumulative[:, -1])[:, None], right=True)
    return draws[:, 0].clamp(max=logits.shape[-1] - 1)


def _finish(
    prompt_ids: torch.Tensor, prompt_mask: torch.Tensor, tokens: torch.Tensor, tokenizer: PreTrainedTokenizerFast
) -> Rollouts:
    ended = tokens == tokenizer.eos_token_id
    lengths = torch.where(ended.any(dim=1), ended.int().argmax(dim=1) + 1, tokens.shape[1])
    width = int(lengths.max())
    mask = torch.arange(width)[None] < lengths[:, None]
    texts = tokenizer.batch_decode(
        [row[: int(n) - int(end)] for row, n, end in zip(tokens.tolist(), lengths, ended.any(dim=1), strict=True)]
    )
    return Rollouts(prompt_ids, prompt_mask, tokens[:, :width], mask, texts, ended.any(dim=1).tolist())
