"""From a step's rollouts and advantages to optimizer steps: epochs, minibatches, micro-batches.

A loss is a sum over tokens divided by the minibatch's tokens over all processes, so how rows are split into
micro-batches or over processes changes memory and speed, but not the gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from evolve.randomness import generator
from trainer.config import RLConfig
from trainer.engine import Engine
from trainer.loss import ClipRange, k3, policy_objective, truncated_importance
from trainer.rollout.base import Rollouts

_SUMS = ("tokens", "kl", "entropy", "clipped", "truncated", "mismatch")


@dataclass(frozen=True, slots=True)
class Batch:
    """This process's part of a step. rollouts: of its prompts. advantages, mask: shape (B, T).

    mask: the tokens that count; those of rollouts that could not be judged do not. group: rows of a prompt.
    """

    rollouts: Rollouts
    advantages: torch.Tensor
    mask: torch.Tensor
    group: int


def update(engine: Engine, batch: Batch, config: RLConfig, key: tuple[int, int]) -> dict[str, float]:
    """Train on a batch; ``key`` = (seed, step) decides the minibatches. Returns means over all tokens and passes."""
    several = config.epochs * config.minibatches > 1
    old = reference = None
    if several:
        old = _in_pieces(engine, batch, config, lambda part: engine.log_probabilities(part, config.temperature)[0])
    if config.kl:
        reference = _in_pieces(
            engine, batch, config, lambda part: engine.reference_log_probabilities(part, config.temperature)
        )
    sums = torch.zeros(len(_SUMS), dtype=torch.float64)
    norms = []
    for rows in _minibatches(batch, config, key):
        tokens = float(engine.world.total(batch.mask[rows].sum().double()))
        if not tokens:
            continue
        for micro in _micro_batches(rows, config.micro_batch):
            sums += _accumulate(engine, batch, micro, config, old, reference, tokens)
        norms.append(engine.apply(key[1]))
    return _report(engine.world.total(sums).cpu(), norms)


def _minibatches(batch: Batch, config: RLConfig, key: tuple[int, int]) -> Iterator[list[int]]:
    """Rows of each optimizer step, ascending; whole groups, in an order drawn for each epoch."""
    prompts = len(batch.rollouts) // batch.group
    if prompts % config.minibatches:
        raise ValueError(f"{prompts} prompts of a process cannot be split into {config.minibatches} minibatches")
    size = prompts // config.minibatches
    for epoch in range(config.epochs):
        order = generator(*key, epoch, "minibatches").permutation(prompts)
        for start in range(0, prompts, size):
            chosen = sorted(order[start : start + size].tolist())
            yield [row for p in chosen for row in range(p * batch.group, (p + 1) * batch.group)]


def _micro_batches(rows: Sequence[int], size: int) -> Iterator[list[int]]:
    """Rows in pieces of ``size`` (0: in one piece), ascending."""
    step = size or len(rows)
    return (list(rows[start : start + step]) for start in range(0, len(rows), step))


def _accumulate(
    engine: Engine,
    batch: Batch,
    rows: list[int],
    config: RLConfig,
    old: torch.Tensor | None,
    reference: torch.Tensor | None,
    tokens: float,
) -> torch.Tensor:
    """Add the gradients of one micro-batch; returns the sums of :data:`_SUMS` over its tokens."""
    part = batch.rollouts.select(rows).to(engine.world.device)
    cut = (rows, slice(0, part.ids.shape[1]))
    mask, advantages = (t[cut].to(part.ids.device) for t in (batch.mask, batch.advantages))
    policy, entropy = engine.log_probabilities(part, config.temperature)
    log_old = policy.detach() if old is None else old[cut].to(policy.device)
    gain, clipped = policy_objective(policy, log_old, advantages, _clip(config))
    gap = torch.zeros_like(policy) if part.log_sampler is None else log_old - part.log_sampler
    if part.log_sampler is not None:
        gain = gain * truncated_importance(log_old, part.log_sampler, _cap(config))
    kl = torch.zeros_like(policy) if reference is None else k3(policy, reference[cut].to(policy.device))
    engine.backward(((config.kl * kl - gain) * mask).sum() / tokens)
    figures = (torch.ones_like(policy), kl, entropy, clipped, gap > _log_cap(config), gap.abs())
    return torch.stack([(figure.detach() * mask).sum().double() for figure in figures]).cpu()


def _clip(config: RLConfig) -> ClipRange:
    return ClipRange(config.clip, config.clip if config.clip_high is None else config.clip_high)


def _cap(config: RLConfig) -> float:
    return config.sampler.cap if config.sampler.kind == "vllm" else float("inf")


def _log_cap(config: RLConfig) -> float:
    return float(torch.log(torch.tensor(_cap(config))))


@torch.no_grad()
def _in_pieces(
    engine: Engine, batch: Batch, config: RLConfig, logs: Callable[[Rollouts], torch.Tensor]
) -> torch.Tensor:
    """``logs`` of all rows, shape (B, T) on the CPU, by micro-batches and without gradients."""
    found = torch.zeros(batch.mask.shape)
    for rows in _micro_batches(range(len(batch.rollouts)), config.micro_batch):
        part = batch.rollouts.select(rows).to(engine.world.device)
        found[rows, : part.ids.shape[1]] = logs(part).cpu()
    return found


def _report(sums: torch.Tensor, norms: list[float]) -> dict[str, float]:
    totals = dict(zip(_SUMS, sums.tolist(), strict=True))
    tokens = max(totals.pop("tokens"), 1.0)
    return {
        **{name: value / tokens for name, value in totals.items()},
        "grad_norm": sum(norms) / max(len(norms), 1),
        "optimizer_steps": float(len(norms)),
    }
