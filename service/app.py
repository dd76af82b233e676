"""The FastAPI application: routes, errors, dashboard, and the lifespan that starts and stops everything else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import RedirectResponse
from fastapi.staticfiles import StaticFiles
from fastapi_offline import FastAPIOffline
from sqlalchemy.exc import OperationalError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Scope

from service.api import events, health, iterations, programs, searches
from service.api.health import product_version
from service.api.problems import install_problems
from service.db.migrate import migrate
from service.embedded import EmbeddedError, embedded_servers
from service.schemas import IterationEvent, Problem, RunEvent, SearchEvent
from service.services import open_services
from service.settings import Settings
from service.worker import working

STATIC = Path(__file__).parent / "static"
_DESCRIPTION = "Evolutionary search over programs, with models trained by Vector Policy Optimization."


class Dashboard(StaticFiles):
    """The dashboard's files; any other path below it is a view of the dashboard itself."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file, or the start page where there is none of that name."""
        try:
            return await super().get_response(path, scope)
        except HTTPException as error:
            if error.status_code != 404 or "." in path.rpartition("/")[2]:
                raise
            return await super().get_response("index.html", scope)


def create_app(settings: Settings | None = None) -> FastAPI:
    """The application. Its lifespan starts embedded servers where settings name no real ones, and the worker."""
    settings = settings or Settings()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            try:
                servers = await stack.enter_async_context(embedded_servers(settings))
                await migrate(servers.database_url)
            except EmbeddedError as error:
                app.state.failure = str(error)
                raise
            except OperationalError as error:
                app.state.failure = f"the database does not answer: {error.orig}: check DATABASE_URL"
                raise
            services = await stack.enter_async_context(open_services(settings, servers.database_url, servers.redis_url))
            if settings.worker:
                await stack.enter_async_context(working(services))
            app.state.services = services
            yield

    # /docs and /redoc with assets of their own: FastAPI's fetch them from elsewhere, so they are blank offline.
    app = FastAPIOffline(title="vpo-search", version=product_version(), description=_DESCRIPTION, lifespan=lifespan)
    for router in (searches.router, programs.router, iterations.router, events.router, health.router):
        app.include_router(router)
    install_problems(app)
    _add_dashboard(app)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def _add_dashboard(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def start() -> RedirectResponse:
        return RedirectResponse("/dashboard/")

    app.mount("/dashboard", Dashboard(directory=STATIC, html=True, check_dir=False), name="dashboard")


def _openapi(app: FastAPI) -> dict[str, Any]:
    """The schema, with what routes do not mention by themselves: problem documents and the events' data."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        components = schema.setdefault("components", {}).setdefault("schemas", {})
        for model in (Problem, IterationEvent, RunEvent, SearchEvent):
            document = model.model_json_schema(ref_template="#/components/schemas/{model}")
            components |= document.pop("$defs", {})
            components[model.__name__] = document
        app.openapi_schema = schema
    return app.openapi_schema
