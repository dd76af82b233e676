"""Low-rank adapters (LoRA, Hu et al. 2021, arXiv 2106.09685), in place: W x + (alpha / rank) B A x.

A small module of our own, since nothing else of an adapter library is needed: the adapted layer keeps its name and
weight, ``lora_off`` gives the frozen reference, and adapters are written in the format of Hugging Face's peft, which
vLLM loads. B starts at zero, so an adapted model starts as the base model exactly.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors.torch import save_file

from evolve.randomness import derived_seed
from trainer.config import LoraConfig

ADAPTER_CONFIG = "adapter_config.json"


class LoraLinear(torch.nn.Linear):
    """A linear layer with an adapter; made from an existing layer by :func:`add_adapters`."""

    lora_a: torch.nn.Parameter
    lora_b: torch.nn.Parameter
    scale: float
    active: bool

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        base = torch.nn.functional.linear(states, self.weight, self.bias)
        if not self.active:
            return base
        low = torch.nn.functional.linear(states.to(self.lora_a.dtype), self.lora_a)
        return base + (self.scale * torch.nn.functional.linear(low, self.lora_b)).to(base.dtype)

    def delta(self) -> torch.Tensor:
        """What the adapter adds to the weight, in float32."""
        return self.scale * (self.lora_b.detach().float() @ self.lora_a.detach().float())


def add_adapters(model: torch.nn.Module, config: LoraConfig, seed: int) -> list[str]:
    """Freeze the model and give every matching linear layer an adapter in float32; returns the layers' names.

    Raises ``ValueError`` where no layer matches.
    """
    model.requires_grad_(False)
    layers = target_layers(model, config)
    for name, layer in layers.items():
        _adapt(layer, config, derived_seed(seed, "lora", name))
    return list(layers)


def target_layers(model: torch.nn.Module, config: LoraConfig) -> dict[str, torch.nn.Linear]:
    """The linear layers that get adapters, by name. Raises ``ValueError`` where no layer matches."""
    layers = {
        name: layer
        for name, layer in model.named_modules()
        if isinstance(layer, torch.nn.Linear) and name.split(".")[-1] in config.targets
    }
    if not layers:
        raise ValueError(f"lora.targets: no linear layer of the model is named {', '.join(config.targets)}")
    return layers


def _adapt(layer: torch.nn.Linear, config: LoraConfig, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    bound = layer.in_features**-0.5
    down = (torch.rand(config.rank, layer.in_features, generator=rng) * 2 - 1) * bound
    layer.__class__ = LoraLinear
    layer.lora_a = torch.nn.Parameter(down.to(layer.weight.device))
    layer.lora_b = torch.nn.Parameter(torch.zeros(layer.out_features, config.rank, device=layer.weight.device))
    layer.scale, layer.active = config.alpha / config.rank, True


def adapted_layers(model: torch.nn.Module) -> dict[str, LoraLinear]:
    """The layers with adapters by name."""
    return {name: layer for name, layer in model.named_modules() if isinstance(layer, LoraLinear)}


@contextmanager
def lora_off(model: torch.nn.Module) -> Iterator[None]:
    """The base model, without its adapters, for as long as the block runs."""
    layers = adapted_layers(model).values()
    for layer in layers:
        layer.active = False
    try:
        yield
    finally:
        for layer in layers:
            layer.active = True


def merged_state(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The model's weights with the adapters added in, under the names of the base model."""
    state = {name: value for name, value in model.state_dict().items() if ".lora_" not in name}
    for name, layer in adapted_layers(model).items():
        state[f"{name}.weight"] = (layer.weight.detach().float() + layer.delta()).to(layer.weight.dtype)
    return state


def write_adapter(folder: Path, model: torch.nn.Module, config: LoraConfig, base: str) -> None:
    """Write the adapters as a peft folder (``adapter_config.json``, ``adapter_model.safetensors``)."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for name, layer in adapted_layers(model).items():
        tensors[f"base_model.model.{name}.lora_A.weight"] = layer.lora_a.detach().float().cpu().contiguous()
        tensors[f"base_model.model.{name}.lora_B.weight"] = layer.lora_b.detach().float().cpu().contiguous()
    save_file(tensors, folder / "adapter_model.safetensors")
    document = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": config.rank,
        "lora_alpha": config.alpha,
        "target_modules": list(config.targets),
        "lora_dropout": 0.0,
        "bias": "none",
        "inference_mode": True,
    }
    (folder / ADAPTER_CONFIG).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
