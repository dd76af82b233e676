"""Counting the tokens of a prompt: with the model's own tokenizer, or by an estimate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

CountTokens = Callable[[str], int]

BYTES_PER_TOKEN = 3
MESSAGE_TOKENS = 8
"""What a chat template adds around one message, generously."""


def estimate_tokens(text: str) -> int:
    """A cautious estimate without a tokenizer: one token for every three bytes of UTF-8, rounded up.

    Byte-pair tokenizers need one for every 3 to 4.5 bytes of English or code; text in other scripts is counted by its
    bytes. A tokenizer of single characters needs more: give its ``tokenizer.json`` to :func:`tokenizer_counter`.
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def tokenizer_counter(path: Path) -> CountTokens:
    """A counter from a checkpoint folder or its ``tokenizer.json``. Raises ``ValueError`` where that cannot be read."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise ValueError("counting with a model's tokenizer needs the package tokenizers: pip install it") from None
    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises plain Exception
        raise ValueError(f"{file} is no tokenizer: {error}") from None

    def count(text: str) -> int:
        return len(tokenizer.encode(text).ids)

    return count
