"""Adapters: what is written is what Hugging Face's peft reads, and what is merged is the same model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from peft import PeftModel

from trainer.config import LoraConfig
from trainer.lora import adapted_layers, add_adapters, lora_off, merged_state, write_adapter
from trainer.model import load_model


@pytest.mark.parametrize(
    "config", [LoraConfig(rank=4), LoraConfig(rank=3, alpha=5.0, targets=("q_proj", "down_proj"))], ids=["all", "two"]
)
def test_peft_loads_what_is_written(base: Path, tmp_path: Path, config: LoraConfig) -> None:
    model = load_model(base)
    ids = torch.arange(24).reshape(2, 12) + 3
    with torch.no_grad():
        before = model(ids).logits
        add_adapters(model, config, seed=0)
        assert torch.equal(model(ids).logits, before)
        for layer in adapted_layers(model).values():
            layer.lora_b += 0.3 * torch.randn(layer.lora_b.shape, generator=torch.Generator().manual_seed(1))
        ours = model(ids).logits
        assert float((ours - before).abs().max()) > 0.05
        with lora_off(model):
            assert torch.equal(model(ids).logits, before)
        write_adapter(tmp_path / "adapter", model, config, str(base))
        adapted = PeftModel.from_pretrained(load_model(base), tmp_path / "adapter")
        torch.testing.assert_close(adapted(ids).logits, ours, atol=1e-5, rtol=0)
        merged = load_model(base)
        merged.load_state_dict(merged_state(model))
        torch.testing.assert_close(adapted(ids).logits, merged(ids).logits, atol=1e-5, rtol=0)
        torch.testing.assert_close(adapted.merge_and_unload()(ids).logits, merged(ids).logits, atol=1e-5, rtol=0)


def test_layers_that_are_not_there_are_an_error(base: Path) -> None:
    with pytest.raises(ValueError, match=r"lora\.targets: no linear layer of the model is named nowhere"):
        add_adapters(load_model(base), LoraConfig(targets=("nowhere",)), seed=0)
