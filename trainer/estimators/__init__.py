"""Estimators: pure functions from a group's reward vectors to advantages; one file each, one registry.

    estimator = ESTIMATORS[config.name]
    groups = make_groups(rewards, components=..., scalars=..., failed=..., prompts=...)
    weights = estimator.draw(groups, config, seed, step)          # (P, K, D); K = 0 where none are used
    advantages = estimator.advantages(groups, weights, config)    # (P, G, m)

An estimator whose prompts state the weights (``goal_conditioned``) has ``goals``; the loop calls it before sampling.

Advantages (P, G, m) become token advantages by the answers' places in the text: a token belongs to the answer that it
leads to, so reasoning before the first answer is the first one's, and the end mark of an unfinished chain is that of
the first missing answer. The place depends on the text before the token alone, which is what makes a baseline per
place valid. Advantages of rollouts that the infrastructure failed to judge are zero; leave their tokens
(``~groups.valid``) out of the loss. With several processes, gather rewards and compute advantages for the whole batch
in each (it is cheap, and ``gdpo`` whitens over the batch), or give ``prompts`` their indices in the whole step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.estimators.gdpo import gdpo
from trainer.estimators.goal import goals, single_weight
from trainer.estimators.groups import Booleans, Floats, Groups
from trainer.estimators.grpo import grpo
from trainer.estimators.max_at_k import max_at_k
from trainer.estimators.maxrl import maxrl
from trainer.estimators.multi_rlvr import multi_rlvr
from trainer.estimators.vpo import vpo
from trainer.estimators.vpo_plus import vpo_plus, vpo_plus_weights
from trainer.estimators.weights import dirichlet_weights


@dataclass(frozen=True, slots=True)
class Estimator:
    """One estimator; ``config`` is its type of :mod:`trainer.estimators.config`.

    advantages: (groups, weights, config) -> advantages (P, G, m), equal along m without credit per answer.
    draw: (groups, config, seed, step) -> weights (P, K, D), points of each prompt's simplex; with ``vpo_plus`` a prompt
        may have fewer than K of them, then zero rows.
    goals: (components (P, D), prompts (P,), config, seed, step) -> weights (P, D) that the prompts must state.
    """

    advantages: Callable[[Groups, Floats, Any], Floats]
    draw: Callable[[Groups, Any, int, int], Floats]
    goals: Callable[[Booleans, NDArray[np.int64], Any, int, int], Floats] | None = None


def _no_weights(groups: Groups, config: Any, seed: int, step: int) -> Floats:
    del config, seed, step
    return np.zeros((len(groups.rewards), 0, groups.rewards.shape[3]))


def _dirichlet(groups: Groups, config: Any, seed: int, step: int) -> Floats:
    return dirichlet_weights(groups.components, groups.prompts, config.weights, config.alpha, seed, step)


def _one_weight(groups: Groups, config: Any, seed: int, step: int) -> Floats:
    return goals(groups.components, groups.prompts, config, seed, step)[:, None]


ESTIMATORS: dict[str, Estimator] = {
    "grpo": Estimator(grpo, _no_weights),
    "multi_rlvr": Estimator(multi_rlvr, _no_weights),
    "vpo": Estimator(vpo, _dirichlet),
    "random_weight": Estimator(single_weight, _one_weight),
    "goal_conditioned": Estimator(single_weight, _one_weight, goals),
    "max_at_k": Estimator(max_at_k, _no_weights),
    "maxrl": Estimator(maxrl, _no_weights),
    "gdpo": Estimator(gdpo, _no_weights),
    "vpo_plus": Estimator(vpo_plus, vpo_plus_weights),
}
