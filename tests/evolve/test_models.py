"""The model client: failures over a scripted transport, the rest over a real HTTP server on loopback."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from evolve.models import ModelRequestError, ModelUnavailable, OpenAIModel, RetryPolicy
from evolve.request import Request
from evolve.transport import Answer, ConnectionBroken, NotConnected, proxy_may_reach
from tests.evolve.http_server import serving

KEY = "sk-very-secret-0123456789"
TEXT = Request(
    iteration=1, island=0, text="Once", n=2, m=1, seed=7, temperature=0.5, top_p=0.9, max_tokens=9, stop=("X",)
)
CHAT = Request(iteration=1, island=0, messages=({"role": "user", "content": "Hello"},), n=1, m=1, seed=7)

Scripted = httpx.Response | Exception


def choices(*texts: str, reason: str = "stop", **usage: int) -> httpx.Response:
    found = [{"index": i, "text": text, "finish_reason": reason} for i, text in enumerate(texts)]
    return httpx.Response(200, json={"choices": found, "usage": usage or {"prompt_tokens": 3, "completion_tokens": 5}})


class Script:
    """A transport that plays answers in order, and notes requests and pauses."""

    def __init__(self, *answers: Scripted) -> None:
        self.answers = list(answers)
        self.bodies: list[dict[str, Any]] = []
        self.requests: list[tuple[str, Mapping[str, str]]] = []
        self.pauses: list[float] = []

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        self.requests.append((url, headers))
        self.bodies.append(json.loads(body))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Answer(answer.status_code, answer.content, answer.headers)

    async def aclose(self) -> None:
        """Nothing to close."""

    def model(self, *, key: str | None = KEY, attempts: int = 4) -> OpenAIModel:
        async def sleep(seconds: float) -> None:
            self.pauses.append(seconds)

        return OpenAIModel(
            "http://127.0.0.1:9/v1/",
            "tiny",
            SecretStr(key) if key else None,
            retry=RetryPolicy(attempts=attempts),
            transport=self,
            sleep=sleep,
        )


async def test_a_completion_request_says_everything() -> None:
    script = Script(choices("a", "b"))
    reply = await script.model().complete(TEXT)
    assert script.bodies == [
        {
            "model": "tiny",
            "n": 2,
            "seed": 7,
            "temperature": 0.5,
            "top_p": 0.9,
            "max_tokens": 9,
            "stop": ["X"],
            "prompt": "Once",
        }
    ]
    assert script.requests[0][0] == "http://127.0.0.1:9/v1/completions"
    assert script.requests[0][1]["Authorization"] == f"Bearer {KEY}"
    assert reply.texts == ("a", "b")
    assert reply.finished == (True, True)
    usage = reply.usage
    assert (usage.calls, usage.lost_calls, usage.prompt_tokens, usage.completion_tokens) == (1, 0, 3, 5)


async def test_a_chat_request_reads_messages_and_needs_no_key() -> None:
    found = [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "length"}]
    script = Script(httpx.Response(200, json={"choices": found}))
    reply = await script.model(key=None).complete(CHAT)
    assert script.bodies[0]["messages"] == [{"role": "user", "content": "Hello"}]
    assert "stop" not in script.bodies[0]
    assert script.requests[0][0].endswith("/chat/completions")
    assert "Authorization" not in script.requests[0][1]
    assert reply.texts == ("Hi",)
    assert reply.finished == (False,)
    assert reply.usage.prompt_tokens == 0


async def test_choices_are_ordered_by_index_and_odd_ones_are_empty() -> None:
    found = [{"index": 1, "text": "second"}, {"index": 0, "text": None}]
    script = Script(httpx.Response(200, json={"choices": found, "usage": {"prompt_tokens": "many"}}))
    assert (await script.model().complete(TEXT)).texts == ("", "second")


async def test_what_no_database_keeps_is_replaced() -> None:
    body = json.dumps({"choices": [{"text": "a\x00b\ud800c"}]}).encode()
    script = Script(httpx.Response(200, content=body))
    assert (await script.model().complete(Request(iteration=1, island=0, text="p"))).texts == ("a\ufffdb\ufffdc",)


async def test_a_server_that_ignores_n_is_asked_for_the_rest() -> None:
    script = Script(choices("a"), choices("b"))
    reply = await script.model().complete(TEXT)
    assert reply.texts == ("a", "b")
    assert [(body["n"], body["seed"]) for body in script.bodies] == [(2, 7), (1, 8)]
    assert (reply.usage.calls, reply.usage.prompt_tokens, reply.usage.completion_tokens) == (2, 6, 10)


async def test_a_server_that_sends_too_many_is_cut() -> None:
    assert (await Script(choices("a", "b", "c")).model().complete(TEXT)).texts == ("a", "b")


@pytest.mark.parametrize(
    ("failure", "lost"),
    [
        (httpx.Response(429, json={"error": {"message": "slow down"}}), 0),
        (httpx.Response(500, text="oops"), 0),
        (httpx.Response(503), 0),
        (NotConnected("refused"), 0),
        (TimeoutError(), 1),
        (ConnectionBroken("reset"), 1),
        (httpx.Response(200, text="<html>"), 0),
        (httpx.Response(200, json={"choices": []}), 0),
    ],
)
async def test_passing_failures_are_retried(failure: Scripted, lost: int) -> None:
    script = Script(failure, choices("a", "b"))
    reply = await script.model().complete(TEXT)
    assert reply.texts == ("a", "b")
    assert (reply.usage.calls, reply.usage.lost_calls) == (1, lost)
    assert len(script.pauses) == 1


async def test_pauses_grow_with_jitter_and_obey_retry_after() -> None:
    failures = [httpx.Response(503) for _ in range(3)] + [httpx.Response(429, headers={"Retry-After": "7"})]
    script = Script(*failures, choices("a", "b"))
    await script.model(attempts=5).complete(TEXT)
    for pause, longest in zip(script.pauses, (0.5, 1.0, 2.0), strict=False):
        assert longest / 2 <= pause <= longest
    assert script.pauses[3] == 7.0


async def test_a_pause_that_is_no_number_is_not_waited_for() -> None:
    script = Script(httpx.Response(503, headers={"Retry-After": "nan"}), choices("a", "b"))
    await script.model().complete(TEXT)
    assert 0.25 <= script.pauses[0] <= 0.5


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "[::1]"])
def test_no_proxy_reaches_this_machine(host: str) -> None:
    assert not proxy_may_reach(f"http://{host}:8000/v1")


@pytest.mark.parametrize("host", ["10.0.0.1", "models.example", "127.example", "[2001:db8::1]"])
def test_a_proxy_may_reach_others(host: str) -> None:
    assert proxy_may_reach(f"http://{host}:8000/v1")


def test_a_pause_is_never_longer_than_allowed() -> None:
    policy = RetryPolicy(max_s=3.0)
    assert policy.delay(50, None) <= 3.0
    assert policy.delay(0, 1e9) == 120.0
    assert policy.delay(0, -5.0) == 0.0


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 413, 422])
async def test_a_refusal_is_not_repeated_and_says_what_the_server_said(status: int) -> None:
    script = Script(httpx.Response(status, json={"error": {"message": "the prompt is too long"}}))
    with pytest.raises(ModelRequestError, match=f"answered {status}: the prompt is too long") as error:
        await script.model().complete(TEXT)
    assert error.value.status == status
    assert script.pauses == []


@pytest.mark.parametrize("body", ['{"detail": "nope"}', '{"message": "nope"}', '{"error": "nope"}', "nope"])
async def test_refusals_are_read_in_every_usual_form(body: str) -> None:
    with pytest.raises(ModelRequestError, match="nope"):
        await Script(httpx.Response(400, text=body)).model().complete(TEXT)


async def test_no_reply_after_all_attempts() -> None:
    script = Script(TimeoutError(), httpx.Response(500, text="broken"), ConnectionBroken("reset"))
    with pytest.raises(ModelUnavailable, match="in 3 attempts") as error:
        await script.model(attempts=3).complete(TEXT)
    assert error.value.lost_calls == 2
    assert len(script.pauses) == 2


async def test_the_key_is_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    script = Script(httpx.Response(401, json={"error": {"message": f"Incorrect API key provided: {KEY}"}}))
    model = script.model()
    with pytest.raises(ModelRequestError, match=r"provided: \*\*\*") as error:
        await model.complete(TEXT)
    assert KEY not in repr(model) + str(error.value) + repr(error.value) + caplog.text


@pytest.mark.parametrize(
    ("url", "key", "message"),
    [
        ("http://user:pw@127.0.0.1/v1", None, "must not contain a user name"),
        ("127.0.0.1:8000/v1", None, "must be a URL like"),
        ("ftp://127.0.0.1/v1", None, "must be a URL like"),
        ("http://127.0.0.1:notaport/v1", None, "unusable"),
        ("http://user:pw/2@127.0.0.1/v1", None, "unusable"),
        ("http://127.0.0.1/v1", "secret\n", "line break"),
        ("http://127.0.0.1/v1", "sécret", "printable ASCII"),
    ],
)
def test_unusable_settings_are_refused_without_repeating_secrets(url: str, key: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        OpenAIModel(url, "tiny", SecretStr(key) if key else None)
    assert "cret" not in str(error.value)
    assert "pw" not in str(error.value)


# A real server


async def test_many_requests_over_a_real_connection() -> None:
    async def echo(body: dict[str, Any]) -> tuple[int, bytes]:
        found = [{"index": i, "text": f"{body['prompt']}{i}", "finish_reason": "stop"} for i in range(body["n"])]
        usage = {"prompt_tokens": 1, "completion_tokens": body["n"]}
        return 200, json.dumps({"choices": found, "usage": usage}).encode()

    async with serving(echo) as url, OpenAIModel(url, "tiny") as model:
        requests = [Request(iteration=i, island=0, text=f"p{i}-", n=2) for i in range(20)]
        replies = await asyncio.gather(*(model.complete(request) for request in requests))
    assert [reply.texts for reply in replies] == [(f"p{i}-0", f"p{i}-1") for i in range(20)]
    assert sum(reply.usage.completion_tokens for reply in replies) == 40
    assert all(reply.usage.seconds > 0 for reply in replies)


async def test_a_server_that_hangs_is_given_up_in_time() -> None:
    never = asyncio.Event()

    async def hang(body: dict[str, Any]) -> tuple[int, bytes]:
        await never.wait()
        return 200, b"{}"

    async with serving(hang) as url:
        retry = RetryPolicy(attempts=2, base_s=0.01)
        async with OpenAIModel(url, "tiny", timeout_s=0.2, retry=retry) as model:
            with pytest.raises(ModelUnavailable, match=r"no whole reply within 0.2 s") as error:
                await model.complete(TEXT)
        never.set()
    assert error.value.lost_calls == 2


async def test_a_server_that_comes_back_is_used() -> None:
    answers = iter([(503, b"loading"), (200, json.dumps({"choices": [{"text": "a"}, {"text": "b"}]}).encode())])

    async def recover(body: dict[str, Any]) -> tuple[int, bytes]:
        return next(answers)

    async with serving(recover) as url, OpenAIModel(url, "tiny", retry=RetryPolicy(base_s=0.01)) as model:
        assert (await model.complete(TEXT)).texts == ("a", "b")


async def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    async with OpenAIModel(f"http://127.0.0.1:{port}/v1", "tiny", retry=RetryPolicy(attempts=2, base_s=0.01)) as model:
        with pytest.raises(ModelUnavailable, match="cannot connect") as error:
            await model.complete(TEXT)
    assert error.value.lost_calls == 0
