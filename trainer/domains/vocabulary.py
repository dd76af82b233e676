"""Tokenizers of closed vocabularies, for models made from scratch."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from transformers import PreTrainedTokenizerFast

from evolve.chain import ChainFormat

PAD, EOS, UNKNOWN = "<pad>", "<eos>", "<unk>"
CHARACTERS = ("\n", *(chr(code) for code in range(32, 127)))


def closed_tokenizer(entries: Iterable[str]) -> PreTrainedTokenizerFast:
    """A tokenizer of these entries, the longest that fits first; ids count from padding, end, unknown on.

    A text of entries decodes to itself.
    """
    tokens = [PAD, EOS, UNKNOWN, *dict.fromkeys(entries)]
    pattern = "|".join(re.escape(token) for token in sorted(tokens[3:], key=len, reverse=True))
    tokenizer = Tokenizer(WordLevel({token: i for i, token in enumerate(tokens)}, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = Split(Regex(pattern), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNKNOWN,
        clean_up_tokenization_spaces=False,
        padding_side="left",
    )


def word_tokenizer(words: Iterable[str]) -> PreTrainedTokenizerFast:
    """One token for each word, also with a blank before it, for the answer tags and for each ASCII character."""
    chain = ChainFormat()
    given = [word for word in dict.fromkeys(words) if len(word) > 1]
    return closed_tokenizer([chain.open, chain.close, *given, *(f" {word}" for word in given), *CHARACTERS])
