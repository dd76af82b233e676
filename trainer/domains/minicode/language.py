"""How minicode is written for a compact model: its tokenizer, prompt template and chain format.

One token per digit, per program line and per mark keeps prompts near a hundred tokens, so that a model of about a
million parameters can learn the task on a CPU. Single printable characters are tokens too: any ASCII text can be
encoded, and decoding gives the text back unchanged.
"""

from __future__ import annotations

import re

from tokenizers import Regex, Tokenizer, decoders
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from transformers import PreTrainedTokenizerFast

from evolve.chain import ChainFormat
from evolve.manifest import PromptFormat
from trainer.domains.minicode.grammar import CONDITIONS, ELSE, FOOTER, HEADER, OPERATIONS, if_line, operation_line

CHAIN_LENGTH = 3
PAD, EOS, UNKNOWN = "<pad>", "<eos>", "<unk>"

TEMPLATE = """\
{% for test in tests %}
{{ "?" if test.status is none else "+" if test.status == "passed" else "-" }}\
{% for v in test.args[0] %} {{ v }}{% endfor %} ->{% for v in test.expected %} {{ v }}{% endfor %}

{% endfor %}
{% if parent is not none %}
# {{ hidden_failed }}
{{ parent.source }}{% endif %}
= {{ m }}
"""
"""A line per shown test, marked ``?`` (no parent), ``+`` (the parent passes it) or ``-``; then the parent, headed by
the number of hidden tests that it fails; then the number of answers wanted."""


def chain_format(m: int) -> ChainFormat:
    return ChainFormat(m=m)


def prompt_format(m: int) -> PromptFormat:
    """Room for m answers of the longest programs in the grammar, and the end mark."""
    return PromptFormat(kind="completion", template=TEMPLATE, max_tokens=14 * m + 2)


def vocabulary() -> list[str]:
    """All tokens in id order; the first three are padding, end of sequence and unknown."""
    chain = ChainFormat()
    lines = [HEADER, FOOTER, ELSE, *(if_line(condition) for condition in CONDITIONS)]
    lines += [operation_line(operation, depth) for depth in (1, 2) for operation in OPERATIONS]
    marks = [chain.open, chain.close, " ->", *(f" {number}" for number in range(17))]
    characters = ["\n", *(chr(code) for code in range(32, 127))]
    return [PAD, EOS, UNKNOWN, *lines, *marks, *characters]


def build_tokenizer() -> PreTrainedTokenizerFast:
    """The tokenizer: longest vocabulary entry first, so a known line is always one token."""
    tokens = vocabulary()
    words = sorted(tokens[3:], key=len, reverse=True)
    pattern = "|".join(re.escape(word) for word in words)
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
