"""A policy-gradient step of the trainer against TRL's GRPOTrainer on the same work, in this process, one thread.

The same model (the shipped ``checkpoints/minicode-base``), prompts, number and length of generations, and KL term; the
learning rate is next to nothing, so both sample from the same policy throughout. CPU seconds, medians over steps.
"""

from __future__ import annotations

import statistics
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.figures import Figure, run
from evolve.randomness import generator
from trainer.config import TrainConfig
from trainer.domains.minicode.domain import MinicodeDomain
from trainer.estimators.accuracy import advantage_error
from trainer.estimators.config import VpoPlusConfig
from trainer.estimators.groups import make_groups
from trainer.loop import Training
from trainer.prompts import Item, make_problem
from trainer.scoring import answers_of

STEPS, WARM_UP = 6, 8  # the first steps also fill the estimator's tables
PROMPTS, ROLLOUTS, M = 8, 8, 3
DIMENSIONS = (4, 6, 8, 10, 12, 16)
BASE = Path(__file__).resolve().parents[1] / "checkpoints" / "minicode-base"


def _ours(folder: Path) -> list[dict[str, Any]]:
    """Rows of our steps."""
    rows: list[dict[str, Any]] = []
    train = {
        "kind": "rl",
        "steps": STEPS + WARM_UP,
        "estimator": {"name": "vpo_plus"},
        "prompts": PROMPTS,
        "rollouts": ROLLOUTS,
        "m": M,
        "mutation_share": 0.0,
        "optimizer": {"lr": 1e-12},
    }
    document = {
        "name": "ours",
        "output": folder / "ours",
        "init": BASE,
        "train": train,
        "evaluation": {"problems": 1, "answers": 1},
        "watch": {"tensorboard": False},
    }
    Training(TrainConfig.model_validate(document), rows.append).run()
    return [row for row in rows if "evaluation" not in row][WARM_UP:]


def _trl(folder: Path) -> tuple[list[float], float]:
    """CPU seconds of each of TRL's steps, and its tokens per step."""
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    domain = MinicodeDomain()
    items = [Item((step, index)) for step in range(STEPS + WARM_UP) for index in range(PROMPTS)]
    problems = [make_problem(domain, 0, item) for item in items]
    data = Dataset.from_list([{"prompt": domain.prompt(p, M, None), "index": i} for i, p in enumerate(problems)])
    tokens: list[int] = []

    def reward(completions: list[str], completion_ids: list[list[int]], index: list[int], **_: Any) -> list[float]:
        tokens.append(sum(map(len, completion_ids)))
        return [
            max((float(domain.rewards(problems[i], answer.text).mean()) for answer in answers_of(text, M)), default=0.0)
            for text, i in zip(completions, index, strict=True)
        ]

    seconds: list[float] = []

    class Clock(TrainerCallback):
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            self.started = time.process_time()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            seconds.append(time.process_time() - self.started)

    arguments = GRPOConfig(
        output_dir=str(folder / "trl"),
        per_device_train_batch_size=PROMPTS * ROLLOUTS,
        num_generations=ROLLOUTS,
        max_completion_length=domain.prompt_format(M).max_tokens,
        max_steps=STEPS + WARM_UP,
        learning_rate=1e-12,
        lr_scheduler_type="constant",
        beta=0.02,
        use_bias_correction_kl=False,  # plain k3, as ours
        temperature=1.0,
        loss_type="bnpo",  # the token mean over the batch, as ours
        gradient_checkpointing=False,
        bf16=False,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        shuffle_dataset=False,
        seed=0,
    )
    GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32),
        reward_funcs=reward,
        args=arguments,
        train_dataset=data,
        processing_class=AutoTokenizer.from_pretrained(BASE),
        callbacks=[Clock()],
    ).train()
    return seconds[WARM_UP:], statistics.mean(tokens[WARM_UP:])


def _advantage_error(config: VpoPlusConfig) -> float:
    """The largest error over d <= 16, on random binary and graded reward vectors."""
    errors = []
    for d in DIMENSIONS:
        rng = generator(d, "advantage error")
        graded = rng.random((16, ROLLOUTS, M, d))
        binary = (graded < rng.random((16, 1, 1, d))).astype(float)
        errors += [advantage_error(make_groups(rewards), config) for rewards in (graded, binary)]
    return float(np.max(errors))


def measure() -> Sequence[Figure]:
    """All figures."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = _ours(folder)
        trl, trl_tokens = _trl(folder)
    ours = statistics.median(row["cpu_s"] for row in rows)
    totals = [row["tokens"] for row in rows]
    tokens = (totals[-1] - totals[0]) / (len(totals) - 1)
    share = sum(row["estimator_s"] for row in rows) / sum(row["cpu_s"] for row in rows)
    return [
        Figure(name="cpu_s_per_step", value=ours, unit="s", peer="trl 1.16", peer_value=statistics.median(trl)),
        Figure(name="tokens_per_step", value=tokens, unit="tokens", peer="trl 1.16", peer_value=trl_tokens),
        Figure(name="estimator_share", value=share, unit="of a step"),
        Figure(name="advantage_error", value=_advantage_error(VpoPlusConfig()), unit="mean |dA|"),
    ]


if __name__ == "__main__":
    run("trainer", measure)
