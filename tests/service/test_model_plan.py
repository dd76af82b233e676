"""Sizes and command lines for checkpoints; no server is started here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evolve.manifest import Manifest, write_manifest
from service.model_plan import ModelServerError, installed_device, plan_server

CONFIG = {
    "hidden_size": 576,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "max_position_embeddings": 8192,
    "vocab_size": 49152,
}


def checkpoint(folder: Path, **changes: Any) -> Path:
    config = {**CONFIG, **changes}
    (folder / "config.json").write_text(
        json.dumps({name: value for name, value in config.items() if value is not None})
    )
    return folder


def test_the_context_is_bounded_on_cpu_and_the_batch_holds_one(tmp_path: Path) -> None:
    plan = plan_server(checkpoint(tmp_path), device="cpu")
    assert (plan.context, plan.batch) == (4096, 4096)
    assert plan.name == tmp_path.name
    assert plan.manifest is None


def test_a_manifest_gives_name_and_context(tmp_path: Path) -> None:
    write_manifest(checkpoint(tmp_path), Manifest(name="mini", domain="d", estimator="vpo", seed=0, context_length=300))
    plan = plan_server(tmp_path, device="cpu")
    assert (plan.name, plan.context) == ("mini", 300)
    assert plan_server(tmp_path, device="cpu", name="other").name == "other"


@pytest.mark.parametrize(
    ("changes", "per_token"),
    [
        ({}, 2 * 30 * 3 * 64 * 4),
        ({"num_key_value_heads": None}, 2 * 30 * 9 * 64 * 4),
        ({"head_dim": 32}, 2 * 30 * 3 * 32 * 4),
    ],
)
def test_keys_and_values_of_one_whole_context_always_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], per_token: int
) -> None:
    class Memory:
        available = 2**30

    monkeypatch.setattr("service.model_plan.psutil.virtual_memory", Memory)
    assert plan_server(checkpoint(tmp_path, **changes), device="cpu").kv_bytes == max(4096 * per_token, 2**27)


def test_multimodal_configs_are_read_from_their_text_part(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"text_config": CONFIG}))
    assert plan_server(tmp_path, device="cpu").vocabulary == 49152


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "has no config.json: name a Hugging Face checkpoint folder, or the URL"),
        ("{", "is not JSON"),
        ("[]", "is not a JSON object"),
        (json.dumps({**CONFIG, "vocab_size": "many"}), "vocab_size must be a positive integer, not 'many'"),
    ],
)
def test_unusable_folders_are_explained(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    with pytest.raises(ModelServerError, match=message):
        plan_server(tmp_path, device="cpu")


def test_the_command_on_cpu_avoids_what_breaks_there(tmp_path: Path) -> None:
    command = plan_server(checkpoint(tmp_path), device="cpu").command(tmp_path, "127.0.0.1", 8101)
    assert command[1:3] == ["-m", "vllm.entrypoints.openai.api_server"]
    assert {"--no-enable-chunked-prefill", "--enforce-eager", "float32"} <= set(command)


def test_the_command_on_cuda_leaves_room_for_a_second_server(tmp_path: Path) -> None:
    command = plan_server(checkpoint(tmp_path), device="cuda").command(tmp_path, "127.0.0.1", 8101)
    assert "--enforce-eager" not in command
    assert command[command.index("--dtype") + 1] == "auto"
    assert float(command[command.index("--gpu-memory-utilization") + 1]) < 0.5


def test_the_environment_keeps_no_keys_of_other_services(tmp_path: Path) -> None:
    inherited = {"PATH": "/bin", "OPENAI_API_KEY": "k", "DATABASE_URL": "d", "VLLM_CPU_KVCACHE_SPACE": "40"}
    environment = plan_server(checkpoint(tmp_path), device="cpu").environment(inherited)
    assert environment["PATH"] == "/bin"
    assert environment["OMP_NUM_THREADS"] == "1"
    assert environment["HF_HUB_OFFLINE"] == "1"
    assert not {"OPENAI_API_KEY", "DATABASE_URL", "VLLM_CPU_KVCACHE_SPACE"} & set(environment)


def test_vllm_is_installed() -> None:
    assert installed_device() in ("cpu", "cuda")
