"""How minicode is written for a compact model: its tokenizer, prompt template and chain format.

One token per digit, per program line and per mark keeps prompts near a hundred tokens, so that a model of about a
million parameters can learn the task on a CPU. Single printable characters are tokens too: any ASCII text can be
encoded, and decoding gives the text back unchanged.
"""

from __future__ import annotations

from transformers import PreTrainedTokenizerFast

from evolve.chain import ChainFormat
from evolve.manifest import PromptFormat
from trainer.domains.minicode.grammar import CONDITIONS, ELSE, FOOTER, HEADER, OPERATIONS, if_line, operation_line
from trainer.domains.vocabulary import CHARACTERS, closed_tokenizer

CHAIN_LENGTH = 3

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


def prompt_format(m: int) -> PromptFormat:
    """Room for m answers of the longest programs in the grammar, and the end mark."""
    return PromptFormat(kind="completion", template=TEMPLATE, max_tokens=14 * m + 2)


def build_tokenizer() -> PreTrainedTokenizerFast:
    """The tokenizer: longest vocabulary entry first, so a known line is always one token."""
    chain = ChainFormat()
    lines = [HEADER, FOOTER, ELSE, *(if_line(condition) for condition in CONDITIONS)]
    lines += [operation_line(operation, depth) for depth in (1, 2) for operation in OPERATIONS]
    marks = [chain.open, chain.close, " ->", *(f" {number}" for number in range(17))]
    return closed_tokenizer([*lines, *marks, *CHARACTERS])
