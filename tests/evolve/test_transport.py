"""The HTTP transport against raw servers on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from evolve.transport import ConnectionBroken, HttpTransport, NotConnected, proxy_for

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
                await reader.readexactly(2 * ("Content-Length" in self.heads[-1]))
                writer.write(self.answer)
                await writer.drain()
                if self.hang_up:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(raw: Raw, *, proxies: bool = False) -> AsyncIterator[HttpTransport]:
    server = await asyncio.start_server(raw.handle, "127.0.0.1", 0)
    async with server:
        raw.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        transport = HttpTransport(connect_timeout_s=5.0, proxies=proxies)
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


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment that names no proxy."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


async def test_a_proxy_gets_its_own_password_and_a_server_nothing_from_netrc(
    no_proxies: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login somebody password of-another-server\n")
    netrc.chmod(0o600)
    no_proxies.setenv("NETRC", str(netrc))
    raw = Raw(OK)
    async with serving(raw, proxies=True) as transport:
        no_proxies.setenv("HTTP_PROXY", raw.url.removesuffix("/v1").replace("://", "://me:p%40ss@"))
        for headers in ({"Authorization": "Bearer sk-1"}, {}):
            assert (await transport.post("http://models.invalid/v1", b"{}", headers)).status == 200
    assert [head.split()[1] for head in raw.heads] == ["http://models.invalid/v1"] * 2
    assert all("Proxy-Authorization: Basic bWU6cEBzcw==" in head for head in raw.heads)
    assert ["Authorization: Bearer sk-1" in head for head in raw.heads] == [True, False]
    assert "\r\nAuthorization: " not in raw.heads[1]


async def test_a_proxy_that_refuses_has_not_connected_and_names_no_password(no_proxies: pytest.MonkeyPatch) -> None:
    raw = Raw(b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n", hang_up=True)
    async with serving(raw, proxies=True) as transport:
        no_proxies.setenv("HTTPS_PROXY", raw.url.removesuffix("/v1").replace("://", "://me:p%40ss@"))
        with pytest.raises(NotConnected, match="407") as error:
            await transport.post("https://models.invalid/v1", b"{}", {"Authorization": "Bearer sk-1"})
    assert "sk-1" not in str(error.value)
    assert "p%40ss" not in str(error.value)
    assert "Proxy-Authorization: Basic bWU6cEBzcw==" in raw.heads[0]
    assert "sk-1" not in raw.heads[0]


@pytest.mark.parametrize(
    ("environment", "url", "proxy"),
    [
        ({}, "https://a.example/v1", None),
        ({"HTTPS_PROXY": "http://p:1"}, "https://a.example/v1", "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1"}, "http://a.example/v1", None),
        ({"ALL_PROXY": "p:1"}, "http://a.example/v1", "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "b.example,a.example"}, "https://a.example/v1", None),
    ],
)
def test_the_environment_names_the_proxy(
    environment: dict[str, str], url: str, proxy: str | None, no_proxies: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        no_proxies.setenv(name, value)
    found = proxy_for(url)
    assert (found.url if found else None) == proxy


def test_a_proxy_that_speaks_no_http_is_refused(no_proxies: pytest.MonkeyPatch) -> None:
    no_proxies.setenv("ALL_PROXY", "socks5://me:secret@p:1")
    with pytest.raises(NotConnected, match=r"a socks5 proxy.*set HTTPS_PROXY") as error:
        proxy_for("https://a.example/v1")
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("host", ["a..b", "x" * 70 + ".example"])
async def test_what_can_be_no_host_has_not_connected(host: str) -> None:
    transport = HttpTransport(connect_timeout_s=5.0, proxies=False)
    with pytest.raises(NotConnected):
        await transport.post(f"http://{host}/v1", b"{}", {})
    await transport.aclose()
