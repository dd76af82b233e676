"""What ``--model`` may look like, and the arms that come of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evolve.chain import ChainFormat
from evolve.manifest import Manifest, write_manifest
from service.cli.arms import ModelChoice, ModelChoiceError, open_arms, parse_choice
from tests.service.openai_server import openai_server


def silent(_: str) -> None:
    """Says nothing."""


def options(**changes: Any) -> dict[str, Any]:
    return {"samples": None, "answers": 1, "api_key_env": None, "tell": silent, **changes}


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("http://127.0.0.1:8101/v1#a", ModelChoice(None, url="http://127.0.0.1:8101/v1", model="a")),
        ("http://127.0.0.1:8101/v1/", ModelChoice(None, url="http://127.0.0.1:8101/v1")),
        ("mine=https://host/v1?a=b#c/d", ModelChoice("mine", url="https://host/v1?a=b", model="c/d")),
    ],
)
def test_urls(text: str, choice: ModelChoice) -> None:
    assert parse_choice(text) == choice


def test_folders(tmp_path: Path) -> None:
    assert parse_choice(str(tmp_path)) == ModelChoice(None, folder=tmp_path)
    assert parse_choice(f"mine={tmp_path}") == ModelChoice("mine", folder=tmp_path)
    with pytest.raises(ModelChoiceError, match=r"nowhere is neither a checkpoint folder nor a URL"):
        parse_choice(str(tmp_path / "nowhere"))


async def test_the_only_model_of_a_server_needs_no_name() -> None:
    async with (
        openai_server(str, models=({"id": "only"},)) as url,
        open_arms([parse_choice(url)], **options()) as arms,
    ):
        assert [(arm.name, arm.model, arm.samples, arm.answers) for arm in arms] == [("only", "only", 1, 1)]


async def test_a_name_is_needed_and_checked_where_there_are_several() -> None:
    async with openai_server(str, models=({"id": "a"}, {"id": "b"})) as url:
        with pytest.raises(ModelChoiceError, match=r"several models \(a, b\): choose one"):
            async with open_arms([parse_choice(url)], **options()):
                pass
        with pytest.raises(ModelChoiceError, match=r"serves a, b, but no 'c'"):
            async with open_arms([parse_choice(f"{url}#c")], **options()):
                pass


async def test_nothing_at_a_url_is_said_so() -> None:
    with pytest.raises(ModelChoiceError, match=r"nothing answers at http://127\.0\.0\.1:9/v1"):
        async with open_arms([parse_choice("http://127.0.0.1:9/v1#a")], **options()):
            pass


async def test_arms_get_equal_evaluations_and_different_names(tmp_path: Path) -> None:
    manifest = Manifest(name="chain", domain="d", estimator="vpo", seed=0, chain=ChainFormat(m=3), context_length=100)
    write_manifest(tmp_path, manifest)
    models = ({"id": "single"}, {"id": "chain", "root": str(tmp_path)})
    async with openai_server(str, models=models) as url:
        choices = [parse_choice(f"{url}#{name}") for name in ("single", "chain", "single")]
        async with open_arms(choices, **options(answers=2)) as arms:
            found = [(arm.name, arm.samples, arm.answers, arm.manifest is not None) for arm in arms]
    assert found == [("single", 3, 2, False), ("chain", 2, None, True), ("single-2", 3, 2, False)]
