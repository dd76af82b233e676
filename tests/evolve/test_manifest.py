"""``vpo.json``: written, read back, and refused with the file's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from evolve.chain import ChainFormat
from evolve.manifest import MANIFEST_NAME, Manifest, ManifestError, PromptFormat, read_manifest, write_manifest

MANIFEST = Manifest(
    name="minicode-vpo",
    domain="minicode",
    estimator="vpo",
    seed=0,
    chain=ChainFormat(m=3),
    prompt=PromptFormat(kind="completion", template="{{ statement }} ä\n", stop=("\n\n",), max_tokens=44),
    context_length=256,
    metrics={"best@30": 0.5},
)


def test_a_manifest_is_read_back(tmp_path: Path) -> None:
    write_manifest(tmp_path, MANIFEST)
    assert read_manifest(tmp_path) == MANIFEST
    assert "ä" in (tmp_path / MANIFEST_NAME).read_text(encoding="utf-8")


def test_a_missing_manifest_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"has no vpo\.json"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"version": 2}', MANIFEST.model_dump_json().replace('"domain"', '"domian"')]
)
def test_a_wrong_manifest_names_the_file(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST_NAME).write_text(text, encoding="utf-8")
    with pytest.raises(ManifestError, match=r"vpo\.json"):
        read_manifest(tmp_path)
