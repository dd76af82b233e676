"""The policy loss: PPO-clip with a token mean, and a k3 KL term to a frozen reference."""

from __future__ import annotations

import torch
from transformers import Qwen3ForCausalLM

from trainer.rollout.torch_sampler import Rollouts, prefill


def log_probabilities(model: Qwen3ForCausalLM, rollouts: Rollouts) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability (nats) of every generated token and the entropy there; both shape (P * G, T).

    Gradients flow through the prompts' shared keys and values, so each prompt is computed once for its group.
    """
    last, cache = prefill(model, rollouts.prompt_ids, rollouts.prompt_mask, rollouts.group)
    prompt_mask = rollouts.prompt_mask.repeat_interleave(rollouts.group, dim=0)
    inputs = rollouts.ids[:, :-1]
    hidden = last.repeat_interleave(rollouts.group, dim=0)[:, None]
    if inputs.shape[1]:
        positions = prompt_mask.sum(dim=1, keepdim=True) + torch.arange(inputs.shape[1])[None]
        output = model.model(
            input_ids=inputs,
            attention_mask=torch.cat([prompt_mask, rollouts.mask[:, :-1].to(prompt_mask.dtype)], dim=1),
            position_ids=positions,
            past_key_values=cache,
        )
        hidden = torch.cat([hidden, output.last_hidden_state], dim=1)
    logs = torch.log_softmax(model.lm_head(hidden), dim=-1)
    chosen = logs.gather(-1, rollouts.ids[..., None])[..., 0]
    return chosen, -(logs.exp() * logs).sum(dim=-1)


def k3(log_policy: torch.Tensor, log_reference: torch.Tensor) -> torch.Tensor:
    """Schulman's k3 estimate of KL(policy || reference) per token: exp(q - p) - (q - p) - 1; never negative."""
    difference = log_reference - log_policy
    return torch.exp(difference) - difference - 1


def policy_loss(
    log_policy: torch.Tensor,
    log_old: torch.Tensor,
    advantages: torch.Tensor,
    mask: torch.Tensor,
    clip: float,
) -> torch.Tensor:
    """PPO-clip, averaged over all masked tokens. Log-probabilities and mask (B, T), advantages (B,)."""
    ratio = torch.exp(log_policy - log_old)
    gain = advantages[:, None]
    objective = torch.minimum(ratio * gain, ratio.clamp(1 - clip, 1 + clip) * gain)
    return -masked_mean(objective, mask)


def masked_mean(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean of (B, T) values where the mask is true."""
    return (values * mask).sum() / mask.sum()
