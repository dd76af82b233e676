"""``vpo.json``: what a checkpoint says about how it wants to be asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evolve.chain import ChainFormat

MANIFEST_NAME = "vpo.json"


class ManifestError(ValueError):
    """A checkpoint's manifest is missing or wrong; the message names the file, the field and the fix."""


class PromptFormat(BaseModel):
    """How prompts are written for a model.

    kind: ``chat`` uses the built-in chat messages; ``completion`` renders ``template`` and asks for a plain completion.
    template: a Jinja2 template over the variables described in :mod:`evolve.prompts` (``completion`` only).
    stop: strings that end a generation.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["chat", "completion"] = "chat"
    template: str | None = None
    stop: tuple[str, ...] = ()
    max_tokens: Annotated[int, Field(ge=1)] = 1024


class Manifest(BaseModel):
    """The contents of ``vpo.json``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    name: str
    domain: str
    estimator: str
    seed: int
    chain: ChainFormat = ChainFormat()
    prompt: PromptFormat = PromptFormat()
    context_length: Annotated[int, Field(ge=1)]
    metrics: dict[str, Any] = {}
    training: dict[str, Any] = {}


def read_manifest(checkpoint: Path) -> Manifest:
    """The manifest of a checkpoint folder. Raises :class:`ManifestError`."""
    path = checkpoint / MANIFEST_NAME
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise ManifestError(f"{checkpoint} has no {MANIFEST_NAME}: name a checkpoint folder of the trainer") from None
    except ValidationError as error:
        raise ManifestError(f"{path}: {error}") from None


def write_manifest(checkpoint: Path, manifest: Manifest) -> None:
    """Write the manifest into a checkpoint folder."""
    text = json.dumps(manifest.model_dump(mode="json"), indent=2, ensure_ascii=False)
    (checkpoint / MANIFEST_NAME).write_text(text + "\n", encoding="utf-8")
