"""AdamW with a learning-rate schedule that depends on the step alone (so a resumed run needs no scheduler state)."""

from __future__ import annotations

import math

import torch

from trainer.config import OptimizerConfig


def make_optimizer(model: torch.nn.Module, config: OptimizerConfig) -> torch.optim.AdamW:
    """AdamW; weight decay on matrices only."""
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=config.lr, betas=config.betas)


def learning_rate(config: OptimizerConfig, step: int, steps: int) -> float:
    """The rate at a step in [0, steps)."""
    if step < config.warmup:
        return config.lr * (step + 1) / config.warmup
    if config.schedule == "constant":
        return config.lr
    progress = (step - config.warmup) / max(1, steps - config.warmup)
    return config.lr * (0.1 + 0.45 * (1 + math.cos(math.pi * progress)))


def apply_gradients(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, config: OptimizerConfig, step: int, steps: int
) -> float:
    """Clip, step, and clear the gradients; returns the gradient's norm before clipping."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(config, step, steps)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), config.grad_clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return float(norm)
