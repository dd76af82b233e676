"""Our GRPO step against TRL 1.16's GRPOTrainer on the same rollouts: advantages, loss and gradients.

TRL samples from a tiny model and scores by its own code; both then compute the loss of those rollouts, with an old
policy that is not the present one (so that clipping acts) and a KL term to a reference.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from evolve.randomness import generator
from tests.trainer.conftest import Configure
from trainer.distributed import World
from trainer.engine import Engine
from trainer.estimators import ESTIMATORS
from trainer.estimators.config import GdpoConfig, GrpoConfig
from trainer.estimators.groups import make_groups
from trainer.model import load_model, load_tokenizer
from trainer.rollout.base import Rollouts, owners
from trainer.update import Batch, _accumulate

pytestmark = pytest.mark.filterwarnings("ignore")  # TRL warns about everything that it does not like in others

PROMPTS, GROUP, KL, CLIP, EPSILON = 3, 4, 0.05, 0.2, 1e-4
TEXTS = ["? 1 2 -> 2 1\n= 1\n", "? 1 2 3 -> 3\n? 4 -> 4 4\n= 1\n", "? 7 -> 7\n= 1\n"]


@pytest.fixture
def trl_trainer(base: Path, tmp_path: Path) -> Iterator[Any]:
    """TRL's trainer of the tiny model with two reward functions; it draws from global generators, restored afterwards."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        datasets = pytest.importorskip("datasets")
        trl = pytest.importorskip("trl")
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()

    def rewards(key: str) -> Any:
        def reward(completion_ids: list[list[int]], **_: Any) -> list[float]:
            return [round(float(generator(key, *ids).random()), 2) for ids in completion_ids]

        reward.__name__ = key
        return reward

    arguments = trl.GRPOConfig(
        output_dir=str(tmp_path),
        use_cpu=True,
        bf16=False,
        report_to="none",
        per_device_train_batch_size=PROMPTS * GROUP,
        num_generations=GROUP,
        max_completion_length=12,
        temperature=1.0,
        beta=KL,
        epsilon=CLIP,
        loss_type="bnpo",  # the token mean over the batch
        scale_rewards="group",
        use_bias_correction_kl=False,  # plain k3; TRL multiplies it by the ratio unless told not to
        gradient_checkpointing=False,
        seed=0,
    )
    trainer = trl.GRPOTrainer(
        model=load_model(base),
        processing_class=load_tokenizer(base),
        args=arguments,
        reward_funcs=[rewards("first"), rewards("second")],
        train_dataset=datasets.Dataset.from_dict({"prompt": TEXTS}),
    )
    trainer.current_gradient_accumulation_steps = 1
    yield trainer
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.set_rng_state(states[2])


def generate(trainer: Any) -> tuple[dict[str, Any], np.ndarray]:
    """TRL's scored rollouts, and the two rewards of each, shape (P, G, 1, 2)."""
    seen: list[torch.Tensor] = []
    calculate = trainer._calculate_rewards
    trainer._calculate_rewards = lambda *arguments: seen.append(calculate(*arguments)) or seen[-1]
    trainer.model.train()
    scored = trainer._generate_and_score_completions([{"prompt": text} for text in TEXTS for _ in range(GROUP)])
    rewards = np.round(seen[0].double().numpy(), 2)
    return scored, rewards.reshape(PROMPTS, GROUP, 1, 2)


def rollouts_of(scored: dict[str, Any]) -> Rollouts:
    first = torch.arange(PROMPTS) * GROUP
    return Rollouts(
        prompt_ids=scored["prompt_ids"][first],
        prompt_mask=scored["prompt_mask"][first],
        owner=owners(PROMPTS, GROUP),
        ids=scored["completion_ids"],
        mask=scored["completion_mask"].bool(),
        texts=[""] * (PROMPTS * GROUP),
        finished=[True] * (PROMPTS * GROUP),
    )


def gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    found = {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}
    model.zero_grad()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("several", [False, True])
def test_gradients_equal_trls(
    trl_trainer: Any, base: Path, rl_config: Configure, tmp_path: Path, several: bool
) -> None:
    scored, rewards = generate(trl_trainer)
    groups = make_groups(rewards, scalars=rewards.mean(axis=-1))
    advantages = ESTIMATORS["grpo"].advantages(groups, np.zeros((PROMPTS, 0, 2)), GrpoConfig(epsilon=EPSILON / 2))
    flat = torch.from_numpy(advantages.reshape(-1, 1))
    np.testing.assert_allclose(scored["advantages"].numpy(), flat[:, 0].numpy(), atol=1e-5)  # TRL's are in float32

    rollouts, mask = rollouts_of(scored), scored["completion_mask"].bool()
    train = {"kl": KL, "clip": CLIP, "prompts": PROMPTS, "rollouts": GROUP}
    config = rl_config(tmp_path, "grpo", 1, train=train)
    engine = Engine(load_model(base).double(), config, World(0, 1, torch.device("cpu")), reference=False)
    noise = [torch.from_numpy(generator("parity", i).normal(size=mask.shape)) * mask for i in range(2)]
    with torch.no_grad():
        present = engine.log_probabilities(rollouts, 1.0)[0].double()
    old, reference = present + 0.3 * noise[0] if several else None, present + 0.2 * noise[1]

    trl_trainer.model.double()
    scored |= {"advantages": flat[:, 0], "ref_per_token_logps": reference, "old_per_token_logps": old}
    loss = trl_trainer._compute_loss(trl_trainer.model, scored)
    loss.backward()
    expected = gradients(trl_trainer.model)

    batch = Batch(rollouts, flat.expand(-1, mask.shape[1]), mask, GROUP)
    rows = list(range(PROMPTS * GROUP))
    figures = _accumulate(engine, batch, rows, config.train, old, reference, float(mask.sum()))
    found = gradients(engine.model)
    assert found.keys() == expected.keys()
    assert max(float(gradient.abs().max()) for gradient in expected.values()) > 1e-2
    for name, gradient in expected.items():
        assert float((found[name] - gradient).abs().max()) <= 1e-6, name
    assert (float(figures[3]) > 0) is several, "clipping acts exactly where the old policy is another"


@pytest.mark.slow
def test_gdpo_equals_trls(trl_trainer: Any) -> None:
    trl_trainer.multi_objective_aggregation = "normalize_then_sum"
    scored, rewards = generate(trl_trainer)
    config = GdpoConfig(epsilon=EPSILON)
    found = ESTIMATORS["gdpo"].advantages(make_groups(rewards), np.zeros((PROMPTS, 0, 2)), config)
    np.testing.assert_allclose(scored["advantages"].numpy(), found.reshape(-1), atol=1e-5)
