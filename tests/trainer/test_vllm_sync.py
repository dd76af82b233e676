"""New weights on a real vLLM server: it answers with them and not with the old ones, and a crash costs no rollouts.

One server for the module, started as docs/training.md says for both ways of sending weights at once.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

from benchmarks.sampling_server import sampling_server
from service.model_server import ModelServer
from tests.trainer.test_checkpoint import results
from trainer import policy
from trainer.config import LoraConfig, RLConfig, TrainConfig, VllmSamplerConfig
from trainer.distributed import World
from trainer.engine import Engine
from trainer.loop import Training
from trainer.loss import log_probabilities, truncated_importance
from trainer.model import load_model, load_tokenizer
from trainer.rollout.base import Rollouts
from trainer.rollout.vllm_sampler import VllmSampler, completion_request
from trainer.update import Batch, update

pytestmark = pytest.mark.slow

Configure = Callable[..., TrainConfig]
CAP = 2.0
EXACT = 5e-5
"""Nats a token between two float32 implementations of one model; measured: below 1e-5."""


@pytest.fixture(scope="module")
def server(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    """Serves a copy of the tiny warm-up's checkpoint."""
    checkpoint = tmp_path_factory.mktemp("served") / "tiny"
    shutil.copytree(base, checkpoint)
    with sampling_server(checkpoint) as server:
        yield server


class Setting:
    """A trainer and its sampler on the server; the server starts with the base checkpoint's weights."""

    def __init__(self, server: ModelServer, base: Path, configure: Configure, folder: Path, *, lora: bool) -> None:
        self.config = configure(folder / "out", **run_settings(server, folder, lora=lora))
        self.engine = Engine(load_model(base), self.config, World(0, 1, torch.device("cpu")), reference=False)
        assert isinstance(self.config.train, RLConfig)
        assert isinstance(self.config.train.sampler, VllmSamplerConfig)
        self.rl, self.tokenizer, self.url = self.config.train, load_tokenizer(base), server.url
        self.sampler = VllmSampler(self.config.train.sampler, self.tokenizer, self.engine, self.config)

    def change(self) -> None:
        """New weights, far from the old ones."""
        generator, size = torch.Generator().manual_seed(1), 0.2 if self.config.lora is None else 1.0
        with torch.no_grad():
            for parameter in self.engine.model.parameters():
                if parameter.requires_grad:
                    parameter += size * torch.randn(parameter.shape, generator=generator)

    def rollouts(self) -> Rollouts:
        prompts = ["ab = 1\n", "c"]
        return self.sampler.sample(prompts, [[(7, p, g) for g in range(4)] for p in range(2)], max_tokens=16)

    def own(self, rollouts: Rollouts) -> torch.Tensor:
        """The trainer's log-probabilities of the tokens."""
        with torch.no_grad():
            logs, _ = log_probabilities(self.engine.model, rollouts)
        return logs[rollouts.mask]

    def greedy(self, tokens: int = 12) -> list[int]:
        """The server's most likely continuation of one prompt, with the weights that the sampler asks for."""
        body = completion_request(self.sampler._model, [5, 6, 7], ("greedy",), max_tokens=tokens, temperature=0.0)
        answer = httpx.post(f"{self.url}/completions", json={**body, "ignore_eos": True}, trust_env=False).json()
        return answer["choices"][0]["token_ids"]

    def own_greedy(self, tokens: int = 12) -> list[int]:
        """The same by the trainer's model."""
        ids = [5, 6, 7]
        with torch.no_grad():
            for _ in range(tokens):
                ids.append(int(self.engine.model(torch.tensor([ids])).logits[0, -1].argmax()))
        return ids[3:]


def run_settings(server: ModelServer, folder: Path, *, lora: bool, **train: Any) -> dict[str, Any]:
    """One request at a time: then the same requests in the same order have the same bits for an answer."""
    endpoint = {"kind": "vllm", "endpoint": server.url, "model": server.name, "tolerance": 1e-3, "cap": CAP}
    way = {"sync": "lora", "weights": folder / "adapters"} if lora else {"sync": "reload", "weights": server.checkpoint}
    sampler = {**endpoint, **way, "concurrency": 1}
    return {"train": {"sampler": sampler, "kl": 0.0, **train}, "lora": LoraConfig(rank=4) if lora else None}


def gap(rollouts: Rollouts, own: torch.Tensor) -> float:
    """Largest difference of the server's log-probabilities from others', nats."""
    assert rollouts.log_sampler is not None
    return float((rollouts.log_sampler[rollouts.mask] - own).abs().max())


@pytest.fixture
def full(server: ModelServer, base: Path, rl_config: Configure, tmp_path: Path) -> Setting:
    setting = Setting(server, base, rl_config, tmp_path, lora=False)
    setting.sampler.sync(setting.engine.model, 0)
    return setting


@pytest.fixture
def lora(full: Setting, server: ModelServer, base: Path, rl_config: Configure, tmp_path: Path) -> Setting:
    del full  # has put the base weights back
    return Setting(server, base, rl_config, tmp_path, lora=True)


@pytest.mark.parametrize("kind", ["full", "lora"])
def test_the_server_answers_with_the_new_weights(kind: str, request: pytest.FixtureRequest) -> None:
    setting: Setting = request.getfixturevalue(kind)
    setting.sampler.sync(setting.engine.model, 0)
    before, greedy_before = setting.rollouts(), setting.greedy()
    assert gap(before, setting.own(before)) < EXACT
    assert greedy_before == setting.own_greedy()
    setting.change()
    assert gap(before, setting.own(before)) > 0.3
    setting.sampler.sync(setting.engine.model, 1)
    after = setting.rollouts()
    assert gap(after, setting.own(after)) < EXACT
    assert after.texts != before.texts
    assert setting.greedy() == setting.own_greedy() != greedy_before


def test_a_served_checkpoint_of_several_parts_takes_new_weights(full: Setting, server: ModelServer) -> None:
    """Published checkpoints have a table of parts, and vLLM loads what it names and nothing else."""
    table = {"metadata": {}, "weight_map": {"lm_head.weight": "model-00001-of-00002.safetensors"}}
    (server.checkpoint / "model.safetensors.index.json").write_text(json.dumps(table))
    full.change()
    full.sampler.sync(full.engine.model, 1)
    rollouts = full.rollouts()
    assert gap(rollouts, full.own(rollouts)) < EXACT


def test_importance_is_one_for_the_servers_own_weights_and_truncated_for_others(full: Setting) -> None:
    rollouts = full.rollouts()
    assert rollouts.log_sampler is not None
    own, server = full.own(rollouts), rollouts.log_sampler[rollouts.mask]
    torch.testing.assert_close(truncated_importance(own, server, CAP), torch.ones_like(own), atol=EXACT, rtol=0)
    rewards = torch.linspace(-1, 1, len(rollouts))[:, None].expand(rollouts.ids.shape)
    full.change()
    moved = full.own(rollouts)
    ratio = torch.exp(moved - server)
    weights = truncated_importance(moved, server, CAP)
    assert float(ratio.max()) > CAP
    assert torch.equal(weights, ratio.clamp(max=CAP))
    row = update(full.engine, Batch(rollouts, rewards, rollouts.mask, 4), full.rl, (0, 0))
    assert row["truncated"] == pytest.approx(float((ratio > CAP).float().mean()), abs=1e-6)
    assert row["mismatch"] == pytest.approx(float((moved - server).abs().mean()), abs=1e-4)


def test_matching_log_probabilities_leave_the_gradient_alone(
    full: Setting, server: ModelServer, base: Path, rl_config: Configure, tmp_path: Path
) -> None:
    rollouts = full.rollouts()
    rewards = torch.linspace(-1, 1, len(rollouts))[:, None].expand(rollouts.ids.shape)
    other = Setting(server, base, rl_config, tmp_path / "other", lora=False)
    row = update(full.engine, Batch(rollouts, rewards, rollouts.mask, 4), full.rl, (0, 0))
    alone = replace(rollouts, log_sampler=None)
    expected = update(other.engine, Batch(alone, rewards, rollouts.mask, 4), other.rl, (0, 0))
    assert row["mismatch"] < EXACT
    assert row["truncated"] == 0
    assert expected["grad_norm"] > 0
    assert row["grad_norm"] == pytest.approx(expected["grad_norm"], rel=1e-3)


def run_until_killed(config: TrainConfig, step: int) -> None:
    """Run the training in a process that ``kill -9`` ends when the rollouts of ``step`` are stored, before the update."""
    pid = os.fork()
    if pid == 0:
        try:
            unharmed = policy.update

            def kill_or_update(engine: Engine, batch: Batch, rl: RLConfig, key: tuple[int, int]) -> dict[str, float]:
                if key[1] == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return unharmed(engine, batch, rl, key)

            policy.update = kill_or_update
            Training(config).run()
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL


@pytest.mark.usefixtures("rewarding", "full")
@pytest.mark.parametrize(("lora", "save_every"), [(False, 1), pytest.param(True, 50, marks=pytest.mark.soak)])
def test_killed_before_an_update_a_run_goes_on_with_its_stored_rollouts(
    server: ModelServer,
    rl_config: Configure,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lora: bool,
    save_every: int,
) -> None:
    """Without a state since the start (``save_every`` 50) all the steps so far are taken again with stored rollouts."""
    settings = run_settings(server, tmp_path, lora=lora, steps=3, optimizer={"lr": 0.01}, max_tokens=24)
    settings["evaluation"] = {"problems": 1, "answers": 3}
    Training(rl_config(tmp_path / "whole", save_every=save_every, **settings)).run()
    config = rl_config(tmp_path / "killed", save_every=save_every, **settings)
    run_until_killed(config, step=1)
    stored = sorted(path.name for path in (tmp_path / "killed" / "pending").iterdir())
    assert stored[-1] == "step-00000001.rank-0.pt"
    assert len(stored) == (1 if save_every == 1 else 2)
    asked: set[int] = set()
    sample = VllmSampler.sample

    def recorded(self: VllmSampler, prompts: Any, keys: Any, **rest: Any) -> Rollouts:
        asked.update(key[1] for row in keys for key in row if key[0] == config.seed)
        return sample(self, prompts, keys, **rest)

    monkeypatch.setattr(VllmSampler, "sample", recorded)
    Training(config).run()
    assert asked == {2}
    (a, rows), (b, killed_rows) = results(tmp_path / "whole"), results(tmp_path / "killed")
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert rows == killed_rows
    assert any(row.get("mean_abs_advantage", 0) > 0.1 for row in rows)
    assert not any(row.get("truncated", 0) for row in rows)
