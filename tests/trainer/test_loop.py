"""Training runs: resume is bit-identical, RL moves the policy, the result is a checkpoint that says how to be asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from evolve.manifest import read_manifest
from trainer.config import ConfigError, TrainConfig, load_config
from trainer.files import FolderInUseError, held
from trainer.loop import Training
from trainer.loss import ClipRange, k3, log_probabilities, policy_objective
from trainer.model import load_model, load_tokenizer
from trainer.rollout.torch_sampler import sample

TIMES = {"cpu_s", "estimator_s", "sampling_s", "tokens_per_s"}

Configure = Callable[..., TrainConfig]


class Interrupted(Exception):
    pass


def run_interrupted(config: TrainConfig, at: int) -> None:
    """Stop without warning after step ``at``, as a killed process would, then run to the end."""

    def stop(row: dict[str, Any]) -> None:
        if row["step"] == at and "evaluation" not in row:
            raise Interrupted

    with pytest.raises(Interrupted):
        Training(config, stop).run()
    Training(config).run()


def rows(output: Path) -> list[dict[str, Any]]:
    lines = (output / "metrics.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k not in TIMES} for line in lines]


@pytest.mark.usefixtures("rewarding")
@pytest.mark.parametrize(("estimator", "m"), [("vpo", 3), ("grpo", 1)])
def test_a_resumed_rl_run_equals_the_uninterrupted_one(
    rl_config: Configure, tmp_path: Path, estimator: str, m: int
) -> None:
    Training(rl_config(tmp_path / "a", estimator, m, save_every=1)).run()
    run_interrupted(rl_config(tmp_path / "b", estimator, m, save_every=2), at=3)
    a, b = (load_file(tmp_path / name / "model" / "model.safetensors") for name in "ab")
    assert all(torch.equal(a[key], b[key]) for key in a)
    assert rows(tmp_path / "a") == rows(tmp_path / "b")


def test_a_resumed_warmup_equals_the_uninterrupted_one(warmup_config: Configure, base: Path, tmp_path: Path) -> None:
    run_interrupted(warmup_config(tmp_path, save_every=2), at=5)
    resumed, whole = load_file(tmp_path / "model" / "model.safetensors"), load_file(base / "model.safetensors")
    assert all(torch.equal(whole[key], resumed[key]) for key in whole)


def test_two_processes_do_not_train_in_one_folder(rl_config: Configure, tmp_path: Path) -> None:
    config = rl_config(tmp_path / "run")
    with held(config.output), pytest.raises(FolderInUseError, match="is being written by another process"):
        Training(config).run()
    assert not (config.output / "metrics.jsonl").exists()


def test_the_manifest_says_how_the_model_wants_to_be_asked(rl_config: Configure, tmp_path: Path) -> None:
    Training(rl_config(tmp_path)).run()
    manifest = read_manifest(tmp_path / "model")
    assert (manifest.chain.m, manifest.estimator, manifest.prompt.kind) == (3, "vpo", "completion")
    assert manifest.training["after"] == ["tiny"]
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["tie_word_embeddings"] is False
    assert config["dtype"] == "bfloat16"


def test_log_probabilities_through_the_shared_prompt_equal_those_of_whole_sequences(base: Path) -> None:
    model, tokenizer = load_model(base), load_tokenizer(base)
    prompts = ["? 1 2 -> 2 1\n= 1\n", "? 1 2 3 -> 3\n? 4 -> 4 4\n= 1\n"]
    keys = [[(0, p, g) for g in range(3)] for p in range(2)]
    rollouts = sample(model, tokenizer, prompts, keys, max_tokens=8)
    found, entropy = log_probabilities(model, rollouts)
    assert (entropy[rollouts.mask] >= 0).all()
    for row in range(6):
        prompt = rollouts.prompt_ids[row // 3][rollouts.prompt_mask[row // 3].bool()]
        completion = rollouts.ids[row][rollouts.mask[row]]
        ids = torch.cat([prompt, completion])[None]
        logs = torch.log_softmax(model(input_ids=ids).logits[0], dim=-1)[len(prompt) - 1 : -1]
        expected = logs.gather(-1, completion[:, None])[:, 0]
        torch.testing.assert_close(found[row][rollouts.mask[row]], expected, atol=1e-4, rtol=0)


def test_a_rollout_does_not_depend_on_what_else_is_in_the_batch(base: Path) -> None:
    model, tokenizer = load_model(base), load_tokenizer(base)
    prompts = ["? 1 2 -> 2 1\n= 1\n", "? 7 -> 7\n= 1\n"]
    both = sample(model, tokenizer, prompts, [[("k", 0), ("k", 1)], [("k", 2), ("k", 3)]], max_tokens=6)
    alone = sample(model, tokenizer, prompts[:1], [[("k", 1)]], max_tokens=6)
    assert alone.texts[0] == both.texts[1]


def test_the_loss_is_the_clipped_objective_over_all_tokens() -> None:
    old = torch.zeros(2, 3)
    policy = torch.log(torch.tensor([[1.5, 1.0, 0.5], [1.5, 0.5, 9.0]]))
    advantages = torch.tensor([[1.0], [-1.0]]).expand(2, 3)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    objective, clipped = policy_objective(policy, old, advantages, ClipRange(0.2, 0.2))
    assert objective[mask].sum().item() == pytest.approx(1.2 + 1.0 + 0.5 - 1.5 - 0.8)
    assert clipped.tolist() == [[True, False, False], [False, True, False]]
    higher, _ = policy_objective(policy, old, advantages, ClipRange(0.2, 0.4))
    assert higher[0, 0].item() == pytest.approx(1.4)
    assert not k3(policy, policy).any()
    assert (k3(policy, old) >= 0).all()


def test_a_wrong_configuration_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("name: a\noutput: o\nmodel: {hiden: 3}\ntrain: {kind: warmup, steps: 0}\n")
    with pytest.raises(ConfigError, match=r"model: unknown key 'hiden': did you mean 'hidden'") as caught:
        load_config(path)
    assert "train.warmup.steps" in str(caught.value)
    path.write_text("name: a\noutput: o\ntrain: {kind: warmup, steps: 2}\n")
    with pytest.raises(ConfigError, match="exactly one of `model`"):
        load_config(path)
    with pytest.raises(ConfigError, match="no such file"):
        load_config(tmp_path / "missing.yaml")
    with pytest.raises(ConfigError, match=r"write it as a\.b=value"):
        load_config(path, ["seed"])
    assert load_config(path, ["model.hidden=32", "seed=3"]).seed == 3
