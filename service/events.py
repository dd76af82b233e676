"""Live events: from the transaction that made them to everybody who listens.

Postgres numbers the events of a search without gaps and keeps them. Redis makes them fast: a stream per search holds
the recent ones (entry id = event id), and a channel wakes the listeners of every process. A listener that sees a gap,
or no Redis at all, reads what is missing from Postgres; so nothing is lost or sent twice, whatever Redis forgets.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any, Self

import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError

from service.db.engine import Sessions
from service.db.events import Event, read_events

STREAM_LENGTH = 10_000
STREAM_TTL_S = 24 * 3600
_CHANNEL = "vpo:events"
_PAGE = 500

logger = logging.getLogger(__name__)


class EventHub:
    """Publishes events and follows them; one per process and event loop.

    poll_s: how often a listener looks into Postgres by itself, for events whose publisher died before telling Redis.
    """

    def __init__(self, redis_url: str, sessions: Sessions, *, poll_s: float = 5.0) -> None:
        # Nothing waits for Redis for long: what it does not take or give, Postgres has.
        options = {"decode_responses": True, "socket_connect_timeout": 2, "retry": Retry(NoBackoff(), 1)}
        self._redis = redis.asyncio.from_url(redis_url, socket_timeout=2, **options)
        self._channel = redis.asyncio.from_url(redis_url, socket_timeout=None, **options)
        self._sessions = sessions
        self._poll_s = poll_s
        self._listeners: defaultdict[int, set[asyncio.Event]] = defaultdict(set)
        self._closing = asyncio.Event()
        self._receiving: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._receiving = asyncio.create_task(self._receive(), name="events from redis")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop_listeners()
        if self._receiving:
            self._receiving.cancel()
            await asyncio.gather(self._receiving, return_exceptions=True)
        await self._redis.aclose()
        await self._channel.aclose()

    async def ping(self) -> None:
        """Raise :class:`redis.exceptions.RedisError` unless Redis answers."""
        await self._redis.ping()

    def stop_listeners(self) -> None:
        """End every stream, so that the server can shut down."""
        self._closing.set()
        self._wake_all()

    async def publish(self, events: Sequence[Event]) -> None:
        """Tell the world. Never fails: listeners find what Redis did not take in Postgres."""
        for event in events:
            self._wake(event.search_id)
            try:
                await self._to_redis(event)
            except (RedisError, OSError) as error:
                logger.warning("redis did not take event %d of search %d: %s", event.id, event.search_id, error)

    async def follow(self, search_id: int, *, after: int) -> AsyncIterator[Event | None]:
        """Events above ``after``, in order, each once, for as long as one listens; ``None`` when nothing came for long.

        Whoever follows decides when to stop; the hub only stops at :meth:`stop_listeners`.
        """
        wake = asyncio.Event()
        self._listeners[search_id].add(wake)
        try:
            while not self._closing.is_set():
                wake.clear()
                while events := await self._next(search_id, after):
                    for event in events:
                        after = event.id
                        yield event
                if not await _wait(wake, self._poll_s):
                    yield None
        finally:
            self._listeners[search_id].discard(wake)
            if not self._listeners[search_id]:
                del self._listeners[search_id]

    async def _next(self, search_id: int, after: int) -> Sequence[Event]:
        """Some events directly following ``after``: from the stream where it has them, else from Postgres."""
        try:
            entries: list[Any] = await self._redis.xrange(_stream(search_id), min=f"({after}-0", count=_PAGE) or []
        except (RedisError, OSError):
            entries = []
        events: list[Event] = []
        for entry_id, fields in entries:
            number = int(entry_id.partition("-")[0])
            if number != after + len(events) + 1:
                break
            events.append(Event(search_id, number, fields["type"], fields["data"]))
        if events:
            return events
        async with self._sessions() as session:
            return await read_events(session, search_id, after=after, limit=_PAGE)

    async def _to_redis(self, event: Event) -> None:
        stream = _stream(event.search_id)
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.xadd(
                stream,
                {"type": event.type, "data": event.data},
                id=f"{event.id}-0",
                maxlen=STREAM_LENGTH,
                approximate=True,
            )
            pipe.expire(stream, STREAM_TTL_S)
            pipe.publish(_CHANNEL, str(event.search_id))
            results = await pipe.execute(raise_on_error=False)
        for result in results:
            # A refused id: another worker's later event is in the stream already. Listeners see the gap.
            if isinstance(result, Exception) and not isinstance(result, ResponseError):
                raise result

    async def _receive(self) -> None:
        """Wake this process's listeners whenever any process publishes; after a lost connection, wake them all."""
        while True:
            with suppress(RedisError, OSError):
                async with self._channel.pubsub() as channel:
                    await channel.subscribe(_CHANNEL)
                    self._wake_all()
                    async for message in channel.listen():
                        if message["type"] == "message":
                            self._wake(int(message["data"]))
            await asyncio.sleep(1.0)

    def _wake(self, search_id: int) -> None:
        for wake in self._listeners.get(search_id, ()):
            wake.set()

    def _wake_all(self) -> None:
        for search_id in self._listeners:
            self._wake(search_id)


def _stream(search_id: int) -> str:
    return f"vpo:search:{search_id}"


async def _wait(wake: asyncio.Event, seconds: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await wake.wait()
    return wake.is_set()
