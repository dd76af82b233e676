"""Checkpoints: the served model folder, and the training state that a resume needs.

Both are written to a temporary folder next to their place and renamed, so a crash never leaves a half-written one.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from evolve.manifest import Manifest, write_manifest


@contextmanager
def _replacing(folder: Path) -> Iterator[Path]:
    """A temporary folder that takes the place of ``folder`` when the block succeeds."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.with_name(f".{folder.name}.writing")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    yield temporary
    for path in temporary.rglob("*"):
        if path.is_file():
            path.chmod(0o644)  # safetensors writes files that only their owner can read
            _sync(path)
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    temporary.rename(folder)
    _sync(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def save_model(folder: Path, model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, manifest: Manifest) -> None:
    """Write a Hugging Face folder in bfloat16 safetensors with ``vpo.json``."""
    with _replacing(folder) as temporary:
        served = Qwen3ForCausalLM(model.config)
        served.load_state_dict(model.state_dict())
        served.to(torch.bfloat16).save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
        write_manifest(temporary, manifest)


@dataclass(frozen=True, slots=True)
class TrainingState:
    """step: steps done. extra: the loop's own JSON state."""

    step: int
    extra: dict[str, Any]


def save_state(
    folder: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, step: int, extra: dict[str, Any]
) -> None:
    """Write everything a bit-identical resume needs."""
    with _replacing(folder) as temporary:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, temporary / "tensors.pt")
        (temporary / "state.json").write_text(json.dumps({"step": step, "extra": extra}), encoding="utf-8")


def load_state(folder: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> TrainingState | None:
    """Restore a saved state into model and optimizer; ``None`` where there is none."""
    old = folder.with_name(f".{folder.name}.old")
    source = folder if folder.exists() else old if old.exists() else None
    if source is None:
        return None
    tensors = torch.load(source / "tensors.pt", weights_only=True)
    model.load_state_dict(tensors["model"])
    optimizer.load_state_dict(tensors["optimizer"])
    document = json.loads((source / "state.json").read_text(encoding="utf-8"))
    return TrainingState(document["step"], document["extra"])
