"""The model in training on its hardware: forward and backward passes, reference, optimizer step, weights for others."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from transformers import Qwen3ForCausalLM

from trainer.config import OptimizerConfig, TrainConfig
from trainer.distributed import World, shard, sum_gradients, whole
from trainer.lora import add_adapters, lora_off, merged_state
from trainer.loss import log_probabilities
from trainer.optimizer import apply_gradients, load_training_tensors, make_optimizer, training_tensors
from trainer.rollout.base import Rollouts


class Engine:
    """Owns the trained model. ``reference``: keep the initial model for a KL term (under LoRA it costs nothing)."""

    def __init__(self, model: Qwen3ForCausalLM, config: TrainConfig, world: World, *, reference: bool) -> None:
        self.world, self._hardware = world, config.hardware
        self._optimizer_config: OptimizerConfig = config.train.optimizer
        self._steps, self._lora = config.train.steps, config.lora
        low = torch.bfloat16 if self._hardware.precision == "bfloat16" else torch.float32
        if config.lora is not None:
            model.to(low)
            add_adapters(model, config.lora, config.seed)
        model.to(world.device)
        if self._hardware.checkpointing:
            model.gradient_checkpointing_enable({"use_reentrant": False})
        self.model = model
        self._reference = self._frozen_copy(low) if reference and config.lora is None else None
        self._replica = self._frozen_copy(low) if self._hardware.shard else None
        self._call, self._call_reference = self._callers()
        self.optimizer = make_optimizer(model, self._optimizer_config)

    def _frozen_copy(self, dtype: torch.dtype) -> Qwen3ForCausalLM:
        """The model as it is now; it never trains."""
        return copy.deepcopy(self.model).to(dtype).requires_grad_(False).eval()

    def _callers(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """How functions of the model and of the reference are run: plainly, or inside FSDP's hooks."""
        if not self._hardware.shard:
            return (lambda f, *a: f(self.model, *a)), (lambda f, *a: f(self._reference, *a))
        reference = shard(self._reference, self._hardware, self.world) if self._reference is not None else None
        return shard(self.model, self._hardware, self.world), lambda f, *a: reference(f, *a)

    def _autocast(self) -> torch.autocast:
        low = self._hardware.precision == "bfloat16" and not self._hardware.shard
        return torch.autocast(self.world.device.type, dtype=torch.bfloat16, enabled=low)

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """``function(model, *args)`` in the configured precision, with gradients."""
        self.model.train()
        with self._autocast():
            return self._call(function, *args)

    def log_probabilities(self, rollouts: Rollouts, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
        """See :func:`trainer.loss.log_probabilities`; the rollouts must be on the engine's device."""
        return self.call(log_probabilities, rollouts, temperature, not self._hardware.checkpointing)

    @torch.no_grad()
    def reference_log_probabilities(self, rollouts: Rollouts, temperature: float) -> torch.Tensor:
        """Of the initial model, shape (B, T), without gradients."""
        with self._autocast():
            if self._lora is not None:
                self.model.eval()  # recomputing activations, while training, leaves out the prompts' keys and values
                with lora_off(self.model):
                    return log_probabilities(self.model, rollouts, temperature)[0]
            return self._call_reference(log_probabilities, rollouts, temperature)[0]

    def backward(self, loss: torch.Tensor) -> None:
        """Add to the gradients those of this process's part of a loss that is a sum over processes."""
        (loss * self.world.size if self._hardware.shard else loss).backward()  # FSDP takes the mean

    def apply(self, step: int) -> float:
        """One optimizer step from the gradients so far; returns their norm over all processes before clipping."""
        sum_gradients(self.model, self.world)
        return apply_gradients(self.model, self.optimizer, self._optimizer_config, step, self._steps)

    @torch.no_grad()
    def sampling_model(self) -> Qwen3ForCausalLM:
        """A model with the current weights that this process can run alone (where sharded: all must ask)."""
        if self._replica is None:
            return self.model.eval()
        for (_, source), (_, target) in zip(
            self.model.named_parameters(), self._replica.named_parameters(), strict=True
        ):
            target.copy_(whole(source))
        return self._replica

    def weights(self) -> dict[str, torch.Tensor]:
        """The weights as they are served, adapters merged, in full (where sharded: all must ask)."""
        state = merged_state(self.model) if self._lora is not None else self.model.state_dict()
        return {name: whole(value) for name, value in state.items()}

    def tensors(self) -> dict[str, dict[str, torch.Tensor]]:
        """What a resume needs; see :func:`trainer.optimizer.training_tensors`."""
        return training_tensors(self.model, self.optimizer)

    def load(self, tensors: dict[str, dict[str, torch.Tensor]]) -> None:
        """Restore what :meth:`tensors` gave."""
        load_training_tensors(self.model, self.optimizer, tensors)
