"""The update: its gradient does not depend on how it is computed, credit goes to answers, corrections are bounded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import trainer.loss
from evolve.chain import ChainFormat, parse_chain
from evolve.randomness import generator
from trainer.config import RLConfig, TrainConfig
from trainer.credit import spread, token_places
from trainer.distributed import World
from trainer.engine import Engine
from trainer.loss import k3, truncated_importance
from trainer.model import load_model, load_tokenizer
from trainer.rollout.base import Rollouts, owners
from trainer.rollout.torch_sampler import sample
from trainer.update import Batch, update

Configure = Callable[..., TrainConfig]
ALONE = World(0, 1, torch.device("cpu"))
PROMPTS = ["? 1 2 -> 2 1\n= 1\n", "? 1 2 3 -> 3\n? 4 -> 4 4\n= 1\n", "? 5 -> 5\n= 1\n", "? 6 7 -> 7\n= 1\n"]


@pytest.fixture
def gradients(base: Path, rl_config: Configure, tmp_path: Path) -> Callable[..., dict[str, torch.Tensor]]:
    """Gradients of one update on a fixed batch, under settings."""

    def compute(train: dict[str, Any] | None = None, **changes: Any) -> dict[str, torch.Tensor]:
        config = rl_config(tmp_path, train={"kl": 0.1, **(train or {})}, **changes)
        assert isinstance(config.train, RLConfig)
        model, tokenizer = load_model(base), load_tokenizer(base)
        keys = [[(0, p, g) for g in range(3)] for p in range(4)]
        rollouts = sample(model, tokenizer, PROMPTS, keys, max_tokens=12)
        engine = Engine(model, config, ALONE, reference=True)
        with torch.no_grad():  # away from the reference, so that the KL term has a gradient
            for parameter in engine.model.parameters():
                if parameter.requires_grad:
                    noise = generator("noise", parameter.numel()).normal(size=tuple(parameter.shape))
                    parameter += 0.02 * torch.from_numpy(noise).float()
        advantages = torch.from_numpy(generator("advantages").normal(size=rollouts.ids.shape)).float()
        mask = rollouts.mask.clone()
        mask[5] = False  # a rollout that could not be judged
        caught: dict[str, torch.Tensor] = {}

        def catch(step: int) -> float:
            for name, parameter in engine.model.named_parameters():
                if parameter.grad is not None:
                    caught[name] = parameter.grad.clone()
            return 0.0

        engine.apply = catch  # type: ignore[method-assign]
        update(engine, Batch(rollouts, advantages, mask, 3), config.train, (0, 0))
        return caught

    return compute


def assert_close(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> None:
    assert a.keys() == b.keys()
    assert a
    assert any(value.abs().max() > 1e-4 for value in a.values())
    for name in a:
        torch.testing.assert_close(a[name], b[name], atol=2e-6, rtol=1e-4)


@pytest.mark.parametrize("micro_batch", [1, 3, 5])
def test_micro_batches_do_not_change_the_gradient(
    gradients: Callable[..., dict[str, torch.Tensor]], micro_batch: int
) -> None:
    assert_close(gradients(), gradients({"micro_batch": micro_batch}))


def test_recomputing_activations_does_not_change_the_gradient(
    gradients: Callable[..., dict[str, torch.Tensor]],
) -> None:
    assert_close(gradients(), gradients(hardware={"checkpointing": True}))


def test_logits_in_pieces_do_not_change_the_gradient(
    gradients: Callable[..., dict[str, torch.Tensor]], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = gradients()
    monkeypatch.setattr(trainer.loss, "LOGITS_AT_ONCE", 500)
    assert_close(whole, gradients())


def test_adapters_alone_are_trained(gradients: Callable[..., dict[str, torch.Tensor]]) -> None:
    found = gradients(lora={"rank": 2})
    assert found
    assert all(".lora_" in name for name in found)


@pytest.mark.parametrize("lora", [None, {"rank": 2}], ids=["full", "lora"])
def test_the_reference_is_the_same_before_and_after_a_forward_pass_of_training(
    base: Path, rl_config: Configure, tmp_path: Path, lora: dict[str, int] | None
) -> None:
    """Transformers drops the prompts' keys and values from models in training mode that recompute activations."""
    config = rl_config(tmp_path, train={"kl": 0.1}, hardware={"checkpointing": True}, lora=lora)
    model = load_model(base)
    rollouts = sample(model, load_tokenizer(base), PROMPTS, [[(0, p)] for p in range(4)], max_tokens=6)
    engine = Engine(model, config, ALONE, reference=True)
    before = engine.reference_log_probabilities(rollouts, 1.0)
    engine.log_probabilities(rollouts, 1.0)
    assert torch.equal(engine.reference_log_probabilities(rollouts, 1.0), before)


def test_several_passes_take_several_optimizer_steps(base: Path, rl_config: Configure, tmp_path: Path) -> None:
    config = rl_config(tmp_path, train={"epochs": 2, "minibatches": 2, "optimizer": {"lr": 0.01}})
    assert isinstance(config.train, RLConfig)
    model, tokenizer = load_model(base), load_tokenizer(base)
    rollouts = sample(model, tokenizer, PROMPTS, [[(p, g) for g in range(2)] for p in range(4)], max_tokens=8)
    batch = Batch(rollouts, torch.randn(rollouts.ids.shape), rollouts.mask, 2)
    row = update(Engine(model, config, ALONE, reference=True), batch, config.train, (0, 0))
    assert row["optimizer_steps"] == 4
    assert row["kl"] > 0
    assert 0 < row["clipped"] < 1


def test_selected_rows_lose_their_padding_only(base: Path) -> None:
    model, tokenizer = load_model(base), load_tokenizer(base)
    rollouts = sample(model, tokenizer, PROMPTS, [[(p, g) for g in range(3)] for p in range(4)], max_tokens=12)
    whole, _ = trainer.loss.log_probabilities(model, rollouts)
    part = rollouts.select([0, 2, 9])
    found, _ = trainer.loss.log_probabilities(model, part)
    assert part.owner.tolist() == [0, 0, 1]
    assert part.prompt_ids.shape[1] < rollouts.prompt_ids.shape[1]
    torch.testing.assert_close(found, whole[[0, 2, 9], : found.shape[1]], atol=1e-5, rtol=1e-5)


def test_tokens_get_the_advantage_of_the_answer_they_can_still_influence(base: Path) -> None:
    tokenizer = load_tokenizer(base)
    one = "<answer>\ndef f(x):\n    return x\n</answer>"
    two = "<answer>\ndef f(x):\n    x = x[::-1]\n    return x\n</answer>"
    texts = [one + two, one, "", one + one + two]
    ids = [tokenizer(text, add_special_tokens=False)["input_ids"] + [tokenizer.eos_token_id] for text in texts]
    width = max(map(len, ids))
    tokens = torch.tensor([row + [tokenizer.pad_token_id] * (width - len(row)) for row in ids])
    mask = torch.tensor([[i < len(row) for i in range(width)] for row in ids])
    decoded = [tokenizer.decode(row[:-1]) for row in ids]
    rollouts = Rollouts(tokens[:1, :1], tokens[:1, :1], owners(1, 4), tokens, mask, decoded, [True] * 4)
    answers = [list(parse_chain(text, ChainFormat(m=3)).answers) for text in decoded]
    places = token_places(rollouts, answers, 3, tokenizer)
    first = len(ids[1]) - 1
    assert places[0, :first].unique().tolist() == [0]
    assert places[0, first : len(ids[0]) - 1].unique().tolist() == [1]
    assert places[0, len(ids[0]) - 1].item() == 2  # the end mark: no third answer comes
    assert places[1, first].item() == 1
    assert places[2].unique().tolist() == [0]
    assert places[3, len(ids[3]) - 1].item() == 2  # the repeated answer keeps its place
    table = np.arange(12.0).reshape(1, 4, 3)
    assert spread(table, places)[0, [0, first]].tolist() == [0.0, 1.0]
    same = np.repeat(generator(0).normal(size=(1, 4, 1)), 3, axis=2)
    assert all(len(row.unique()) == 1 for row in spread(same, places))


def test_importance_weights_are_truncated_and_have_no_gradient() -> None:
    policy = torch.tensor([[0.0, -1.0, -1.0]], requires_grad=True)
    weights = truncated_importance(policy, torch.tensor([[-3.0, -1.0, 0.0]]), 2.0)
    torch.testing.assert_close(weights, torch.tensor([[2.0, 1.0, float(np.exp(-1))]]))
    assert not weights.requires_grad
    assert (k3(policy, policy) == 0).all()


def test_rollouts_move_with_all_their_parts(base: Path) -> None:
    model, tokenizer = load_model(base), load_tokenizer(base)
    rollouts = sample(model, tokenizer, PROMPTS[:1], [[(0, 0), (0, 1)]], max_tokens=4)
    moved = replace(rollouts, log_sampler=torch.zeros(rollouts.ids.shape)).to(torch.device("cpu"))
    assert moved.log_sampler is not None
    assert moved.select([1]).texts == rollouts.texts[1:]
