"""Sending one request to a model's server: plain HTTP on connections that are kept.

aiohttp parses in C and finds a free connection in constant time: a request costs about a third of the CPU time that it
costs with httpx, and far less than that with a hundred in flight (docs/benchmarks.md).

Exceptions::

    TransportError
    ├── NotConnected      nothing was sent
    └── ConnectionBroken  the request was sent, or part of it, and no whole answer came
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx

_NOT_CONNECTED = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,  # a proxy that refuses to reach the server
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
    UnicodeError,  # a host that can be no name
)
_KEPT_S = 4.0  # idle connections: less than the 5 s after which uvicorn, vLLM's server, closes them


class TransportError(Exception):
    """A request has no answer; the message says why, without its headers."""


class NotConnected(TransportError):  # noqa: N818 (a state of the connection)
    """There is no connection to the server."""


class ConnectionBroken(TransportError):  # noqa: N818
    """The connection ended before the answer did."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's answer of any status. headers: names in any case."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class Transport(Protocol):
    """What carries requests to a server."""

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """The whole answer; redirections are not followed. Raises :class:`TransportError`."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


class HttpTransport:
    """A :class:`Transport` over HTTP/1.1, for one event loop.

    connect_timeout_s: to connect, encryption included; nothing else is timed. Connections are not limited in number.
    proxies: whether the environment's HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY apply, as they are at the first
    request. A .netrc file never does: a server gets the key that is meant for it, and nothing else.
    """

    def __init__(self, *, connect_timeout_s: float, proxies: bool) -> None:
        self._connect_timeout_s, self._proxies = connect_timeout_s, proxies
        self._session: aiohttp.ClientSession | None = None
        self._proxy: Proxy | None = None

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """See :class:`Transport`."""
        if self._session is None:  # made here, since it belongs to the loop that runs now
            self._session = self._open(url)
        try:
            async with self._session.post(
                url, data=body, allow_redirects=False, **self._addressed(url, headers)
            ) as response:
                return Answer(response.status, await response.read(), response.headers)
        except _NOT_CONNECTED as error:
            raise NotConnected(_describe(error)) from None  # without the error, which knows the headers
        except aiohttp.ClientError as error:
            raise ConnectionBroken(_describe(error)) from None

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self, url: str) -> aiohttp.ClientSession:
        """Certificates are read only where they are needed: that takes longer than a short run."""
        self._proxy = proxy_for(url) if self._proxies else None
        encrypted = any(each.startswith("https:") for each in (url, self._proxy.url if self._proxy else ""))
        connector = aiohttp.TCPConnector(
            limit=0,
            keepalive_timeout=_KEPT_S,
            ssl=httpx.create_ssl_context() if encrypted else True,
        )
        return aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_timeout_s),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    def _addressed(self, url: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """The headers, and the proxy with what it alone may see of them."""
        proxy = self._proxy
        if proxy is None:
            return {"headers": headers}
        if url.startswith("https:"):  # it sees the request to connect, not this one
            return {"headers": headers, "proxy": proxy.url, "proxy_headers": dict(proxy.headers)}
        return {"headers": {**headers, **proxy.headers}, "proxy": proxy.url}


def check_url(value: str) -> str:
    """A usable ``/v1`` URL, without a slash at its end. Raises ``ValueError``, which does not repeat it."""
    try:
        url = httpx.URL(value)
    except httpx.InvalidURL:  # which may quote a password with a slash as the port
        raise ValueError("is unusable: write it like http://127.0.0.1:8000/v1") from None
    if url.userinfo:
        raise ValueError("must not contain a user name or password: use api_key_env (in Python, api_key)")
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("must be a URL like http://127.0.0.1:8000/v1")
    return value.rstrip("/")


def proxy_may_reach(url: str) -> bool:
    """Whether the environment's proxy settings may apply: no proxy reaches this machine's own servers."""
    host = httpx.URL(url).host
    try:
        return not ip_address(host).is_loopback
    except ValueError:  # a name
        return host != "localhost"


@dataclass(frozen=True, slots=True)
class Proxy:
    """url: without user name and password, which are in the headers that it wants."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def proxy_for(url: str) -> Proxy | None:
    """What the environment says is between this machine and a server; ``None`` for nothing.

    Not aiohttp's ``trust_env``, which also sends what .netrc holds, and fails where there is a key already.
    Raises :class:`NotConnected` for a proxy that does not speak HTTP.
    """
    server, found = urlsplit(url), getproxies()
    given = found.get(server.scheme) or found.get("all")
    if not given or proxy_bypass(server.hostname or ""):
        return None
    proxy = urlsplit(given if "://" in given else f"http://{given}")
    if proxy.scheme not in ("http", "https"):
        raise NotConnected(
            f"the environment names a {proxy.scheme} proxy, and only HTTP proxies can be used: "
            f"set {server.scheme.upper()}_PROXY to one, or NO_PROXY to {server.hostname}"
        )
    login = unquote(f"{proxy.username}:{proxy.password or ''}").encode() if proxy.username else b""
    headers = {"Proxy-Authorization": f"Basic {b64encode(login).decode()}"} if login else {}
    return Proxy(f"{proxy.scheme}://{proxy.netloc.rpartition('@')[2]}", headers)


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
