"""Clients for models behind any OpenAI-compatible ``/v1`` endpoint.

Exceptions::

    ModelError
    ├── ModelRequestError   the server refused this request (4xx): asking again would not help
    └── ModelUnavailable    no answer after all retries: the endpoint is down, overloaded or wrong
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import SecretStr

from evolve.program import Reply, Usage
from evolve.request import Request
from evolve.transport import (
    Answer,
    ConnectionBroken,
    HttpTransport,
    NotConnected,
    Transport,
    check_url,
    proxy_may_reach,
)

_TOO_MANY_REQUESTS = 429
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # no database keeps NUL or lone surrogates as text
_MAX_MESSAGE = 500
_MAX_RETRY_AFTER_S = 120.0


class ModelError(Exception):
    """A model gave no reply. ``lost_calls``: requests sent whose reply never arrived."""

    def __init__(self, message: str, *, lost_calls: int = 0) -> None:
        super().__init__(message)
        self.lost_calls = lost_calls


class ModelRequestError(ModelError):
    """The server refused the request with a 4xx status; the message is the server's."""

    def __init__(self, message: str, *, status: int, lost_calls: int = 0) -> None:
        super().__init__(message, lost_calls=lost_calls)
        self.status = status


class ModelUnavailable(ModelError):  # noqa: N818 (the field's word for it)
    """The endpoint did not answer properly after all retries."""


class ModelClient(Protocol):
    """Anything that can answer a request."""

    async def complete(self, request: Request) -> Reply:
        """The reply with exactly ``request.n`` texts. Raises :class:`ModelError`."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryPolicy:
    """When to try again: ``attempts`` in all, waiting ``base_s * 2**i`` (at most ``max_s``) with full jitter between.

    A server's Retry-After is waited for instead, up to two minutes.
    """

    attempts: int = 5
    base_s: float = 0.5
    max_s: float = 20.0

    def delay(self, attempt: int, retry_after: float | None) -> float:
        """Seconds to wait after the failed attempt number ``attempt`` (from 0)."""
        if retry_after is not None:
            return min(max(retry_after, 0.0), _MAX_RETRY_AFTER_S)
        # Jitter only spreads waiting; it never reaches a result, so it need not be reproducible.
        return random.uniform(0.5, 1.0) * min(self.max_s, self.base_s * 2.0**attempt)


@dataclass(slots=True)
class _Tally:
    """What one ``complete`` has used so far."""

    calls: int = 0
    lost_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    texts: list[str] = field(default_factory=list)
    finished: list[bool] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Failure:
    """An attempt worth repeating. retry_after: seconds, where the server asked for a pause."""

    problem: str
    retry_after: float | None = None


class OpenAIModel:
    """A model on an OpenAI-compatible server. Use one per event loop, and ``aclose`` it (or ``async with``).

    base_url: with its ``/v1``. model: the name the server knows it by. api_key: sent as a bearer token, shown nowhere.
    timeout_s: for one whole answer; connecting has ``connect_timeout_s``. There are as many connections as requests at
    once, which is the search's lag. transport, sleep: seams for tests.
    Raises ``ValueError`` for an unusable URL or key.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: SecretStr | None = None,
        *,
        timeout_s: float = 300.0,
        connect_timeout_s: float = 10.0,
        retry: RetryPolicy | None = None,
        transport: Transport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.base_url, self.model = base_url.rstrip("/"), model
        self._key = api_key
        self._timeout_s = timeout_s
        _check(self.base_url, api_key)
        self._retry = retry or RetryPolicy()
        self._sleep = sleep
        self._transport: Transport = transport or HttpTransport(
            connect_timeout_s=connect_timeout_s, proxies=proxy_may_reach(self.base_url)
        )

    def __repr__(self) -> str:
        return f"OpenAIModel(base_url={self.base_url!r}, model={self.model!r})"

    async def __aenter__(self) -> OpenAIModel:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections that are kept."""
        await self._transport.aclose()

    async def complete(self, request: Request) -> Reply:
        """The model's reply, with exactly ``request.n`` texts, asked for in parts where the server ignores ``n``.

        Raises :class:`ModelRequestError` on 4xx, :class:`ModelUnavailable` after all retries.
        """
        tally = _Tally()
        started = time.monotonic()
        while len(tally.texts) < request.n:
            seed = (request.seed + len(tally.texts)) % 2**31  # the rest must not repeat what came first
            self._collect(await self._post(request, request.n - len(tally.texts), seed, tally), request, tally)
        usage = Usage(
            calls=tally.calls,
            lost_calls=tally.lost_calls,
            prompt_tokens=tally.prompt_tokens,
            completion_tokens=tally.completion_tokens,
            seconds=time.monotonic() - started,
        )
        return Reply(texts=tuple(tally.texts[: request.n]), finished=tuple(tally.finished[: request.n]), usage=usage)

    async def _post(self, request: Request, n: int, seed: int, tally: _Tally) -> dict[str, Any]:
        """The first good answer to one HTTP request, however many attempts that takes."""
        url = self.base_url + ("/completions" if request.messages is None else "/chat/completions")
        body = json.dumps(self._body(request, n, seed)).encode()
        problem = "no attempt was made"
        for attempt in range(self._retry.attempts):
            outcome = await self._attempt(url, body, tally)
            if not isinstance(outcome, _Failure):
                return outcome
            problem = outcome.problem
            if attempt + 1 < self._retry.attempts:
                await self._sleep(self._retry.delay(attempt, outcome.retry_after))
        message = f"{self.base_url} gave no reply in {self._retry.attempts} attempts: {problem}"
        raise ModelUnavailable(message, lost_calls=tally.lost_calls)

    async def _attempt(self, url: str, body: bytes, tally: _Tally) -> dict[str, Any] | _Failure:
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._transport.post(url, body, self._headers())
        except NotConnected as error:
            return _Failure(f"cannot connect ({error}): is the server running and the URL right?")
        except TimeoutError:
            tally.lost_calls += 1
            return _Failure(f"no whole reply within {self._timeout_s:g} s: raise the timeout or ask for fewer tokens")
        except ConnectionBroken as error:
            tally.lost_calls += 1
            return _Failure(f"the connection failed before the reply came ({error})")
        payload, status = _json(answer), answer.status
        if status == 200 and _has_choices(payload):
            tally.calls += 1
            return payload
        problem = self._problem(url, answer, payload)
        if 300 <= status < 500 and status != _TOO_MANY_REQUESTS:
            raise ModelRequestError(problem, status=status, lost_calls=tally.lost_calls)
        return _Failure(problem, _retry_after(answer))

    def _body(self, request: Request, n: int, seed: int) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "n": n,
            "seed": seed,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "max_tokens": request.max_tokens,
        }
        if request.stop:
            body["stop"] = list(request.stop)
        if request.messages is None:
            body["prompt"] = request.text
        else:
            body["messages"] = list(request.messages)
        return body

    def _headers(self) -> dict[str, str]:
        said = {"Authorization": f"Bearer {self._key.get_secret_value()}"} if self._key else {}
        return {"Content-Type": "application/json"} | said

    def _problem(self, url: str, answer: Answer, payload: dict[str, Any]) -> str:
        said = payload.get("error", payload.get("message", payload.get("detail")))
        said = said.get("message", said) if isinstance(said, dict) else said
        text = answer.body.decode(errors="replace")
        message = said if isinstance(said, str) else json.dumps(said) if said is not None else text
        if answer.status == 200:
            message = "the answer has no choices: is this an OpenAI-compatible endpoint with /v1 in its URL?"
        if self._key and self._key.get_secret_value():  # some servers repeat the key in their complaint
            message = message.replace(self._key.get_secret_value(), "***")
        return f"{url} answered {answer.status}: {message.strip()[:_MAX_MESSAGE]}"

    @staticmethod
    def _collect(payload: dict[str, Any], request: Request, tally: _Tally) -> None:
        for choice in sorted(payload["choices"], key=lambda choice: choice.get("index") or 0):
            text = choice.get("text") if request.messages is None else (choice.get("message") or {}).get("content")
            tally.texts.append(_UNSTORABLE.sub("\ufffd", text) if isinstance(text, str) else "")
            tally.finished.append(choice.get("finish_reason") != "length")
        usage = payload.get("usage")
        tally.prompt_tokens += _count(usage, "prompt_tokens")
        tally.completion_tokens += _count(usage, "completion_tokens")


def _check(base_url: str, api_key: SecretStr | None) -> None:
    try:
        check_url(base_url)
    except ValueError as error:
        raise ValueError(f"the model's URL {error}") from None
    key = api_key.get_secret_value() if api_key else ""
    if not (key.isascii() and key.isprintable()):  # else the complaint about a header would repeat it
        raise ValueError("the API key must consist of printable ASCII characters (is there a line break at its end?)")


def _count(usage: object, name: str) -> int:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and value > 0 else 0


def _has_choices(payload: dict[str, Any]) -> bool:
    choices = payload.get("choices")
    return isinstance(choices, list) and bool(choices) and all(isinstance(choice, dict) for choice in choices)


def _json(answer: Answer) -> dict[str, Any]:
    try:
        payload = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return payload if isinstance(payload, dict) else {}


def _retry_after(answer: Answer) -> float | None:
    found = next((value for name, value in answer.headers.items() if name.lower() == "retry-after"), "")
    try:
        seconds = float(found)
    except ValueError:  # absent, or an HTTP date: fall back to backoff
        return None
    return None if math.isnan(seconds) else seconds
