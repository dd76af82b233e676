"""The sampler that a configuration asks for."""

from __future__ import annotations

from transformers import PreTrainedTokenizerFast

from trainer.config import TorchSamplerConfig, TrainConfig, VllmSamplerConfig
from trainer.engine import Engine
from trainer.rollout.base import Sampler
from trainer.rollout.torch_sampler import TorchSampler
from trainer.rollout.vllm_sampler import VllmSampler


def make_sampler(
    config: TorchSamplerConfig | VllmSamplerConfig,
    engine: Engine,
    tokenizer: PreTrainedTokenizerFast,
    training: TrainConfig,
) -> Sampler:
    """A sampler for the engine's model, with its weights as they are now."""
    if isinstance(config, TorchSamplerConfig):
        return TorchSampler(engine.sampling_model(), tokenizer, batch=config.batch)
    return VllmSampler(config, tokenizer, engine, training)
