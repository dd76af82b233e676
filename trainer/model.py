"""Models made from scratch, and loading of checkpoints."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from transformers.utils.logging import disable_progress_bar

from trainer.config import ModelConfig

disable_progress_bar()  # reading and writing weights would draw over the run's own progress


def new_model(config: ModelConfig, tokenizer: PreTrainedTokenizerFast, seed: int) -> Qwen3ForCausalLM:
    """A randomly initialised Qwen3 model in float32; the same seed gives the same weights.

    Embeddings are untied: a server that reloads tied weights in place serves wrong ones.
    """
    torch.manual_seed(seed)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=config.hidden,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.kv_heads,
            head_dim=config.head_dim,
            intermediate_size=config.intermediate,
            max_position_embeddings=config.context_length,
            tie_word_embeddings=False,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            bos_token_id=None,
        )
    )


def load_model(checkpoint: Path) -> Qwen3ForCausalLM:
    """A checkpoint's model in float32, whatever precision it was saved in."""
    return AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32)


def load_tokenizer(checkpoint: Path) -> PreTrainedTokenizerFast:
    """A checkpoint's tokenizer; one without a padding token pads with its end mark."""
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    tokenizer.padding_side = "left"
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer
