"""Routes of the operator's page: what there is now, and how it came about."""

from __future__ import annotations

import contextlib
import time
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import StreamingResponse

from ..observing.now import View
from ..observing.observer import Observer
from ..observing.visibility import Visibility
from ..problems import InvalidRequest, UnknownQuery
from . import models_observing as models
from .answers import answer_document
from .context import context_of, principal_of
from .documents import EVENTS_CONTENT, errors
from .events import STREAM
from .observing_stream import NowFeed
from .queries import QueryId
from .replies import as_json

router = APIRouter(tags=["observing"])
STREAM_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
Limit = Annotated[int, Query(ge=1, le=2000, description="How many waiting queries are listed.")]
OfTenant = Annotated[
    str | None,
    Query(max_length=500, description="List queries of this tenant and those below it only."),
]


def observer_of(request: Request) -> Observer:
    """The observer of the application that a request came to."""
    found = request.app.state.observer
    assert isinstance(found, Observer)
    return found


@router.get(
    "/v1/now",
    response_model=models.Now,
    responses=errors(401, 422, 429),
    summary="What there is now",
)
async def now(request: Request, limit: Limit = 200, tenant: OfTenant = None) -> Any:
    """Queries that run, that wait (in the order they are expected to start) and that ended last.

    A token sees the queries of its tenant, an admin's token all.
    """
    observer = observer_of(request)
    view = View(Visibility.of(principal_of(request)), limit, tenant)
    (found,) = await context_of(request).run(observer.now, (view,))
    return as_json(found)


@router.get(
    "/v1/now/stream",
    response_class=StreamingResponse,
    responses={
        200: {"description": "Events.", "content": EVENTS_CONTENT},
        **errors(401, 422, 429),
    },
    summary="What there is now, as it changes",
)
async def now_stream(request: Request, limit: Limit = 200, tenant: OfTenant = None) -> Any:
    """Server-sent events `now`, each with the document of `GET /v1/now`.

    There is one when something has changed, at most every 0.4 s (every 0.9 s where there is much to
    tell), and one every 5 s. `limit` is rounded up to 50, 200 or 2000.
    """
    feed: NowFeed = request.app.state.feed
    stream = feed.stream(principal_of(request), limit, tenant)
    return StreamingResponse(stream, media_type=STREAM, headers=STREAM_HEADERS)


Since = Annotated[
    float | None, Query(ge=0, le=1e11, description="Seconds since 1970; an hour before the end.")
]
Until = Annotated[float | None, Query(ge=0, le=1e11, description="Seconds since 1970; now.")]


def stretch_of(since: float | None, until: float | None, usual_s: float) -> tuple[float, float]:
    """The beginning and the end of a stretch of time."""
    end = time.time() if until is None else until
    begin = end - usual_s if since is None else since
    if begin >= end:
        raise InvalidRequest(f"since: must be before until, got {begin:g} and {end:g}")
    return begin, end


@router.get(
    "/v1/series",
    response_model=models.Series,
    responses=errors(401, 422, 429),
    summary="Slots, queries, memory and processors over time",
)
async def series(
    request: Request,
    since: Since = None,
    until: Until = None,
    points: Annotated[int, Query(ge=1, le=2000, description="How many at most.")] = 300,
) -> Any:
    """Means over steps of time: by seconds for the last hour, then by half minutes.

    What is older than a day, or than this server, comes from the history, which does not know all
    of it. What a step does not know is null. `own_cpu` is for admins.
    """
    visibility = Visibility.of(principal_of(request))
    begin, end = stretch_of(since, until, 3600.0)
    found = observer_of(request).series
    return as_json(await context_of(request).run(found, visibility, begin, end, points))


@router.get(
    "/v1/queries/{query}/timeline",
    response_model=models.Timeline,
    responses=errors(401, 404, 422, 429, 503),
    summary="A query over time",
)
async def timeline(request: Request, query: QueryId) -> Any:
    """When a query waited and which slots it held, what was predicted and what came of it.

    It may be active, or one of the history. Times of segments are seconds since its submission.
    """
    context, principal = context_of(request), principal_of(request)
    submitted = None
    with contextlib.suppress(UnknownQuery):
        submitted, _ = context.submitted(principal, query)
    observer = observer_of(request)
    found = await context.run(observer.timeline, Visibility.of(principal), query, submitted)
    last = observer.last_answer(query)
    found["last_answer"] = None if last is None else answer_document(last)
    found["has_operators"] = submitted is not None
    return as_json(found)
