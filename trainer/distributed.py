"""Several processes under torchrun: who computes what, and how parameters and gradients are split or kept equal.

Every process holds the whole plan of a step (prompts, keys, judgements, advantages) and computes on its slice of the
prompts. Losses are divided by the tokens of all processes, so gradients are sums. Either parameters, gradients and
optimizer are sharded (FSDP2, full fine-tuning), or everything is replicated and gradients are summed (adapters).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from trainer.config import HardwareConfig


@dataclass(frozen=True, slots=True)
class World:
    """This process among ``size``; alone unless torchrun started it."""

    rank: int
    size: int
    device: torch.device

    @property
    def main(self) -> bool:
        """Whether this process writes files and reports."""
        return self.rank == 0

    def share(self, count: int) -> range:
        """This process's slice of ``count`` prompts. Raises ``ValueError`` where they cannot be split evenly."""
        if count % self.size:
            raise ValueError(f"{count} prompts cannot be split over {self.size} processes: use a multiple")
        width = count // self.size
        return range(self.rank * width, (self.rank + 1) * width)

    def gather(self, value: Any) -> list[Any]:
        """The (picklable) values of all processes in the order of their ranks."""
        if self.size == 1:
            return [value]
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, value)
        return found

    def total(self, values: torch.Tensor) -> torch.Tensor:
        """The sum over all processes, the same in each."""
        if self.size > 1:
            values = values.to(self.device)
            dist.all_reduce(values)
        return values

    def wait(self) -> None:
        """Until every process is here."""
        if self.size > 1:
            dist.barrier()


def start_world(hardware: HardwareConfig) -> World:
    """Join the process group that torchrun's environment names; alone without one."""
    size, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    use_cuda = torch.cuda.is_available() if hardware.device == "auto" else hardware.device == "cuda"
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if use_cuda else torch.device("cpu")
    if use_cuda:
        torch.cuda.set_device(device)
    if size > 1 and not dist.is_initialized():
        dist.init_process_group("nccl" if use_cuda else "gloo")
    return World(rank, size, device)


class Root(torch.nn.Module):
    """The root of a sharded model: runs any function of the model inside FSDP's hooks."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, function: Callable[..., Any], *args: Any) -> Any:
        """``function(model, *args)`` with the parameters gathered as they are needed."""
        return function(self.model, *args)


def shard(model: torch.nn.Module, hardware: HardwareConfig, world: World) -> Root:
    """Split every decoder layer over the processes, and the rest of the model too."""
    root = Root(model)
    mesh = torch.distributed.device_mesh.init_device_mesh(world.device.type, (world.size,))
    dtype = torch.bfloat16 if hardware.precision == "bfloat16" else None
    policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32)
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(root, mesh=mesh, mp_policy=policy)
    return root


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor in full, gathered from all processes where it is sharded (then all must ask)."""
    tensor = tensor.detach()
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def placed_like(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A full tensor split, typed and placed as ``like`` is."""
    moved = tensor.to(device=like.device, dtype=like.dtype)
    return distribute_tensor(moved, like.device_mesh, like.placements) if isinstance(like, DTensor) else moved


def sum_gradients(model: torch.nn.Module, world: World) -> None:
    """Make the gradients of replicated parameters the sums over all processes."""
    if world.size > 1:
        for parameter in model.parameters():
            if parameter.grad is not None and not isinstance(parameter.grad, DTensor):
                dist.all_reduce(parameter.grad)
