"""The HTTP transport against raw servers on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from evolve.transport import ConnectionBroken, HttpTransport, NotConnected

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Said: yes\r\n\r\n{}"
MOVED = b"HTTP/1.1 307 Moved\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"


class Raw:
    """Answers every request with the same bytes. connections: made so far. heads: of the requests."""

    def __init__(self, answer: bytes, *, hang_up: bool = False) -> None:
        self.answer, self.hang_up = answer, hang_up
        self.connections = 0
        self.heads: list[str] = []
        self.url = ""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
                await reader.readexactly(2)
                writer.write(self.answer)
                await writer.drain()
                if self.hang_up:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(raw: Raw) -> AsyncIterator[HttpTransport]:
    server = await asyncio.start_server(raw.handle, "127.0.0.1", 0)
    async with server:
        raw.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        transport = HttpTransport(connect_timeout_s=5.0, proxies=False)
        yield transport
        await transport.aclose()


async def test_requests_one_after_the_other_share_a_connection() -> None:
    raw = Raw(OK)
    async with serving(raw) as transport:
        answers = [await transport.post(raw.url, b"{}", {"Content-Type": "application/json"}) for _ in range(3)]
    assert [(answer.status, answer.body, answer.headers["X-Said"]) for answer in answers] == [(200, b"{}", "yes")] * 3
    assert raw.connections == 1
    assert all(head.startswith("POST /v1 ") and "application/json" in head for head in raw.heads)


async def test_requests_at_once_need_not_wait_for_each_other() -> None:
    raw = Raw(OK)
    async with serving(raw) as transport:
        await asyncio.gather(*(transport.post(raw.url, b"{}", {}) for _ in range(150)))  # more than aiohttp's own limit
    assert raw.connections == 150


async def test_a_redirection_is_an_answer() -> None:
    raw = Raw(MOVED)
    async with serving(raw) as transport:
        assert (await transport.post(raw.url, b"{}", {"Authorization": "Bearer sk-1"})).status == 307
    assert len(raw.heads) == 1


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", b"no HTTP at all\r\n\r\n"])
async def test_an_answer_that_ends_early_or_is_none_is_broken_and_names_no_key(answer: bytes) -> None:
    raw = Raw(answer, hang_up=True)
    async with serving(raw) as transport:
        with pytest.raises(ConnectionBroken) as error:
            await transport.post(raw.url, b"{}", {"Authorization": "Bearer sk-1"})
    assert "sk-1" not in repr(error.value)
    assert error.value.__suppress_context__


async def test_nobody_listens_where_the_server_was() -> None:
    raw = Raw(OK)
    async with serving(raw):
        pass
    transport = HttpTransport(connect_timeout_s=5.0, proxies=False)
    with pytest.raises(NotConnected):
        await transport.post(raw.url, b"{}", {})
    await transport.aclose()
