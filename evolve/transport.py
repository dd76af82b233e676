"""Sending one request to a model's server: plain HTTP on connections that are kept.

aiohttp parses in C and finds a free connection in constant time: a request costs a third of the CPU time that it costs
with httpx and, with a hundred in flight, a fiftieth.

Exceptions::

    TransportError
    ├── NotConnected      nothing was sent
    └── ConnectionBroken  the request was sent, or part of it, and no whole answer came
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

import aiohttp
import httpx

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
    proxies: whether the environment's HTTP_PROXY, HTTPS_PROXY and NO_PROXY apply.
    """

    def __init__(self, *, connect_timeout_s: float, proxies: bool) -> None:
        self._connect_timeout_s, self._proxies = connect_timeout_s, proxies
        self._session: aiohttp.ClientSession | None = None

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """See :class:`Transport`."""
        if self._session is None:  # made here, since it belongs to the loop that runs now
            self._session = self._open(encrypted=urlsplit(url).scheme == "https")
        try:
            async with self._session.post(url, data=body, headers=headers, allow_redirects=False) as response:
                return Answer(response.status, await response.read(), response.headers)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
            raise NotConnected(_describe(error)) from None  # without the error, which knows the headers
        except aiohttp.ClientError as error:
            raise ConnectionBroken(_describe(error)) from None

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self, *, encrypted: bool) -> aiohttp.ClientSession:
        """``encrypted`` where certificates are needed: reading them takes longer than a short run."""
        connector = aiohttp.TCPConnector(
            limit=0,
            keepalive_timeout=_KEPT_S,
            ssl=httpx.create_ssl_context() if encrypted else True,
        )
        return aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_timeout_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=self._proxies,
        )


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
