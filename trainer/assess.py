"""``python -m trainer eval``: what a checkpoint finds by sampling alone, with intervals, and what each place does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from evolve.manifest import Manifest, read_manifest
from trainer.config import EvalConfig, HardwareConfig
from trainer.distributed import start_world
from trainer.domains import make_domain
from trainer.estimators import ESTIMATORS
from trainer.evaluate import Judgement, held_out_answers, intervals, positions, problem_figures
from trainer.model import load_model, load_tokenizer
from trainer.rollout.torch_sampler import TorchSampler

KS = (1, 3, 10, 30)


def figures_at(answers: int) -> tuple[int, ...]:
    """The ks of the tables: those of the paper that fit, and all answers."""
    return tuple(sorted({*(k for k in KS if k < answers), answers}))


def assess(
    checkpoint: Path, config: EvalConfig, hardware: HardwareConfig, *, m: int | None = None
) -> tuple[Manifest, list[Judgement]]:
    """Ask a checkpoint its domain's held-out problems, as its manifest says; ``m``: other than what it was trained for.

    Raises :class:`evolve.manifest.ManifestError` where the folder has no manifest.
    """
    manifest = read_manifest(checkpoint)
    domain = make_domain(manifest.domain, manifest.training.get("options", {}))
    device = start_world(hardware).device
    model = load_model(checkpoint).to(device).eval()
    if hardware.precision == "bfloat16":
        model.to(torch.bfloat16)
    sampler = TorchSampler(model, load_tokenizer(checkpoint))
    estimator = ESTIMATORS.get(manifest.estimator)
    goals = estimator is not None and estimator.goals is not None
    with asyncio.Runner() as runner:
        found = held_out_answers(sampler, domain, m or manifest.chain.m, config, runner, goals=goals)
        runner.run(domain.close())
    return manifest, found


def figures_by_problem(found: Sequence[Judgement], answers: int) -> list[dict[str, float]]:
    """The figures of each problem at :func:`figures_at`."""
    return [problem_figures(one, figures_at(answers)) for one in found]


def report(
    manifest: Manifest, found: Sequence[Judgement], rows: Sequence[dict[str, float]], answers: int
) -> dict[str, Any]:
    """The figures of a checkpoint as one JSON object; ``rows``: those of :func:`figures_by_problem`."""
    return {
        "name": manifest.name,
        "domain": manifest.domain,
        "estimator": manifest.estimator,
        "m": found[0].scalars.shape[1],
        "problems": len(found),
        "answers": answers,
        "generated_tokens": sum(one.tokens for one in found),
        "figures": intervals(rows),
        "positions": positions(found),
    }
