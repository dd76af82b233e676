"""Models and where they are served, as configuration: what an ensemble is made of. Keys are named, never held."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, SecretStr, field_validator

from evolve.config import ModelConfig
from evolve.models import OpenAIModel, RetryPolicy
from evolve.transport import check_url

KEY_SUFFIX = "_API_KEY"
DEFAULT_TIMEOUT_S = 300.0


class MissingKey(ValueError):  # noqa: N818 (a state)
    """The environment variable that should hold a model's key is not set."""


def check_key_variable(value: str | None) -> str | None:
    """The name of a variable that is meant for a model's key: a configuration must not send away any other secret."""
    if value is not None and not (value.isascii() and value.isidentifier() and value.endswith(KEY_SUFFIX)):
        raise ValueError(
            f"must be the name of an environment variable of the worker that ends in {KEY_SUFFIX}, "
            "like OPENAI_API_KEY, not the key itself"
        )
    return value


class Endpoint(ModelConfig):
    """A model of an ensemble, and where it is asked.

    endpoint: an OpenAI-compatible ``/v1`` URL. model: the name that the server knows it by (default: ``name``).
    api_key_env: name of an environment variable that holds the key; the key itself is never stored.
    timeout_s: for one whole answer. retries, retry_delay_s: how often a failed request is sent again, and the seconds
    before the first time (doubled each time up to 20 s, or up to this where it is longer); ``None`` takes the client's
    own.
    """

    endpoint: Annotated[str, Field(max_length=2_000)]
    model: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    api_key_env: str | None = None
    timeout_s: Annotated[float, Field(gt=0.0, le=86_400.0)] | None = None
    retries: Annotated[int, Field(ge=0, le=100)] | None = None
    retry_delay_s: Annotated[float, Field(ge=0.0, le=3_600.0)] | None = None

    _usable_url = field_validator("endpoint")(check_url)
    _key_variable = field_validator("api_key_env")(check_key_variable)

    @property
    def served_as(self) -> str:
        """The name that the server knows the model by."""
        return self.model or self.name

    @property
    def as_model(self) -> ModelConfig:
        """What the search itself needs to know of it."""
        return ModelConfig.model_validate({name: getattr(self, name) for name in ModelConfig.model_fields})

    @property
    def connection(self) -> tuple[Any, ...]:
        """Equal for those that can share a client."""
        return (
            self.endpoint,
            self.served_as,
            self.api_key_env,
            self.timeout_s,
            self.retries,
            self.retry_delay_s,
        )


def open_client(
    endpoint: Endpoint, environment: Mapping[str, str] = os.environ, *, timeout_s: float = DEFAULT_TIMEOUT_S
) -> OpenAIModel:
    """A client for an endpoint. timeout_s: where it has none. Close it. Raises :class:`MissingKey`."""
    usual = RetryPolicy()
    pause = usual.base_s if endpoint.retry_delay_s is None else endpoint.retry_delay_s
    retry = RetryPolicy(
        attempts=usual.attempts if endpoint.retries is None else endpoint.retries + 1,
        base_s=pause,
        max_s=max(pause, usual.max_s),
    )
    timeout = timeout_s if endpoint.timeout_s is None else endpoint.timeout_s
    key = key_of(endpoint, environment)
    return OpenAIModel(endpoint.endpoint, endpoint.served_as, key, retry=retry, timeout_s=timeout)


def key_of(endpoint: Endpoint, environment: Mapping[str, str] = os.environ) -> SecretStr | None:
    """The key that an endpoint names, ``None`` where it names none. Raises :class:`MissingKey`."""
    name = endpoint.api_key_env
    if name is None:
        return None
    if not environment.get(name):
        raise MissingKey(f"the environment variable {name} is not set: export it, then search again")
    return SecretStr(environment[name])
