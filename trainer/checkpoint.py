"""Checkpoints: the folder of a model that can be served, and the states that a run resumes from.

States lie in ``states/step-00000040``: tensors, the loop's own JSON, and a digest of each. A state that is incomplete,
changed or unreadable is passed over for the next older one, so a crash at any moment costs at most the steps since the
last state that reached the disk.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM
from transformers.utils import CONFIG_NAME, SAFE_WEIGHTS_INDEX_NAME

from evolve.manifest import Manifest, write_manifest
from trainer.files import is_whole, replacing

Tensors = dict[str, dict[str, torch.Tensor]]


def save_model(
    folder: Path,
    model: Qwen3ForCausalLM,
    weights: dict[str, torch.Tensor],
    tokenizer: PreTrainedTokenizerFast,
    manifest: Manifest,
) -> None:
    """Write ``weights`` as a Hugging Face folder in bfloat16 safetensors, with ``vpo.json``.

    model: for its configuration. Tied embeddings are written untied: a server that reloads tied ones in place serves
    wrong ones.
    """
    with replacing(folder) as temporary:
        write_model(temporary, model, weights)
        tokenizer.save_pretrained(temporary)
        write_manifest(temporary, manifest)


def write_model(
    folder: Path, model: Qwen3ForCausalLM, weights: dict[str, torch.Tensor], dtype: torch.dtype = torch.bfloat16
) -> None:
    """Write configuration and weights into a folder that exists, in place of those that it holds.

    Old files are removed, never written through: a copied checkpoint may be made of links to the original's files.
    Their table of parts goes too: vLLM would load what it names and nothing else.
    """
    config = type(model.config).from_dict({**model.config.to_dict(), "tie_word_embeddings": False})
    with torch.device("meta"):
        shell = type(model)(config).to(dtype)
    cast = {name: weights[name].detach().to("cpu", dtype).clone() for name in shell.state_dict()}
    for old in [folder / CONFIG_NAME, folder / SAFE_WEIGHTS_INDEX_NAME, *folder.glob("*.safetensors")]:
        old.unlink(missing_ok=True)
    shell.save_pretrained(folder, state_dict=cast)


@dataclass(frozen=True, slots=True)
class State:
    """step: steps done. extra: the loop's own JSON state. score: of the evaluation at this step, if there was one."""

    step: int
    tensors: Tensors
    extra: dict[str, Any]
    score: float | None = None


class StateStore:
    """The states of a run; keeps the newest ``keep`` and the one with the best score."""

    def __init__(self, folder: Path, *, keep: int) -> None:
        self._folder, self._keep = folder, keep

    def save(self, state: State) -> None:
        """Write a state, then drop those that are not kept, and all of later steps: the run takes those again."""
        with replacing(self._path(state.step), digests=True) as temporary:
            torch.save(state.tensors, temporary / "tensors.pt")
            document = {"step": state.step, "extra": state.extra, "score": state.score}
            (temporary / "state.json").write_text(json.dumps(document), encoding="utf-8")
        self._prune(state.step)

    def newest(self) -> State | None:
        """The newest whole state, ``None`` where there is none."""
        found = next((path for path in reversed(self._paths()) if is_whole(path)), None)
        return None if found is None else self._read(found)

    def best(self) -> State | None:
        """The whole state with the best score (the newest of equals), ``None`` where none has a score."""
        scored = self._scores()
        ranked = sorted(scored, key=lambda path: (scored[path], path.name), reverse=True)
        found = next((path for path in ranked if is_whole(path)), None)
        return None if found is None else self._read(found)

    def at(self, step: int) -> State | None:
        """The state after ``step`` steps, ``None`` where it is not there or not whole."""
        return self._read(self._path(step)) if is_whole(self._path(step)) else None

    def steps(self) -> list[int]:
        """Steps of the states that are there, ascending, whole or not."""
        return [int(path.name.removeprefix("step-")) for path in self._paths()]

    def _path(self, step: int) -> Path:
        return self._folder / f"step-{step:08d}"

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob("step-[0-9]*"))

    def _read(self, path: Path) -> State:
        document = json.loads((path / "state.json").read_text(encoding="utf-8"))
        tensors = torch.load(path / "tensors.pt", weights_only=True, map_location="cpu")
        return State(document["step"], tensors, document["extra"], document["score"])

    def _scores(self) -> dict[Path, float]:
        scores = {}
        for path in self._paths():
            try:
                score = json.loads((path / "state.json").read_text(encoding="utf-8"))["score"]
            except (OSError, ValueError, KeyError, TypeError):
                continue
            if score is not None:
                scores[path] = float(score)
        return scores

    def _prune(self, step: int) -> None:
        paths = [path for path in self._paths() if path <= self._path(step)]
        scores = {path: score for path, score in self._scores().items() if path in paths}
        kept = set(paths[-self._keep :])
        if scores:
            kept.add(max(scores, key=lambda path: (scores[path], path.name)))
        for path in self._paths():
            if path not in kept:
                shutil.rmtree(path, ignore_errors=True)
        for leftover in [*self._folder.glob(".*.writing"), *self._folder.glob(".*.old")]:
            shutil.rmtree(leftover, ignore_errors=True)
