"""Model FLOPs of training and sampling, and what devices can do at most.

The usual count (Kaplan et al. 2020, arXiv 2001.08361; PaLM, Chowdhery et al. 2022, arXiv 2204.02311, appendix B): two
FLOPs for each multiplication by a weight that is not an embedding, and 4 layers x heads x head size x context for each
token's attention scores and values, in a forward pass; the backward pass takes twice as many, or once as many where the
weights are frozen (adapters; their own are left out). Recomputed activations count once: it is model FLOPs, not
hardware FLOPs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PEAK_BF16_TFLOPS = {
    "GB200": 2500.0,
    "B200": 2250.0,
    "GH200": 989.0,
    "H200 NVL": 835.0,
    "H200": 989.0,
    "H100 NVL": 835.0,
    "H100 PCIe": 756.0,
    "H100": 989.0,
    "A100": 312.0,
    "L40S": 362.0,
    "L40": 181.0,
    "L4": 121.0,
}
"""Dense bfloat16 matrix products by words of the device's name, from the vendor's data sheets; first match counts."""


def peak_flops(device: str) -> float | None:
    """FLOPs per second of a device at most, ``None`` where its name is not in the table."""
    found = (peak for words, peak in PEAK_BF16_TFLOPS.items() if re.search(rf"\b{words}\b", device))
    return next((1e12 * peak for peak in found), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSize:
    """parameters: without embeddings, with the output layer. attention: layers x heads x head size."""

    parameters: int
    attention: int

    def forward(self, tokens: float, context: float) -> float:
        """FLOPs of a forward pass over so many tokens that each attend to a mean of ``context`` tokens."""
        return tokens * (2.0 * self.parameters + 4.0 * self.attention * context)

    def training(self, tokens: float, context: float, *, frozen: bool) -> float:
        """FLOPs of forward and backward: 6 N D and attention; ``frozen``: adapters, 4 N D."""
        return (2.0 if frozen else 3.0) * tokens * 2.0 * self.parameters + 3.0 * tokens * 4.0 * self.attention * context
