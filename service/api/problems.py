"""Errors as RFC 9457 problem documents: what was wrong, where, and what to do about it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import InterfaceError, OperationalError
from starlette.exceptions import HTTPException

from evolve.strict import NEVER_SHOWN
from service.schemas import FieldProblem, Problem

MEDIA_TYPE = "application/problem+json"
_SHOWN = 120
_UNKNOWN_KEY = "extra_forbidden"

logger = logging.getLogger(__name__)


class ApiProblem(Exception):  # noqa: N818 (the standard's word for it)
    """Ends a request with a problem document."""

    def __init__(self, status: int, title: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.title, self.detail = status, title, detail


_CONTENT = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
RESPONSES: dict[int | str, dict[str, Any]] = {"default": {"description": "An error", "content": _CONTENT}}


def install_problems(app: FastAPI) -> None:
    """Make every error of the application a problem document."""
    app.add_exception_handler(ApiProblem, _api_problem)
    app.add_exception_handler(HTTPException, _http_exception)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(OperationalError, _no_database)
    app.add_exception_handler(InterfaceError, _no_database)
    app.add_exception_handler(Exception, _unexpected)


def _answer(
    request: Request,
    status: int,
    title: str,
    detail: str,
    errors: Sequence[FieldProblem] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    problem = Problem(title=title, status=status, detail=detail, instance=request.url.path, errors=list(errors))
    return JSONResponse(
        problem.model_dump(mode="json"), status, headers=headers and dict(headers), media_type=MEDIA_TYPE
    )


async def _api_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiProblem)
    return _answer(request, error.status, error.title, error.detail)


async def _http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code in (204, 304):
        return Response(status_code=error.status_code, headers=error.headers)
    return _answer(
        request, error.status_code, HTTPStatus(error.status_code).phrase, str(error.detail), headers=error.headers
    )


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = [_field_problem(item) for item in error.errors()[:20]]
    detail = "; ".join(_sentence(problem) for problem in errors[:5])
    if len(errors) > 5:
        detail += f"; and {len(error.errors()) - 5} more"
    return _answer(request, 422, "The request is not valid", detail, errors)


async def _no_database(request: Request, error: Exception) -> Response:
    logger.error("the database does not answer: %s", type(error).__name__)
    detail = "The database does not answer. Nothing was changed; try again in a moment."
    return _answer(request, 503, "Not available", detail, headers={"Retry-After": "2"})


async def _unexpected(request: Request, error: Exception) -> Response:
    detail = "This is a bug in the service; its log has the traceback."
    return _answer(request, 500, "Internal error", detail)


def _field_problem(item: dict[str, Any]) -> FieldProblem:
    location = [part for part in item["loc"] if part not in ("body", "query", "path")]
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
    message = item["msg"].removeprefix("Value error, ")
    value = None if item["type"] == _UNKNOWN_KEY or field.endswith(NEVER_SHOWN) else _shown(item.get("input"))
    return FieldProblem(field=field or "body", message=message, value=value)


def _shown(value: Any) -> Any:
    small = isinstance(value, str | int | float | bool) and len(repr(value)) <= _SHOWN
    return (repr(value) if isinstance(value, float) and value - value != 0 else value) if small else None


def _sentence(problem: FieldProblem) -> str:
    value = "" if problem.value is None else f", not {problem.value!r}"
    return f"{problem.field}: {problem.message}{value}"
