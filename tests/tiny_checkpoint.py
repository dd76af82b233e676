"""A randomly initialised Qwen3 of about a million parameters: everything about it is real but what it says."""

from __future__ import annotations

import string
from pathlib import Path

from evolve.chain import ChainFormat
from evolve.manifest import Manifest, PromptFormat, write_manifest

PAD, EOS = "<pad>", "<eos>"
CONTEXT = 256


def write_tiny_checkpoint(folder: Path, *, name: str = "tiny", m: int = 3) -> Path:
    """Write the checkpoint, its character tokenizer and its manifest (completions, chains of ``m``) into ``folder``."""
    import torch
    from tokenizers import Regex, Tokenizer, decoders
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    tokens = [PAD, EOS, "<answer>", "</answer>", *string.printable]
    tokenizer = Tokenizer(WordLevel({token: i for i, token in enumerate(tokens)}, unk_token=PAD))
    tokenizer.pre_tokenizer = Split(Regex(r"</?answer>|[\s\S]"), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=PAD, eos_token=EOS).save_pretrained(folder)
    config = Qwen3Config(
        vocab_size=128,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=False,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        Qwen3ForCausalLM(config).save_pretrained(folder)
    manifest = Manifest(
        name=name,
        domain="tiny",
        estimator="none",
        seed=0,
        chain=ChainFormat(m=m),
        prompt=PromptFormat(kind="completion", template="{{ statement[:60] }}\n= {{ m }}\n", max_tokens=48),
        context_length=CONTEXT,
    )
    write_manifest(folder, manifest)
    return folder
