"""The application: all routes, behind the guard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.responses import Response

from queryard.core.errors import QueryardError
from queryard.version import __version__

from ..observing.observer import Observer
from ..page.routes import router as page
from ..problems import InvalidRequest, Kind, Problem
from ..yard import Yard
from . import (
    answers,
    browsing,
    controls,
    events,
    metrics,
    observing,
    observing_past,
    planning,
    queries,
    sessions,
    submitting,
    whatif,
)
from .context import Context
from .documents import DESCRIPTION, finished_schema
from .events import Hub
from .guard import LEFT, CutOff, Guard
from .metrics import Figures
from .observing_past import FreshAnswers
from .observing_stream import NowFeed
from .quick import with_quick_way
from .replies import PROBLEM, problem_json, problem_reply, to_json


def create_app(yard: Yard) -> Guard:
    """An ASGI application on a yard, for uvicorn; it ends with its lifespan."""
    context = Context(yard)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.hub.start()
        yield
        await app.state.hub.close()
        await app.state.feed.close()
        app.state.observer.close()
        context.close()

    app = FastAPI(
        title="Queryard",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.context = context
    app.state.hub = Hub(yard)
    app.state.figures = figures = Figures(context)
    app.state.observer = Observer(yard)
    app.state.feed = NowFeed(app.state.observer, context)
    app.state.fresh = FreshAnswers()
    asked = (submitting, queries, answers, events, planning, sessions, browsing, metrics)
    for each in (*asked, observing, observing_past):
        app.include_router(each.router)
    app.include_router(controls.router)
    app.include_router(page)
    app.include_router(whatif.router)
    app.add_exception_handler(QueryardError, _problem)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _problem)

    def schema() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
            )
            app.openapi_schema = finished_schema(made)
        return app.openapi_schema

    app.openapi = schema  # type: ignore[method-assign]
    return Guard(with_quick_way(app), yard, figures.responded)


async def _problem(request: Request, error: Exception) -> Response:
    if isinstance(error, CutOff):  # for the figures: the client has left
        return Response(status_code=LEFT)
    return problem_reply(error)


async def _invalid(request: Request, error: Exception) -> Response:
    """What is wrong with a request, field by field, in a line."""
    assert isinstance(error, RequestValidationError)
    said = []
    found = error.errors()
    whole = _wrong_body(request, found)
    if whole:
        return problem_reply(InvalidRequest(whole))
    for each in found:
        where = ".".join(str(part) for part in each["loc"] if part not in ("body", "query", "path"))
        said.append(f"{where}: {each['msg'].lower()}" if where else str(each["msg"]).lower())
    return problem_reply(InvalidRequest("; ".join(dict.fromkeys(said))))


def _wrong_body(request: Request, errors: Sequence[Any]) -> str:
    """What is wrong with a body as a whole; nothing if that is not the problem.

    FastAPI takes a body of another type than JSON for a text.
    """
    of_body = [each for each in errors if tuple(each["loc"][:1]) == ("body",)]
    if not of_body:
        return ""
    first = of_body[0]
    sent_as = request.headers.get("content-type", "")
    kind = sent_as.partition(";")[0].strip().lower()
    remedy = "send JSON, with the header 'Content-Type: application/json'"
    if first["type"] == "json_invalid":
        reason = str(first.get("ctx", {}).get("error", "")) or "it cannot be read"
        return f"the body is no valid JSON: {reason} (at character {first['loc'][-1]})"
    if len(first["loc"]) > 1:
        return ""
    if first["type"] == "missing":
        return f"the request has no body; {remedy}"
    if kind != "application/json" and not kind.endswith("+json"):
        told = f"has the type {kind!r}" if kind else "has no type"
        return f"the body {told}, which is not read here; {remedy}"
    return f'the body must be a JSON object, as {{"sql": "SELECT 42"}}; {first["msg"].lower()}'


def _unreadable(request: Request) -> str:
    """What to say of a body that is no text."""
    if coding := request.headers.get("content-encoding"):
        return f"the body has the encoding {coding!r}, which is not read here; send it as it is"
    return "the body is no JSON in UTF-8, or its lists and objects are nested too deeply"


async def _http(request: Request, error: Exception) -> Response:
    """A path or a method that is not there, or a body that cannot be read."""
    assert isinstance(error, HTTPException)
    status = error.status_code
    detail = {
        400: _unreadable(request),
        404: f"there is nothing at {request.url.path}; /openapi.json lists all there is",
        405: f"{request.method} does not apply to {request.url.path}; /openapi.json says what does",
    }.get(status, str(error.detail))
    kind = Kind("not-found" if status == 404 else "http", status, "The request fails", "22023")
    content = to_json(problem_json(Problem(kind, detail)))
    return Response(content, status, dict(error.headers or {}), PROBLEM)
