"""A client for the service's HTTP API: starts searches, follows their events, fetches curves and programs."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from evolve.transport import proxy_may_reach
from service.outcome import Outcome, Watch
from service.schemas import (
    Curve,
    IterationEvent,
    IterationPage,
    IterationState,
    ProgramPage,
    ProgramState,
    Readiness,
    RunEvent,
    RunState,
    RunStatus,
    SearchDetail,
    SearchPage,
    SearchSummary,
)
from service.spec import SearchSpec

_RECONNECT_S = 1.0
_RECONNECTS = 30

Page = TypeVar("Page", IterationPage, ProgramPage)


class ServiceError(RuntimeError):
    """The service refused a request or does not answer; the message is its own explanation."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One server-sent event. data: parsed JSON."""

    id: str
    type: str
    data: dict[str, Any]


class ServiceClient:
    """The API at ``url``, like http://127.0.0.1:8080. Use as ``async with``."""

    def __init__(self, url: str, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.url = url.rstrip("/")
        self._client = httpx.AsyncClient(
            base_url=self.url, timeout=60.0, transport=transport, trust_env=proxy_may_reach(url)
        )

    async def __aenter__(self) -> ServiceClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    def dashboard(self, search_id: str | None = None) -> str:
        """Address of the dashboard, or of one search in it."""
        return f"{self.url}/dashboard/" + (f"#/search/{search_id}" if search_id else "")

    async def ready(self) -> Readiness | None:
        """What the service says about itself; ``None`` where nothing answers."""
        try:
            response = await self._client.get("/readyz")
            return Readiness.model_validate_json(response.content)
        except (httpx.HTTPError, ValueError):
            return None

    async def create(self, spec: SearchSpec) -> SearchDetail:
        """Start a search."""
        response = await self._request("POST", "/search", json=spec.as_json())
        return SearchDetail.model_validate_json(response.content)

    async def show(self, search_id: str) -> SearchDetail:
        """One search with its runs."""
        return SearchDetail.model_validate_json((await self._request("GET", f"/search/{search_id}")).content)

    async def searches(self, limit: int = 50) -> list[SearchSummary]:
        """The newest searches, newest first."""
        response = await self._request("GET", "/search", params={"limit": limit})
        return SearchPage.model_validate_json(response.content).searches

    async def resume(self, search_id: str) -> SearchDetail:
        """Let the runs of a search go on that were cancelled or have failed; one that runs stays as it is."""
        return SearchDetail.model_validate_json((await self._request("POST", f"/search/{search_id}/resume")).content)

    async def cancel(self, search_id: str) -> None:
        """Stop a search; one that is over already stays as it is."""
        try:
            await self._request("POST", f"/search/{search_id}/cancel")
        except ServiceError:
            if not (await self.show(search_id)).status.over:
                raise

    async def curve(self, search_id: str) -> Curve:
        """Its curves."""
        return Curve.model_validate_json((await self._request("GET", f"/search/{search_id}/curve")).content)

    async def best_source(self, search_id: str, run_id: str) -> str | None:
        """The source of a run's best program."""
        query = {"run": run_id, "order": "best", "limit": 1}
        response = await self._request("GET", f"/search/{search_id}/programs", params=query)
        programs = ProgramPage.model_validate_json(response.content).programs
        return programs[0].source if programs else None

    async def programs(self, search_id: str, run_id: str) -> list[ProgramState]:
        """Every program of a run, newest first."""
        first = f"/search/{search_id}/programs?run={run_id}&order=newest&limit=500"
        return [program async for page in self._pages(ProgramPage, first) for program in page.programs]

    async def iterations(self, search_id: str, run_id: str | None = None) -> list[IterationState]:
        """Every finished iteration of a run, or of the whole search."""
        first = f"/search/{search_id}/iterations?limit=500" + (f"&run={run_id}" if run_id else "")
        return [iteration async for page in self._pages(IterationPage, first) for iteration in page.iterations]

    async def events(self, search_id: str, after: int = 0) -> AsyncIterator[ServerEvent]:
        """Every event of a search after one, each once, until it is over; reconnects where the stream breaks."""
        last, failures = str(after), 0
        while True:
            try:
                async for event in self._stream(search_id, last):
                    last, failures = event.id, 0
                    yield event
                    if event.type == "search" and RunStatus(event.data["status"]).over:
                        return
                if (await self.show(search_id)).status.over:  # 204: over, and everything seen
                    return
            except httpx.TransportError as error:
                failures += 1
                if failures > _RECONNECTS:
                    raise ServiceError(f"{self.url} does not answer any more ({type(error).__name__})") from None
            await asyncio.sleep(_RECONNECT_S)

    async def _pages(self, kind: type[Page], path: str | None) -> AsyncIterator[Page]:
        while path is not None:
            page = kind.model_validate_json((await self._request("GET", path)).content)
            yield page
            path = page.next

    async def _stream(self, search_id: str, last: str) -> AsyncIterator[ServerEvent]:
        headers = {"Accept": "text/event-stream", "Last-Event-ID": last}
        request = self._client.stream(
            "GET", f"/search/{search_id}/events", headers=headers, timeout=httpx.Timeout(30.0, read=120.0)
        )
        async with request as response:
            if response.status_code >= 400:
                await response.aread()
            _raise_for(response)
            fields: dict[str, str] = {}
            async for line in response.aiter_lines():
                name, _, value = line.partition(":")
                if line and name:
                    value = value.removeprefix(" ")
                    fields[name] = f"{fields[name]}\n{value}" if name == "data" and "data" in fields else value
                elif not line:
                    if "data" in fields:
                        yield ServerEvent(fields.get("id", last), fields.get("event", ""), json.loads(fields["data"]))
                    fields = {}

    async def _request(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            response = await self._client.request(method, path, **options)
        except httpx.TransportError as error:
            raise ServiceError(
                f"nothing answers at {self.url} ({type(error).__name__}): start it with `vpo serve`"
            ) from None
        _raise_for(response)
        return response


class RemoteSearcher:
    """Searches on a service; once ``stop`` is set, the search is cancelled there.

    created: called with the search when the service has taken it.
    """

    def __init__(self, client: ServiceClient, created: Callable[[SearchDetail], None] | None = None) -> None:
        self._client, self._created = client, created

    async def __call__(self, spec: SearchSpec, watch: Watch, stop: asyncio.Event) -> Outcome:
        """See :class:`service.outcome.Searcher`. Raises :class:`ServiceError`."""
        search = await self._client.create(spec)
        if self._created:
            self._created(search)
        return await self.follow(search, watch, stop)

    async def follow(self, search: SearchDetail, watch: Watch, stop: asyncio.Event) -> Outcome:
        """Watch a search of the service from the state it is in until it is over. Raises :class:`ServiceError`."""
        for run in search.runs:
            watch(run)
        cancelling = asyncio.create_task(self._cancel_when(stop, search.id))
        try:
            async for event in self._client.events(search.id, search.last_event):
                if (state := run_state(event)) is not None:
                    watch(state)
        finally:
            cancelling.cancel()
        return await self.outcome(search.id)

    async def outcome(self, search_id: str) -> Outcome:
        """What the service has of a search by now."""
        final = await self._client.show(search_id)
        best = {run.id: await self._client.best_source(search_id, run.id) for run in final.runs}
        return Outcome(
            curve=await self._client.curve(search_id),
            runs=final.runs,
            best={run: source for run, source in best.items() if source is not None},
            rejected=await self._rejected(final),
        )

    async def _rejected(self, search: SearchDetail) -> dict[str, Counter[str]]:
        arms = {run.id: run.arm for run in search.runs}
        counts: dict[str, Counter[str]] = {arm.name: Counter() for arm in search.arms}
        for iteration in await self._client.iterations(search.id):
            counts[arms[iteration.run]].update(answer.reason for answer in iteration.rejected)
        return counts

    async def _cancel_when(self, stop: asyncio.Event, search_id: str) -> None:
        await stop.wait()
        await self._client.cancel(search_id)


def run_state(event: ServerEvent) -> RunState | None:
    """The run that an event is about; ``None`` where it is about the search as a whole."""
    if event.type == "iteration":
        return IterationEvent.model_validate(event.data).run
    if event.type == "run":
        return RunEvent.model_validate(event.data).run
    return None


def _raise_for(response: httpx.Response) -> None:
    if response.status_code < 400:
        return
    try:
        problem = response.json()
        detail = problem.get("detail") or problem.get("title")
        fields = "".join(f"\n  {error['field']}: {error['message']}" for error in problem.get("errors") or [])
    except (ValueError, AttributeError, KeyError, TypeError):
        detail, fields = response.text[:300], ""
    raise ServiceError(f"{response.request.url} answered {response.status_code}: {detail}{fields}")
