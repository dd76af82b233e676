"""The body of ``POST /search``: everything a search needs, checked as a whole before anything is stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from evolve.config import SearchConfig
from evolve.endpoints import Endpoint, check_key_variable
from evolve.manifest import Manifest
from evolve.prompts import PromptError
from evolve.request import RequestBuilder
from evolve.strict import StrictModel, explain
from evolve.task import OpenEvolveTask, Task, TestsTask
from evolve.tests_task import check_json
from evolve.transport import check_url

MAX_RUNS = 10_000
_OWN_FIELDS = ("samples", "answers", "temperature")

Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Seed = Annotated[int, Field(ge=0, lt=2**31)]

EXAMPLE: dict[str, Any] = {
    "name": "reverse a list",
    "tasks": [
        {
            "format": "tests",
            "name": "reverse",
            "statement": "Write f(xs): the list in reverse order.",
            "entry_point": "f",
            "tests": [{"args": [[1, 2, 3]], "expected": [3, 2, 1]}, {"args": [[]], "expected": []}],
        }
    ],
    "arms": [{"name": "baseline", "endpoint": "http://127.0.0.1:8101/v1", "model": "my-model", "samples": 3}],
    "seeds": [0],
    "iterations": 50,
    "search": {"lag": 2},
}


class Arm(StrictModel):
    """One model, several together, or one configuration being compared.

    endpoint: an OpenAI-compatible ``/v1`` URL. model: the name the server knows it by.
    models: instead of these, several models and their endpoints, of which each iteration asks one, by their weights
        (or as ``search.model_bandit`` says); they have no manifest.
    manifest: the checkpoint's ``vpo.json``, for models that bring their own prompt and chain format.
    api_key_env: name of an environment variable of the worker that holds the key; the key itself is never stored.
    samples, answers, temperature: override the search's (n completions per request, m answers in each).
    search: any other field of the search configuration that this arm overrides.
    """

    name: Name
    endpoint: Annotated[str, Field(max_length=2000)] | None = None
    model: Name | None = None
    models: Annotated[tuple[Endpoint, ...], Field(max_length=16)] = ()
    manifest: Manifest | None = None
    api_key_env: str | None = None
    samples: Annotated[int, Field(ge=1, le=128)] | None = None
    answers: Annotated[int, Field(ge=1, le=64)] | None = None
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = None
    search: dict[str, Any] = Field(default_factory=dict)

    @field_validator("endpoint")
    @classmethod
    def _usable_url(cls, value: str | None) -> str | None:
        return None if value is None else check_url(value)

    @field_validator("api_key_env")
    @classmethod
    def _key_variable(cls, value: str | None) -> str | None:
        return check_key_variable(value)

    @model_validator(mode="after")
    def _one_or_several(self) -> Self:
        alone = ("endpoint", "model", "manifest", "api_key_env")
        if self.models:
            if given := [name for name in alone if getattr(self, name) is not None]:
                raise ValueError(f"{', '.join(given)}: not beside models, each of which says this for itself")
            return self
        if missing := [name for name in ("endpoint", "model") if getattr(self, name) is None]:
            raise ValueError(f"{' and '.join(missing)} missing: give endpoint and model, or several models")
        return self

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The models that it asks, and where."""
        if self.models or self.endpoint is None or self.model is None:
            return self.models
        return (Endpoint(name=self.model, endpoint=self.endpoint, api_key_env=self.api_key_env),)

    @property
    def shown_model(self) -> str:
        """Its model's name, or those of all."""
        return ", ".join(endpoint.name for endpoint in self.endpoints)

    @property
    def shown_endpoint(self) -> str:
        """Where its model is asked, or where each is."""
        return ", ".join(dict.fromkeys(endpoint.endpoint for endpoint in self.endpoints))

    @field_validator("search")
    @classmethod
    def _no_double_override(cls, value: dict[str, Any]) -> dict[str, Any]:
        for key in _OWN_FIELDS:
            if key in value:
                raise ValueError(f"{key} is a field of the arm itself: move it there")
        return value

    def config(self, base: SearchConfig, task: TestsTask | OpenEvolveTask) -> SearchConfig:
        """How this arm searches on a task: the task's own settings, then the search's, then the arm's.

        Raises pydantic's ``ValidationError``.
        """
        of_task = task.search_settings() if isinstance(task, OpenEvolveTask) else {}
        own: dict[str, Any] = {key: getattr(self, key) for key in _OWN_FIELDS if getattr(self, key) is not None}
        if self.models:
            own["models"] = tuple(endpoint.as_model for endpoint in self.models)
        return SearchConfig.model_validate({**of_task, **base.model_dump(exclude_unset=True), **self.search, **own})

    def evaluations_per_iteration(self, config: SearchConfig) -> int:
        """n * m: the most programs that one iteration of this arm can have judged."""
        return config.samples * (self.manifest.chain.m if self.manifest else config.answers)


class SearchSpec(StrictModel):
    """A job: tasks x arms x seeds, each a run of ``iterations`` iterations.

    Arms that are compared must get the same number of evaluations per iteration (samples x answers).
    """

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    name: Name
    tasks: Annotated[tuple[Task, ...], Field(min_length=1, max_length=1000)]
    arms: Annotated[tuple[Arm, ...], Field(min_length=1, max_length=32)]
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1, max_length=1000)] = (0,)
    iterations: Annotated[int, Field(ge=1, le=100_000)] = 50
    search: SearchConfig = SearchConfig()

    @property
    def runs(self) -> tuple[tuple[TestsTask | OpenEvolveTask, int, Arm], ...]:
        """Task, seed and arm of every run, in the order of their numbers: arms that are compared go side by side."""
        return tuple((task, seed, arm) for task in self.tasks for seed in self.seeds for arm in self.arms)

    def as_json(self) -> dict[str, Any]:
        """The body that says the same; of ``search`` only what was given: a task's own settings come next."""
        return self.model_dump(mode="json") | {"search": self.search.model_dump(mode="json", exclude_unset=True)}

    @model_validator(mode="after")
    def _check(self) -> Self:
        _all_different("tasks", [task.name for task in self.tasks], "rename one")
        _all_different("arms", [arm.name for arm in self.arms], "rename one")
        _all_different("seeds", self.seeds, "remove one")
        runs = len(self.tasks) * len(self.arms) * len(self.seeds)
        if runs > MAX_RUNS:
            raise ValueError(f"tasks x arms x seeds makes {runs} runs, more than {MAX_RUNS}: split the search")
        for problem in self._arm_problems():
            raise ValueError(problem)
        check_json([arm.model_dump(mode="json") for arm in self.arms])
        return self

    def _arm_problems(self) -> Iterator[str]:
        counts: dict[str, int] = {}
        for i, arm in enumerate(self.arms):
            try:
                counts[arm.name] = self._try_arm(arm)
            except ValidationError as error:
                yield f"arms[{i}].search: {explain(error)}"
            except PromptError as error:
                yield f"arms[{i}].manifest.prompt.template: {error}"
            except ValueError as error:
                yield f"arms[{i}]: {error}"
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{name} {count}" for name, count in counts.items())
            yield (
                f"arms: compared arms need the same number of evaluations per iteration, not {listed}: "
                "set samples (completions per request) so that samples x answers is equal"
            )

    def _try_arm(self, arm: Arm) -> int:
        """The arm's evaluations per iteration, if every task has a configuration and a first prompt for it."""
        for task in self.tasks:
            config = arm.config(self.search, task)
            if len(config.models) > 1 and not arm.models:
                raise ValueError("search.models names several: give the arm models, with their endpoints")
            builder = RequestBuilder(task, config, seed=0, manifest=arm.manifest)
            builder.build(1, 0, parent=None, inspirations=(), strategy="none")
        return arm.evaluations_per_iteration(config)


def _all_different(field: str, values: Sequence[object], fix: str) -> None:
    seen: dict[object, int] = {}
    for i, value in enumerate(values):
        if value in seen:
            raise ValueError(f"{field}[{i}] repeats {field}[{seen[value]}], {value!r}: {fix}")
        seen[value] = i
