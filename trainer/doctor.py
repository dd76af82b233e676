"""``python -m trainer doctor``: would this configuration run here? One line per check, before hours are spent."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from evolve.randomness import generator
from trainer.config import RLConfig, TrainConfig
from trainer.distributed import start_world
from trainer.domains import make_domain
from trainer.lora import target_layers
from trainer.loss import LOGITS_AT_ONCE
from trainer.model import load_tokenizer, new_model
from trainer.rollout.base import prompt_tokens

GIB = 2**30
_PROBLEMS = 16


@dataclass(frozen=True, slots=True)
class Check:
    """One check. ok: ``None`` where it only informs. detail: what was found, and the fix where it failed."""

    name: str
    ok: bool | None
    detail: str


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """Bytes on one device, by what they are for. An estimate: allocators add about a tenth."""

    parts: dict[str, float]

    @property
    def total(self) -> float:
        return sum(self.parts.values())

    def __str__(self) -> str:
        return ", ".join(f"{name} {value / GIB:.2f}" for name, value in self.parts.items()) + f" = {self.gib:.1f} GiB"

    @property
    def gib(self) -> float:
        return self.total / GIB


def memory_budget(
    shape: Any, parameters: int, adapters: int, config: TrainConfig, tokens: int, world: int
) -> MemoryBudget:
    """What training takes on each device.

    shape: the model's configuration. parameters, adapters: numbers of them. tokens: of a prompt and its completion.
    Full fine-tuning keeps weights, gradients and two moments in float32 (16 bytes a parameter) and the reference in the
    precision of the forward pass; adapters keep one frozen model. Activations: with recomputation one hidden state a
    layer and one layer in full (about 16 hidden and 3 intermediate widths a token), without it all layers in full.
    """
    width = 2 if config.hardware.precision == "bfloat16" else 4
    split = world if config.hardware.shard else 1
    rl = config.train if isinstance(config.train, RLConfig) else None
    batch = rl.prompts * rl.rollouts if rl else getattr(config.train, "batch", 1)
    rows = (config.train.micro_batch or batch) * tokens
    layer = width * (16 * shape.hidden_size + 3 * shape.intermediate_size)
    kept = width * shape.hidden_size
    layers = (
        kept * shape.num_hidden_layers + layer if config.hardware.checkpointing else layer * shape.num_hidden_layers
    )
    logits = min(rows * shape.vocab_size, LOGITS_AT_ONCE)
    parts = {"activations": float(rows * layers), "logits": 3.0 * 4 * logits}
    if config.lora is not None:
        parts |= {"frozen model": float(width * parameters), "adapters and optimizer": 16.0 * adapters}
    else:
        parts |= {"model and optimizer": 16.0 * parameters / split}
        if rl and rl.kl:
            parts["reference"] = float(width * parameters) / split
        if config.hardware.shard:
            parts["sampling copy"] = float(width * parameters)
    if rl and rl.sampler.kind == "torch":
        head = getattr(shape, "head_dim", None) or shape.hidden_size // shape.num_attention_heads
        cache = 2 * width * shape.num_hidden_layers * shape.num_key_value_heads * head
        parts["key-value cache"] = float((rl.sampler.batch or batch) * tokens * cache)
    return MemoryBudget(parts)


def diagnose(config: TrainConfig) -> Iterator[Check]:
    """Every check of a configuration, in the order that they depend on each other."""
    yield from _machine(config)
    for check in (_start, _domain, _room, _sampler):
        try:
            yield check(config)
        except Exception as error:  # a doctor reports whatever is wrong
            yield Check(check.__name__.lstrip("_"), False, f"{type(error).__name__}: {error}")


def _machine(config: TrainConfig) -> Iterator[Check]:
    cuda = torch.cuda.is_available()
    wanted = config.hardware.device == "cuda"
    name = torch.cuda.get_device_name() if cuda else "no GPU"
    yield Check("device", cuda or not wanted, f"torch {torch.__version__}, {name}")
    cores = len(os.sched_getaffinity(0))
    many = config.threads <= cores
    yield Check("threads", many, f"{config.threads} of {cores} cores" + ("" if many else ": lower `threads`"))
    if config.hardware.precision == "bfloat16" and not cuda:
        yield Check("precision", None, "bfloat16 is emulated on most CPUs: float32 is faster here")
    folder = next(path for path in [config.output, *config.output.resolve().parents] if path.exists())
    free = shutil.disk_usage(folder).free / GIB
    writable = os.access(folder, os.W_OK)
    yield Check(
        "output", writable and free > 1, f"{config.output}: {free:.1f} GiB free, {'' if writable else 'not '}writable"
    )


def _start(config: TrainConfig) -> Check:
    if config.init is None:
        return Check("start", True, "a new model")
    names = {path.name for path in config.init.glob("*")} if config.init.is_dir() else set()
    if "config.json" not in names:
        return Check("start", False, f"init: {config.init} is no checkpoint folder; train or download it first")
    return Check("start", True, f"{config.init}, {'with' if 'vpo.json' in names else 'without'} vpo.json")


def _domain(config: TrainConfig) -> Check:
    domain = make_domain(config.domain, config.options)

    async def probe() -> str:
        try:
            problem = domain.problem(generator(config.seed, "doctor"), heldout=False)
            judged = await domain.judge(problem, "")
            await domain.ask(problem, 1)
        finally:
            await domain.close()
        if judged.failure:
            raise RuntimeError(f"the judge failed: {judged.failure}")
        return ", ".join(domain.components(problem)[:4])

    return Check("domain", True, f"{config.domain} asks and judges; components {asyncio.run(probe())}, ...")


def _room(config: TrainConfig) -> Check:
    """Whether prompts and answers fit the model's context, and the training the device's memory."""
    shape, parameters, adapters, tokenizer = _shape(config)
    domain = make_domain(config.domain, config.options)
    m = config.train.m if isinstance(config.train, RLConfig) else domain.chain_length
    problems = [domain.problem(generator(config.seed, "doctor", i), heldout=False) for i in range(_PROBLEMS)]

    async def ask() -> list[Any]:
        try:
            return [await domain.ask(problem, m) for problem in problems]
        finally:
            await domain.close()

    longest = max(len(prompt_tokens(prompt, tokenizer)) for prompt in asyncio.run(ask()))
    written = domain.prompt_format(m).max_tokens
    if isinstance(config.train, RLConfig) and config.train.max_tokens:
        written = config.train.max_tokens
    tokens, limit = longest + written, shape.max_position_embeddings
    budget = memory_budget(shape, parameters, adapters, config, tokens, int(os.environ.get("WORLD_SIZE", "1")))
    have = _memory(config)
    detail = (
        f"prompts of {longest} + answers of {written} tokens in {limit}; memory: {budget}, of {have / GIB:.1f} there"
    )
    if tokens > limit:
        return Check("room", False, detail + ": lower `train.max_tokens` or take a model with a longer context")
    fits = budget.total < 0.9 * have
    fix = "" if fits else ": lower `train.micro_batch`, or use `hardware.checkpointing`, `lora` or `hardware.shard`"
    return Check("room", fits, detail + fix)


def _shape(config: TrainConfig) -> tuple[Any, int, int, Any]:
    """The model's configuration, its number of parameters and of adapter parameters, and the tokenizer."""
    with torch.device("meta"):
        if config.init is None:
            tokenizer = make_domain(config.domain, config.options).build_tokenizer()
            assert config.model is not None
            model = new_model(config.model, tokenizer, config.seed)
        else:
            tokenizer = load_tokenizer(config.init)
            model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(config.init))
    adapters = 0
    if config.lora is not None:
        layers = target_layers(model, config.lora).values()
        adapters = sum(config.lora.rank * (layer.in_features + layer.out_features) for layer in layers)
    return model.config, sum(p.numel() for p in model.parameters()), adapters, tokenizer


def _memory(config: TrainConfig) -> float:
    device = start_world(config.hardware).device
    if device.type == "cuda":
        return float(torch.cuda.get_device_properties(device).total_memory)
    available = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable"))
    return 1024.0 * int(available.split()[1])


def _sampler(config: TrainConfig) -> Check:
    if not isinstance(config.train, RLConfig) or config.train.sampler.kind != "vllm":
        return Check("sampler", True, "the trained model itself")
    sampler = config.train.sampler
    names = [one["id"] for one in httpx.get(f"{sampler.endpoint.rstrip('/')}/models", timeout=10).json()["data"]]
    served = sampler.model in names
    return Check(
        "sampler",
        served,
        f"{sampler.endpoint} serves {', '.join(names)}" + ("" if served else f", not {sampler.model}"),
    )
