"""What estimators cost, and how far advantages are from those of (practically) infinitely many weights.

CPU milliseconds of drawing weights and computing advantages for a step of 24 prompts, 8 rollouts, 3 answers and d = 8
components, medians over repetitions with new weights each; the peer is ``vpo`` as published (K = 100). Then the error,
mean |dA|, of ``vpo`` and ``vpo_plus`` as a function of d and K, over binary and graded rewards.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

import torch
from pydantic import TypeAdapter

from benchmarks.figures import Figure, run
from evolve.randomness import generator
from trainer.estimators import ESTIMATORS
from trainer.estimators.accuracy import advantage_error
from trainer.estimators.config import EstimatorConfig, VpoConfig, VpoPlusConfig
from trainer.estimators.groups import Groups, make_groups

PROMPTS, ROLLOUTS, M = 24, 8, 3
TYPICAL = 8
DIMENSIONS = (2, 4, 8, 16)
COUNTS = {"vpo": (100, 1000, 10_000), "vpo_plus": (256, 512, 1024, 2048, 4096)}
GROUPS, DRAWS, REPETITIONS = 8, 2, 15


def random_groups(d: int, *, prompts: int = PROMPTS, graded: bool = False) -> Groups:
    """Groups whose answers pass each of d tests with a chance of its own, or earn a uniform part of it."""
    rng = generator(d, "estimators")
    rewards = rng.random((prompts, ROLLOUTS, M, d))
    return make_groups(rewards if graded else (rewards < rng.uniform(0.2, 0.8, (prompts, 1, 1, d))).astype(float))


def cpu_ms(name: str, groups: Groups, **settings: Any) -> float:
    """Of one step's advantages, from rewards; the first call, which fills tables, is left out."""
    config, estimator = TypeAdapter(EstimatorConfig).validate_python({"name": name, **settings}), ESTIMATORS[name]
    found = []
    for step in range(REPETITIONS + 1):
        started = time.process_time()
        estimator.advantages(groups, estimator.draw(groups, config, 0, step), config)
        found.append(time.process_time() - started)
    return 1000 * statistics.median(found[1:])


def error(config: VpoConfig | VpoPlusConfig, d: int) -> float:
    """The larger of the mean errors for binary and for graded rewards."""
    kinds = [random_groups(d, prompts=GROUPS, graded=graded) for graded in (False, True)]
    return max(advantage_error(groups, config, draws=DRAWS) for groups in kinds)


def measure() -> Sequence[Figure]:
    """All figures."""
    torch.set_num_threads(1)
    groups = random_groups(TYPICAL)
    times = {name: cpu_ms(name, groups) for name in ESTIMATORS}
    figures = [
        Figure(name=f"{name}_cpu_ms", value=value, unit="ms a step", peer="vpo", peer_value=times["vpo"])
        for name, value in times.items()
    ]
    figures += [
        Figure(name=f"vpo_plus_cpu_ms_d{d}", value=cpu_ms("vpo_plus", random_groups(d)), unit="ms a step")
        for d in DIMENSIONS
    ]
    for d in DIMENSIONS:
        plain = error(VpoConfig(), d)
        chosen = error(VpoPlusConfig(), d)
        default = Figure(name=f"vpo_plus_error_d{d}", value=chosen, unit="mean |dA|", peer="vpo", peer_value=plain)
        figures += [default, *_errors_by_count(d)]
    return figures


def _errors_by_count(d: int) -> list[Figure]:
    settings = {"vpo": VpoConfig, "vpo_plus": VpoPlusConfig}
    return [
        Figure(name=f"{name}_error_d{d}_k{count}", value=error(settings[name](weights=count), d), unit="mean |dA|")
        for name, counts in COUNTS.items()
        for count in counts
    ]


if __name__ == "__main__":
    run("estimators", measure)
