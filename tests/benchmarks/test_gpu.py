"""The check for a GPU: its arithmetic, and its code on the CPU with a tiny model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.flops import ModelSize, peak_flops
from benchmarks.gpu import figures_of

ROOT = Path(__file__).parents[2]


def check(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.gpu", "--preset", "tiny", "--device", "cpu", "--json", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_training_takes_six_flops_a_parameter_and_token() -> None:
    size = ModelSize(parameters=1_000, attention=10)
    assert size.training(50, 0, frozen=False) == 6 * 1_000 * 50
    assert size.training(50, 0, frozen=True) == 4 * 1_000 * 50
    assert size.forward(50, 0) == 2 * 1_000 * 50
    assert size.training(50, 100, frozen=False) == 3 * size.forward(50, 100)
    assert size.forward(1, 100) - size.forward(1, 0) == 4 * 10 * 100


def test_a_layers_flops_by_hand() -> None:
    """The model of a billion parameters: width 2,048, 16 heads of 128 over 8 of keys and values, 6,144 inside."""
    layer = 2 * 2048 * 2048 + 2 * 2048 * 1024 + 3 * 2048 * 6144
    scores_and_values = 2 * (2 * 16 * 128 * 512)  # a token's products with the keys, and the values, of 512 others
    size = ModelSize(parameters=layer, attention=16 * 128)
    assert layer == 50_331_648
    assert size.forward(1, 512) == 2 * layer + scores_and_values


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H200", 989e12),
        ("NVIDIA H200 NVL", 835e12),
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("NVIDIA H100 PCIe", 756e12),
        ("NVIDIA A100-SXM4-80GB", 312e12),
        ("NVIDIA L4", 121e12),
        ("NVIDIA L40", 181e12),
        ("NVIDIA L400", None),
        ("cpu", None),
    ],
)
def test_peaks_are_found_by_the_devices_name(name: str, peak: float | None) -> None:
    assert peak_flops(name) == peak


def test_utilisation_is_model_flops_over_the_peak() -> None:
    step = {"rows": 4.0, "completion_tokens": 3000.0, "prompt_tokens": 250.0, "prompt_tokens_of_rows": 1000.0}
    took = {"sync": 0.5, "sample": 2.0, "update": 0.5, "grad_norm": 1.0, "mismatch": 0.0}
    rows = [
        {"device": "NVIDIA H200", "multiplied": 10**9, "attention": 0, "shared_prompts": False},
        {"step": 0, **step, **took, "update": 99.0},
        {"step": 1, **step, **took},
        {"identical": False},
    ]
    found = {figure.name: figure.value for figure in figures_of("torch-full", rows)}
    assert found["torch-full_identical"] == 0
    assert found["torch-full_sample_tokens_per_s"] == 1500
    assert found["torch-full_update_tokens_per_s"] == 8000
    assert found["torch-full_step_tokens_per_s"] == 1000
    assert found["torch-full_update_mfu"] == pytest.approx((6 * 4000 + 2 * 3250) * 1e9 / 0.5 / 989e12)
    assert found["torch-full_step_mfu"] == pytest.approx((6 * 4000 + 4 * 3250) * 1e9 / 3 / 989e12)
    assert not figures_of("vllm-full", [])


@pytest.mark.slow
def test_a_tiny_model_goes_through_the_same_code() -> None:
    found = check("--only", "torch-lora", "--seconds", "300")
    figures = {figure["name"]: figure["value"] for figure in found["figures"]}
    assert found["phases"] == {"checkpoint": "whole", "torch-lora": "whole"}
    assert figures["torch-lora_identical"] == 1
    assert figures["torch-lora_step_tokens_per_s"] > 0
    assert not [name for name in figures if name.endswith("mfu")]  # of a CPU no peak is known


def test_it_ends_in_time_with_what_it_has() -> None:
    found = check("--only", "torch-full", "--seconds", "21")
    assert found["phases"] == {"checkpoint": "stopped after 0 steps: out of time"}
    assert found["figures"] == []


@pytest.mark.soak
def test_every_phase_is_bit_stable() -> None:
    found = check()
    figures = {figure["name"]: figure["value"] for figure in found["figures"]}
    phases = ("torch-lora", "torch-full", "vllm-lora", "vllm-full")
    assert found["phases"] == {"checkpoint": "whole"} | dict.fromkeys(phases, "whole")
    assert [figures[f"{name}_identical"] for name in phases] == [1] * 4
