"""AdamW with a learning-rate schedule that depends on the step alone (so a resumed run needs no scheduler state)."""

from __future__ import annotations

import math

import torch

from trainer.config import OptimizerConfig
from trainer.distributed import placed_like, whole


def make_optimizer(model: torch.nn.Module, config: OptimizerConfig) -> torch.optim.AdamW:
    """AdamW over the parameters that are trained; weight decay on matrices only."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=config.lr, betas=config.betas)


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
    return float(whole(norm))


def training_tensors(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, dict[str, torch.Tensor]]:
    """Trained parameters and their moments by name, in full and on the CPU (a collective where they are sharded).

    Frozen parameters are those of the run's initial checkpoint and are not kept. The format does not know how many
    processes there are, so a run can go on with another number.
    """
    tensors: dict[str, dict[str, torch.Tensor]] = {"model": {}, "optimizer": {}}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            tensors["model"][name] = whole(parameter).cpu()
            for key, value in optimizer.state.get(parameter, {}).items():
                tensors["optimizer"][f"{name}:{key}"] = whole(value).cpu()
    return tensors


def load_training_tensors(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, dict[str, torch.Tensor]]
) -> None:
    """Restore what :func:`training_tensors` gave. Raises ``ValueError`` where the parameters are others."""
    trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    if trained.keys() != tensors["model"].keys():
        odd = sorted(trained.keys() ^ tensors["model"].keys())[:3]
        raise ValueError(f"the saved state is of another model or `lora` setting (differs in {', '.join(odd)})")
    moments: dict[str, dict[str, torch.Tensor]] = {}
    for key, value in tensors["optimizer"].items():
        name, _, moment = key.rpartition(":")
        moments.setdefault(name, {})[moment] = value
    with torch.no_grad():
        for name, parameter in trained.items():
            parameter.copy_(placed_like(tensors["model"][name], parameter))
            for moment, value in moments.get(name, {}).items():
                placed = value.clone() if value.ndim == 0 else placed_like(value, parameter)
                optimizer.state[parameter][moment] = placed
