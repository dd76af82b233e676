"""Sampling with the trainer's own model: the prompt is prefilled once per group, then all rollouts decode in a batch.

Every draw is keyed by the caller's keys, one per rollout: the same key gives the same uniform numbers whatever else is
in the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from transformers import DynamicCache, PreTrainedTokenizerFast, Qwen3ForCausalLM

from evolve.randomness import generator
from trainer.domains.base import Prompt
from trainer.rollout.base import Key, Rollouts, owners, pad_prompts, prompt_tokens

_COMPACT = 0.5
"""Rows that have ended are dropped from the batch when no more than this share of it is still being written."""


class TorchSampler:
    """A :class:`trainer.rollout.base.Sampler` by the trained model itself, in ``batch`` rows at a time (0: all)."""

    def __init__(self, model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, *, batch: int = 0) -> None:
        self._model, self._tokenizer, self._batch = model, tokenizer, batch

    def sample(
        self, prompts: Sequence[Prompt], keys: Sequence[Sequence[Key]], *, max_tokens: int, temperature: float = 1.0
    ) -> Rollouts:
        """See :func:`sample`."""
        return sample(
            self._model,
            self._tokenizer,
            prompts,
            keys,
            max_tokens=max_tokens,
            temperature=temperature,
            batch=self._batch,
        )

    def sync(self, model: torch.nn.Module, step: int) -> None:
        """Nothing to do: the model in use is the trained one."""


@torch.no_grad()
def sample(
    model: Qwen3ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    prompts: Sequence[Prompt],
    keys: Sequence[Sequence[Key]],
    *,
    max_tokens: int,
    temperature: float = 1.0,
    batch: int = 0,
) -> Rollouts:
    """Sample ``len(keys[p])`` completions for each prompt, at most ``batch`` rows at a time (0: all at once)."""
    group = len(keys[0])
    if any(len(prompt_keys) != group for prompt_keys in keys):
        raise ValueError(f"every prompt must have equally many keys, not {sorted({len(k) for k in keys})}")
    ids, mask = pad_prompts([prompt_tokens(prompt, tokenizer) for prompt in prompts], tokenizer.pad_token_id)
    owner = owners(len(prompts), group)
    flat = [key for prompt_keys in keys for key in prompt_keys]
    uniforms = torch.from_numpy(np.stack([generator(*key).random(max_tokens) for key in flat]))
    width = batch or len(flat)
    parts = []
    for start in range(0, len(flat), width):
        rows = slice(start, start + width)
        used, local = torch.unique(owner[rows], return_inverse=True)
        parts.append(_decode(model, tokenizer, ids[used], mask[used], local, uniforms[rows], temperature))
    return _finish(ids, mask, owner, torch.cat(parts), tokenizer)


def _decode(
    model: Qwen3ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    prompt_ids: torch.Tensor,
    prompt_mask: torch.Tensor,
    owner: torch.Tensor,
    uniforms: torch.Tensor,
    temperature: float,
) -> torch.Tensor:
    """Token ids of each row, shape (B, max_tokens), padded after the end mark; on the CPU."""
    device = model.device
    rows, max_tokens = uniforms.shape
    owner = owner.to(device)
    last, cache = prefill(model, prompt_ids.to(device), prompt_mask.to(device), owner)
    logits = model.lm_head(last[owner])
    mask = prompt_mask.to(device)[owner]
    positions = mask.sum(dim=1)
    alive = torch.arange(rows, device=device)  # the rows still being written; the batch holds these alone
    ended = torch.zeros(rows, dtype=torch.bool, device=device)
    tokens = torch.full((rows, max_tokens), tokenizer.pad_token_id)
    for step in range(max_tokens):
        drawn = _draw(logits, uniforms[alive.cpu(), step].to(device), temperature)
        drawn = torch.where(ended, tokenizer.pad_token_id, drawn)
        tokens[alive.cpu(), step] = drawn.cpu()
        ended = ended | (drawn == tokenizer.eos_token_id)
        going = int((~ended).sum())
        if step + 1 == max_tokens or not going:
            break
        if going <= _COMPACT * len(ended):
            kept = torch.nonzero(~ended)[:, 0]
            select_cache(cache, kept)
            alive, drawn, mask, positions, ended = (t[kept] for t in (alive, drawn, mask, positions, ended))
        mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)
        output = model.model(
            input_ids=drawn[:, None],
            attention_mask=mask,
            position_ids=(positions + step)[:, None],
            past_key_values=cache,
        )
        logits = model.lm_head(output.last_hidden_state[:, -1])
    return tokens


def prefill(
    model: Qwen3ForCausalLM, ids: torch.Tensor, mask: torch.Tensor, owner: torch.Tensor
) -> tuple[torch.Tensor, DynamicCache]:
    """Last hidden state of each prompt, shape (P, H), and the key-value cache of each row's prompt, B rows."""
    cache = DynamicCache()
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    output = model.model(
        input_ids=ids, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True
    )
    select_cache(cache, owner)
    return output.last_hidden_state[:, -1], cache


def select_cache(cache: DynamicCache, rows: torch.Tensor) -> None:
    """Keep these rows of a cache (they may repeat); gradients flow through."""
    for layer in cache.layers:
        layer.keys, layer.values = layer.keys.index_select(0, rows), layer.values.index_select(0, rows)


def _draw(logits: torch.Tensor, uniforms: torch.Tensor, temperature: float) -> torch.Tensor:
    """Inverse-CDF sampling, shape (B,); float64 so that the last token is never out of reach."""
    cumulative = torch.softmax(logits.double() / temperature, dim=-1).cumsum(dim=-1)
    draws = torch.searchsorted(cumulative, (uniforms * cumulative[:, -1])[:, None], right=True)
    return draws[:, 0].clamp(max=logits.shape[-1] - 1)


def _finish(
    prompt_ids: torch.Tensor,
    prompt_mask: torch.Tensor,
    owner: torch.Tensor,
    tokens: torch.Tensor,
    tokenizer: PreTrainedTokenizerFast,
) -> Rollouts:
    ended = tokens == tokenizer.eos_token_id
    finished = ended.any(dim=1)
    lengths = torch.where(finished, ended.int().argmax(dim=1) + 1, tokens.shape[1])
    width = int(lengths.max())
    mask = torch.arange(width)[None] < lengths[:, None]
    texts = tokenizer.batch_decode(
        [row[: int(n) - int(end)] for row, n, end in zip(tokens.tolist(), lengths, finished, strict=True)]
    )
    return Rollouts(prompt_ids, prompt_mask, owner, tokens[:, :width], mask, texts, finished.tolist())
