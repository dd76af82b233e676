"""Sampling by a real vLLM server: its log-probabilities are the trainer's, and the same keys are the same requests."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from service.model_server import ModelServer
from trainer.checkpoint import write_model
from trainer.config import TrainConfig, VllmSamplerConfig
from trainer.distributed import World
from trainer.domains.base import Judged
from trainer.engine import Engine
from trainer.loss import log_probabilities
from trainer.model import load_model, load_tokenizer
from trainer.rollout.store import RolloutStore
from trainer.rollout.torch_sampler import sample
from trainer.rollout.vllm_sampler import SamplerError, VllmSampler, completion_request

Configure = Callable[..., TrainConfig]


def sampler_for(rl_config: Configure, checkpoint: Path, folder: Path, **settings: Any) -> tuple[VllmSampler, Engine]:
    server = {"kind": "vllm", "sync": "reload", "weights": folder / "weights", **settings}
    config = rl_config(folder, train={"sampler": server}, init=checkpoint)
    engine = Engine(load_model(checkpoint), config, World(0, 1, torch.device("cpu")), reference=False)
    return VllmSampler(VllmSamplerConfig(**server), load_tokenizer(checkpoint), engine, config), engine


def test_a_request_depends_on_its_key_alone() -> None:
    one = completion_request("m", [1, 2], (0, 3, 1, 2), max_tokens=5, temperature=1.0)
    assert one == completion_request("m", [1, 2], (0, 3, 1, 2), max_tokens=5, temperature=1.0)
    assert one["seed"] != completion_request("m", [1, 2], (0, 3, 1, 3), max_tokens=5, temperature=1.0)["seed"]
    assert one["prompt"] == [1, 2]


def test_a_request_leaves_nothing_to_the_served_checkpoints_own_settings() -> None:
    """vLLM takes these from generation_config.json where a request does not say them; Qwen's has a penalty of 1.05."""
    one = completion_request("m", [1], (0,), max_tokens=5, temperature=1.0)
    penalties = {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
    neutral = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "max_tokens": 5, **penalties}
    assert one | neutral == one


def test_only_adapters_are_dropped(base: Path, rl_config: Configure, tmp_path: Path) -> None:
    """A run's states are named as adapters are."""
    sampler, _ = sampler_for(rl_config, base, tmp_path, endpoint="http://127.0.0.1:9/v1", model="a")
    state = tmp_path / "weights" / "step-00000001"
    state.mkdir(parents=True)
    sampler._drop_adapters(2)
    assert state.exists()
    (state / "adapter_config.json").write_text("{}")
    with pytest.raises(SamplerError, match="unload_lora_adapter did not answer"):  # of such a one the server is told
        sampler._drop_adapters(2)


def test_new_weights_never_reach_the_original_through_links(base: Path, tmp_path: Path) -> None:
    """A snapshot in Hugging Face's cache is a folder of links, and so is a copy of it that keeps them."""
    model, original, served = load_model(base), tmp_path / "original", tmp_path / "served"
    shutil.copytree(base, original)
    served.mkdir()
    (served / "config.json").symlink_to(original / "config.json")
    (served / "model.safetensors").hardlink_to(original / "model.safetensors")
    before = [(original / name).read_bytes() for name in ("config.json", "model.safetensors")]
    write_model(served, model, {name: value + 1 for name, value in model.state_dict().items()}, torch.float32)
    assert [(original / name).read_bytes() for name in ("config.json", "model.safetensors")] == before
    assert torch.equal(load_model(served).lm_head.weight, model.lm_head.weight + 1)


@pytest.mark.slow
def test_a_servers_rollouts_are_the_models_own(
    model_server: ModelServer, tiny_checkpoint: Path, rl_config: Configure, tmp_path: Path
) -> None:
    sampler, engine = sampler_for(
        rl_config, tiny_checkpoint, tmp_path, endpoint=model_server.url, model=model_server.name
    )
    prompts, keys = ["ab = 1\n", "c"], [[(0, p, g) for g in range(3)] for p in range(2)]
    rollouts = sampler.sample(prompts, keys, max_tokens=12)
    assert sampler.sample(prompts, keys, max_tokens=12).texts == rollouts.texts
    assert rollouts.log_sampler is not None
    with torch.no_grad():
        own, _ = log_probabilities(engine.model, rollouts)
    torch.testing.assert_close(rollouts.log_sampler[rollouts.mask], own[rollouts.mask], atol=2e-3, rtol=0)
    sampler._probe(0)  # the server serves this model
    with torch.no_grad():
        engine.model.lm_head.weight *= 3
    with pytest.raises(SamplerError, match="does not serve the weights it was sent"):
        sampler._probe(1)


def test_a_server_that_is_not_there_is_named(
    base: Path, rl_config: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.rollout.vllm_sampler._ATTEMPTS", 1)
    sampler, _ = sampler_for(rl_config, base, tmp_path, endpoint="http://127.0.0.1:9/v1", model="tiny")
    with pytest.raises(SamplerError, match=r"ConnectError.*train\.sampler\.endpoint"):
        sampler.sample(["a"], [[("k", 0)]], max_tokens=2)
    with pytest.raises(SamplerError, match="is no folder"):
        sampler.sync(torch.nn.Module(), 1)


def test_rollouts_are_there_again_after_a_crash(base: Path, tmp_path: Path) -> None:
    model, tokenizer = load_model(base), load_tokenizer(base)
    rollouts = sample(model, tokenizer, ["a", "b"], [[(p, g) for g in range(2)] for p in range(2)], max_tokens=5)
    judged = [[Judged(np.array([0.5, 1.0]), 0.75), Judged(np.zeros(2), 0.0, "the jail broke")], [], [], []]
    store = RolloutStore(tmp_path)
    store.save(3, rollouts, judged)
    (tmp_path / "step-00000004.rank-0.writing").write_bytes(b"half")
    assert store.load(4) is None
    found = store.load(3)
    assert found is not None
    again, verdicts = found
    assert again.texts == rollouts.texts
    assert torch.equal(again.ids, rollouts.ids)
    assert verdicts[0][1].failure == "the jail broke"
    assert verdicts[0][0].reward.tolist() == [0.5, 1.0]
    store.forget_before(4)
    assert store.load(3) is None


def test_a_servers_weights_are_sent_the_way_that_fits_the_training(
    base: Path, rl_config: Configure, tmp_path: Path
) -> None:
    server = {"kind": "vllm", "endpoint": "http://127.0.0.1:9/v1", "model": "a", "weights": "w"}
    with pytest.raises(ValueError, match="must be `lora` with `lora`"):
        rl_config(tmp_path, train={"sampler": {**server, "sync": "lora"}})
    with pytest.raises(ValueError, match=r"`train\.temperature` must be 1 with vLLM"):
        rl_config(tmp_path, train={"sampler": {**server, "sync": "reload"}, "temperature": 0.7})
    with pytest.raises(ValueError, match=r"`train\.sampler\.weights` must be a copy of `init`"):
        rl_config(tmp_path, train={"sampler": {**server, "sync": "reload", "weights": base}})
