"""Settings of the estimators: one frozen type each, told apart by ``name``; unknown keys are errors.

Common settings. epsilon: added to a group's deviation (or mean) before dividing by it. weights: K, weight vectors per
prompt. alpha: the Dirichlet's concentration per component.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from evolve.strict import StrictModel

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Deviation = Literal["unbiased", "population"]


class _Settings(StrictModel):
    epsilon: NotNegative = 1e-6
    deviation: Deviation = "unbiased"


class GrpoConfig(_Settings):
    """GRPO: the task scalar of the only (first) answer."""

    name: Literal["grpo"] = "grpo"


class MultiRlvrConfig(_Settings):
    """Chains scored by the sum of their answers' task scalars."""

    name: Literal["multi_rlvr"] = "multi_rlvr"


class VpoConfig(_Settings):
    """VPO. ``deviation: population`` is what the authors released."""

    name: Literal["vpo"] = "vpo"
    weights: Count = 100
    alpha: Positive = 1.0


class RandomWeightConfig(_Settings):
    """One hidden scalarisation per prompt."""

    name: Literal["random_weight"] = "random_weight"
    alpha: Positive = 1.0


class GoalConditionedConfig(_Settings):
    """One scalarisation per prompt, which the prompt states."""

    name: Literal["goal_conditioned"] = "goal_conditioned"
    alpha: Positive = 1.0


class MaxAtKConfig(_Settings):
    """Max@K. k: answers of which the best counts; ``None``: max(2, n // 2) for n judged rollouts."""

    name: Literal["max_at_k"] = "max_at_k"
    k: Annotated[int, Field(ge=2)] | None = None


class MaxrlConfig(StrictModel):
    """MaxRL: the group's mean takes the place of the deviation."""

    name: Literal["maxrl"] = "maxrl"
    epsilon: Positive = 1e-6


class GdpoConfig(_Settings):
    """GDPO: each component normalised by itself."""

    name: Literal["gdpo"] = "gdpo"


class VpoPlusConfig(_Settings):
    """Our VPO; each part can be switched off by itself, and with all of them off it is ``vpo``.

    weights: K, a power of two where ``sobol``; ``None``: for each prompt by the number of its components that differ
        within the group, so that advantages err by less than .01 for d <= 16 (.012 at d = 32). sobol: scrambled Sobol
        points instead of pseudo-random ones.
    noise: the part of an advantage that may be integration error: the group deviation is at least the estimated
        error divided by it; 0: no floor.
    concentration: c in alpha = c / d; ``None``: the number of answers m. alpha: a fixed alpha instead of c / d.
    merge: components that no answer of the group tells apart share one dimension.
    gate: mean correlations of the components between which credit goes over to the answers' own task scalars;
        ``None``: off.
    baseline: share of the score of the answers before it that is taken off an answer's credit; 0: the whole chain has
        one credit.
    """

    name: Literal["vpo_plus"] = "vpo_plus"
    weights: Count | None = None
    sobol: bool = True
    noise: NotNegative = 0.1
    concentration: Positive | None = None
    alpha: Positive | None = None
    merge: bool = True
    gate: tuple[float, float] | None = (0.8, 0.95)
    baseline: Annotated[float, Field(ge=0, le=1)] = 0.65

    @model_validator(mode="after")
    def _consistent(self) -> VpoPlusConfig:
        if self.sobol and self.weights is not None and self.weights & (self.weights - 1):
            raise ValueError(f"`weights` must be a power of two for Sobol points, not {self.weights}: use 2048")
        if self.concentration is not None and self.alpha is not None:
            raise ValueError("give `concentration` (alpha = c / d) or `alpha` (fixed), not both")
        if self.gate is not None and not -1 <= self.gate[0] < self.gate[1] <= 1:
            raise ValueError(f"`gate` must be two increasing correlations in [-1, 1], not {self.gate}")
        return self


EstimatorConfig = Annotated[
    GrpoConfig
    | MultiRlvrConfig
    | VpoConfig
    | RandomWeightConfig
    | GoalConditionedConfig
    | MaxAtKConfig
    | MaxrlConfig
    | GdpoConfig
    | VpoPlusConfig,
    Field(discriminator="name"),
]
