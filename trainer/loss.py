"""The policy loss: PPO-clip with a token mean, and a k3 KL term to a frozen reference.

Everything is a sum over tokens that the caller divides by the number of tokens of the whole optimizer step, so the
value does not depend on how the step is split into micro-batches or over processes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.utils.checkpoint import checkpoint
from transformers import Qwen3ForCausalLM

from trainer.rollout.base import Rollouts
from trainer.rollout.torch_sampler import prefill

LOGITS_AT_ONCE = 2**26
"""Larger tables of logits (tokens x vocabulary) are made in pieces and made again in the backward pass."""


def log_probabilities(
    model: Qwen3ForCausalLM, rollouts: Rollouts, temperature: float = 1.0, shared: bool = True
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability (nats) of every generated token at ``temperature`` and the entropy there; both shape (B, T).

    Zero where the mask is false. shared: gradients flow through the prompts' keys and values, so each prompt is
    computed once for its group; without it every row is one sequence, as recomputing activations needs. The entropy
    has no gradient.
    """
    chosen = rollouts.mask
    hidden = (_hidden if shared else _hidden_of_sequences)(model, rollouts)[chosen]
    logs, entropies = _token_statistics(model.lm_head, hidden, rollouts.ids[chosen], temperature)
    empty = torch.zeros(rollouts.ids.shape, device=logs.device, dtype=logs.dtype)
    return empty.masked_scatter(chosen, logs), empty.masked_scatter(chosen, entropies)


def _hidden(model: Qwen3ForCausalLM, rollouts: Rollouts) -> torch.Tensor:
    """Hidden state from which each generated token was drawn, shape (B, T, H)."""
    last, cache = prefill(model, rollouts.prompt_ids, rollouts.prompt_mask, rollouts.owner)
    hidden = last.index_select(0, rollouts.owner)[:, None]
    inputs = rollouts.ids[:, :-1]
    if not inputs.shape[1]:
        return hidden
    prompt_mask = rollouts.prompt_mask[rollouts.owner]
    steps = torch.arange(inputs.shape[1], device=inputs.device)[None]
    output = model.model(
        input_ids=inputs,
        attention_mask=torch.cat([prompt_mask, rollouts.mask[:, :-1].to(prompt_mask.dtype)], dim=1),
        position_ids=prompt_mask.sum(dim=1, keepdim=True) + steps,
        past_key_values=cache,
        use_cache=True,
    )
    return torch.cat([hidden, output.last_hidden_state], dim=1)


def _hidden_of_sequences(model: Qwen3ForCausalLM, rollouts: Rollouts) -> torch.Tensor:
    """The same without a cache: prompt and completion of a row are one sequence."""
    prompt_mask = rollouts.prompt_mask[rollouts.owner]
    mask = torch.cat([prompt_mask, rollouts.mask[:, :-1].to(prompt_mask.dtype)], dim=1)
    output = model.model(
        input_ids=torch.cat([rollouts.prompt_ids[rollouts.owner], rollouts.ids[:, :-1]], dim=1),
        attention_mask=mask,
        position_ids=(mask.cumsum(dim=1) - 1).clamp(min=0),
        use_cache=False,
    )
    return output.last_hidden_state[:, prompt_mask.shape[1] - 1 :]


def _token_statistics(
    head: Callable[[torch.Tensor], torch.Tensor], hidden: torch.Tensor, ids: torch.Tensor, temperature: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability and entropy of N tokens from hidden states (N, H)."""

    def piece(states: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits = head(states)
        logits = (logits.float() if logits.dtype in (torch.bfloat16, torch.float16) else logits) / temperature
        normaliser = torch.logsumexp(logits, dim=-1)
        with torch.no_grad():
            chances = torch.exp(logits - normaliser[:, None])
            entropy = normaliser - (chances * logits).sum(dim=-1)
        return logits.gather(-1, tokens[:, None])[:, 0] - normaliser, entropy

    size = max(1, LOGITS_AT_ONCE // head.out_features)
    if len(ids) <= size:
        return piece(hidden, ids)
    parts = [
        checkpoint(piece, states, tokens, use_reentrant=False)
        for states, tokens in zip(hidden.split(size), ids.split(size), strict=True)
    ]
    logs, entropies = zip(*parts, strict=True)
    return torch.cat(logs), torch.cat(entropies)


def k3(log_policy: torch.Tensor, log_reference: torch.Tensor) -> torch.Tensor:
    """Schulman's k3 estimate of KL(policy || reference) per token: exp(q - p) - (q - p) - 1; never negative."""
    difference = log_reference - log_policy
    return torch.exp(difference) - difference - 1


@dataclass(frozen=True, slots=True)
class ClipRange:
    """PPO's trust region of the ratio: [1 - low, 1 + high]."""

    low: float
    high: float


def policy_objective(
    log_policy: torch.Tensor, log_old: torch.Tensor, advantages: torch.Tensor, clip: ClipRange
) -> tuple[torch.Tensor, torch.Tensor]:
    """PPO-clip's objective per token, to be maximised, and where clipping took its gradient; all shapes (B, T)."""
    ratio = torch.exp(log_policy - log_old)
    free, held = ratio * advantages, ratio.clamp(1 - clip.low, 1 + clip.high) * advantages
    return torch.minimum(free, held), held < free


def truncated_importance(log_policy: torch.Tensor, log_sampler: torch.Tensor, cap: float) -> torch.Tensor:
    """Weights min(pi / mu, cap) per token where the sampler's mu is not exactly the policy pi it samples for.

    A server computes the same weights' probabilities with other kernels and precision; the truncated ratio corrects the
    gradient's expectation at a bounded variance (Yao et al. 2025, "Your efficient RL framework secretly brings you
    off-policy RL training"). Shapes (B, T); no gradient.
    """
    return torch.exp(log_policy.detach() - log_sampler).clamp(max=cap)
