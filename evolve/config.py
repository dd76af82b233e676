"""What a search is told: the part of a job that says how one evolutionary loop behaves."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from evolve.strict import StrictModel

BUILT_IN_FEATURES = ("length", "passed", "scalar", "complexity", "diversity", "embedding")
MAX_GRID_DIMENSIONS = 4
METRIC_PREFIX = "metric:"
STRATEGY_NAMES = (
    "lexicase",
    "epsilon_lexicase",
    "downsampled_lexicase",
    "dirichlet",
    "complement",
    "elite",
    "exploit",
    "explore",
)
"""The keys of :data:`evolve.selection.STRATEGIES`, in the order in which one is drawn."""
OPERATOR_NAMES = ("improve", "crossover", "repair", "diverge", "simplify")
"""The keys of :data:`evolve.operators.OPERATORS`, in the order in which one is drawn."""

Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Weight = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Temperature = Annotated[float, Field(ge=0.0, le=2.0)]
TopP = Annotated[float, Field(gt=0.0, le=1.0)]
MaxTokens = Annotated[int, Field(ge=1, le=131_072)]


class FeatureConfig(StrictModel):
    """One dimension of the archive's feature space; with ``embedding``, several.

    name: ``length`` (characters of the source, on a log2 scale from 16), ``passed`` (number of tests passed),
        ``scalar`` (the task scalar), ``complexity`` (nodes of the syntax tree, on a log2 scale from 8), ``diversity``
        (mean absolute difference between its reward vector and the seed program's), ``embedding`` (how its code differs
        from the seed program's, by hashed n-grams of its syntax tree: :mod:`evolve.embedding`) or ``metric:NAME`` (a
        raw metric of the evaluator).
    bins: cells along each dimension of a grid.
    low, high: range of a ``metric:`` feature; values outside fall in the first or last bin.
    dimensions: of an ``embedding``; ``None`` makes it two.
    """

    name: str
    bins: Annotated[int, Field(ge=1, le=64)] = 12
    low: float | None = None
    high: float | None = None
    dimensions: Annotated[int, Field(ge=1, le=32)] | None = None

    @property
    def width(self) -> int:
        """Its number of dimensions."""
        return 1 if self.name != "embedding" else self.dimensions or 2

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.dimensions is not None and self.name != "embedding":
            raise ValueError(f"feature {self.name!r} has one dimension: remove dimensions")
        ranged = self.name.startswith(METRIC_PREFIX) and len(self.name) > len(METRIC_PREFIX)
        if not ranged and self.name not in BUILT_IN_FEATURES:
            raise ValueError(f"feature {self.name!r} is unknown: use one of {BUILT_IN_FEATURES} or metric:NAME")
        if ranged and (self.low is None or self.high is None or not self.low < self.high):
            raise ValueError(f"feature {self.name!r} needs low < high, not {self.low!r} and {self.high!r}")
        if not ranged and (self.low is not None or self.high is not None):
            raise ValueError(f"feature {self.name!r} has a fixed range: remove low and high")
        return self


class ArchiveConfig(StrictModel):
    """One island's archive.

    kind: ``grid`` (MAP-Elites), ``cvt`` (Voronoi cells) or ``elite`` (the ``capacity`` best programs, no niches).
    features: dimensions of the grid or of the Voronoi cells' space; each cell keeps its best program. A ``cvt`` without
        features divides the space of reward vectors, that is, of test patterns.
    centroids: Voronoi cells of a ``cvt``.
    capacity: reward niches kept beside the cells (one per pattern of the reward vector); cells have their own bound,
        the product of the grid's bins or ``centroids``.
    levels: steps into which each reward component is divided to tell reward niches apart (1.0 is a level of its own);
        with pass/fail tests a niche is exactly a pass pattern.
    novelty: a program whose reward vector differs from that of a member at least as good by less than this (mean
        absolute difference, in [0, 1]) does not enter, whatever its cell; 0: never rejected.
    """

    kind: Literal["grid", "cvt", "elite"] = "grid"
    features: Annotated[tuple[FeatureConfig, ...], Field(max_length=4)] = (
        FeatureConfig(name="length"),
        FeatureConfig(name="passed"),
    )
    centroids: Annotated[int, Field(ge=2, le=2_048)] = 256
    capacity: Annotated[int, Field(ge=1, le=262_144)] = 512
    levels: Annotated[int, Field(ge=1, le=250)] = 16
    novelty: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0

    @model_validator(mode="after")
    def _check(self) -> Self:
        names = [feature.name for feature in self.features]
        if len(set(names)) != len(names):
            raise ValueError(f"features must differ from each other, not {names}")
        width = sum(feature.width for feature in self.features)
        if self.kind == "grid" and width > MAX_GRID_DIMENSIONS:
            raise ValueError(f"a grid has at most {MAX_GRID_DIMENSIONS} dimensions, not {width}: use kind 'cvt'")
        return self


class SelectionConfig(StrictModel):
    """How parents are chosen: the weight of each strategy (they need not sum to one; not all may be zero).

    lexicase: filter by the tests in random order. epsilon_lexicase: the same on raw rewards, where what is within
        ``epsilon`` of the best stays. downsampled_lexicase: lexicase on a random share ``downsample`` of the tests.
    dirichlet: best for one random weighting of the reward components. complement: adds the most to what the island's
        best program passes, under such a weighting.
    elite: the best task scalar. exploit: one of the ``elites`` best. explore: any member of the archive.
    concentration: c of the weights' distribution Dirichlet(c/d) over d components. alpha: that distribution's parameter
        itself, whatever d; ``None`` takes c/d.
    epsilon: in reward units; ``None``: each component's median absolute deviation.
    pool: an archive with more members than this is seen through a sample: its ``elites`` best and others at random.
    """

    lexicase: Weight = 0.35
    epsilon_lexicase: Weight = 0.0
    downsampled_lexicase: Weight = 0.0
    dirichlet: Weight = 0.25
    complement: Weight = 0.0
    elite: Weight = 0.1
    exploit: Weight = 0.15
    explore: Weight = 0.15
    concentration: Annotated[float, Field(gt=0.0, le=1e6)] = 3.0
    alpha: Annotated[float, Field(gt=0.0, le=1e6)] | None = None
    epsilon: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    downsample: Annotated[float, Field(gt=0.0, le=1.0)] = 0.25
    elites: Annotated[int, Field(ge=1, le=1024)] = 16
    pool: Annotated[int, Field(ge=16, le=65_536)] = 1024

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not sum(self.weights().values()) > 0:
            raise ValueError(f"at least one of {', '.join(STRATEGY_NAMES)} must be positive")
        return self

    def weights(self) -> dict[str, float]:
        """Names and weights of the strategies that have any, in a fixed order."""
        return {name: getattr(self, name) for name in STRATEGY_NAMES if getattr(self, name) > 0}

    @classmethod
    def only(cls, strategy: str, **settings: float | int | None) -> Self:
        """The configuration that uses one strategy alone."""
        return cls.model_validate(dict.fromkeys(STRATEGY_NAMES, 0.0) | {strategy: 1.0} | settings)


class BanditConfig(StrictModel):
    """How one of several arms is chosen; see :mod:`evolve.bandit`.

    policy: ``fixed`` (by weight), ``ucb`` or ``thompson``. exploration: ``ucb``'s c.
    cost_weight: power of the relative cost that an arm's value is divided by; 0: cost does not count.
    discount: what an observation still counts one observation later.
    """

    policy: Literal["fixed", "ucb", "thompson"] = "fixed"
    exploration: Annotated[float, Field(ge=0.0, le=100.0)] = 0.5
    cost_weight: Annotated[float, Field(ge=0.0, le=4.0)] = 0.0
    discount: Annotated[float, Field(gt=0.0, le=1.0)] = 0.99


class OperatorsConfig(StrictModel):
    """What a model is asked to do with a parent: the weight of each prompt operator (not all may be zero).

    improve: make it better. crossover: combine it with a program that passes what it fails. repair: mend one failing
        test. diverge: another approach. simplify: the same, shorter.
    bandit: how one is chosen; an operator gains when a child has a higher task scalar than its parents, and costs
        tokens.

    A compact model gets only those that its template can carry (see :mod:`evolve.operators`).
    """

    improve: Weight = 1.0
    crossover: Weight = 0.0
    repair: Weight = 0.0
    diverge: Weight = 0.0
    simplify: Weight = 0.0
    bandit: BanditConfig = BanditConfig()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not sum(self.weights().values()) > 0:
            raise ValueError(f"at least one of {', '.join(OPERATOR_NAMES)} must be positive")
        return self

    def weights(self) -> dict[str, float]:
        """Names and weights of the operators, in a fixed order."""
        return {name: getattr(self, name) for name in OPERATOR_NAMES}


class ModelConfig(StrictModel):
    """One model that a run may ask, its prices, and how it is asked.

    name: as records and clients know it. weight: how often it is asked, where the bandit is ``fixed``.
    prompt_price, completion_price: per million tokens, in any one currency.
    temperature, top_p, max_tokens: for this model, instead of the search's.
    """

    name: Annotated[str, Field(min_length=1, max_length=200)]
    weight: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] = 1.0
    prompt_price: Weight = 0.0
    completion_price: Weight = 0.0
    temperature: Temperature | None = None
    top_p: TopP | None = None
    max_tokens: MaxTokens | None = None


class BudgetConfig(StrictModel):
    """When a run ends before its iterations do: at whatever is reached first; ``None`` sets no limit.

    calls: model requests, those in vain included. tokens: of prompts and completions together. cost: in the currency
        of the models' prices. seconds: of wall time while the run is worked on. What is in flight when one of these is
        reached (up to ``lag - 1`` iterations) is finished and kept.
    target: task scalar that is good enough; pending work is cancelled.
    stagnation: iterations without a better task scalar.
    """

    calls: Annotated[int, Field(ge=1)] | None = None
    tokens: Annotated[int, Field(ge=1)] | None = None
    cost: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] | None = None
    seconds: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] | None = None
    target: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    stagnation: Annotated[int, Field(ge=1)] | None = None


class CascadeConfig(StrictModel):
    """When a candidate is judged by a part of its task's tests only; see :mod:`evolve.cascade`.

    first: tests of the first stage, in the task's order. threshold: mean reward on these, in [0, 1], that the other
    tests are run for. 0 runs all tests of every candidate; a candidate that can still solve the task always gets them.
    Tests that are not run count 0. Tasks in OpenEvolve's format have cascades of their own, and are left to these.
    """

    first: Annotated[int, Field(ge=1, le=2_000)]
    threshold: Annotated[float, Field(ge=0.0, le=1.0)]


class SearchConfig(StrictModel):
    """How one run searches.

    strategy: ``evolve``, or ``sample`` (repeated sampling from scratch: no parents, no population).
    lag: iteration t sees the results of iterations up to t - lag; at most ``lag`` are in flight (1: sequential).
    samples, answers: completions per request (n), and answers asked for in each (m) where the model has no manifest;
        a manifest's chain decides m. An iteration makes at most n * m children.
    edit: ``whole`` (complete programs), ``diff`` (SEARCH/REPLACE against the parent) or ``auto``: whichever the model
        manages at the fewest tokens, as measured on the way; with answers > 1 that includes asking for them one by one.
    operators: what the model is asked to do with a parent.
    inspirations: other programs shown beside the parent. history: changes shown that led to the parent. notes: whether
        a chat prompt sums up what the run has learnt so far.
    scratch_probability: share of prompts without a parent. scratch_when_zero: also where the chosen parent has an
        all-zero reward vector. A task in OpenEvolve's format is asked with its seed program instead: only that says
        what its evaluator expects.
    prompt_chars: bound on the task's part of a chat prompt (its worked example adds about 2,000 characters); ``None``
        allows about 45,000. A small model needs about three characters per token of its context left by max_tokens.
    prompt_tokens: bound on a whole chat prompt in tokens: of the model's tokenizer where the search was given one, else
        estimated (:mod:`evolve.tokens`). The task's parts shrink first, then the worked example goes.
    temperature, top_p, max_tokens: of the model request; ``None`` takes the manifest's max_tokens, else 1024. A
        completion manifest always decides its own.
    islands, migration_interval, migration_count: every ``interval`` iterations each island sends copies of its best
        ``count`` programs to the next. migration_trigger: ``stagnation`` sends them only to an island that has had
        ``interval`` turns without a better task scalar; restart_stagnant: which then starts anew from the seed program
        and these copies.
    models: the models, their weights, prices and own sampling parameters. model_bandit: how one of several is chosen; a
        model gains when a child is better than its parents, and costs what its prices say (without prices: seconds).
    budget: limits beside the number of iterations.
    cascade: judges hopeless candidates by the first tests only; ``None``: every candidate by all.
    max_source_chars: a longer program is refused without being judged; ``None``: any length.
    dedupe: a program that the run already knows is neither judged again nor counted.
    stop_when_solved: end the run with the iteration that solves the task.
    """

    strategy: Literal["evolve", "sample"] = "evolve"
    lag: Annotated[int, Field(ge=1, le=256)] = 1
    samples: Annotated[int, Field(ge=1, le=128)] = 1
    answers: Annotated[int, Field(ge=1, le=64)] = 1
    edit: Literal["whole", "diff", "auto"] = "whole"
    operators: OperatorsConfig = OperatorsConfig()
    inspirations: Annotated[int, Field(ge=0, le=16)] = 2
    history: Annotated[int, Field(ge=0, le=16)] = 2
    notes: bool = False
    scratch_probability: Probability = 0.1
    scratch_when_zero: bool = True
    prompt_chars: Annotated[int, Field(ge=200, le=1_000_000)] | None = None
    prompt_tokens: Annotated[int, Field(ge=100, le=10_000_000)] | None = None
    temperature: Temperature = 1.0
    top_p: TopP = 1.0
    max_tokens: MaxTokens | None = None
    islands: Annotated[int, Field(ge=1, le=64)] = 2
    migration_interval: Annotated[int, Field(ge=1)] = 10
    migration_count: Annotated[int, Field(ge=0, le=64)] = 2
    migration_trigger: Literal["interval", "stagnation"] = "interval"
    restart_stagnant: bool = False
    models: Annotated[tuple[ModelConfig, ...], Field(max_length=16)] = ()
    model_bandit: BanditConfig = BanditConfig()
    budget: BudgetConfig = BudgetConfig()
    cascade: CascadeConfig | None = None
    archive: ArchiveConfig = ArchiveConfig()
    selection: SelectionConfig = SelectionConfig()
    max_source_chars: Annotated[int, Field(ge=1)] | None = None
    dedupe: bool = True
    stop_when_solved: bool = True

    @model_validator(mode="after")
    def _check(self) -> Self:
        names = [model.name for model in self.models]
        if len(set(names)) != len(names):
            raise ValueError(f"models must differ in name from each other, not {names}")
        if self.budget.cost is not None and not any(m.prompt_price or m.completion_price for m in self.models):
            raise ValueError("budget.cost needs prices: give models with prompt_price and completion_price")
        if self.restart_stagnant and self.migration_trigger != "stagnation":
            raise ValueError("restart_stagnant needs migration_trigger 'stagnation'")
        return self
