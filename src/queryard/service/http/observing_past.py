"""Routes of the operator's page about the cluster, its policy, its log and the past."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Hashable
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request

from ..observing.archive import bounds_of
from ..observing.log_ring import Level
from ..observing.performance import By
from ..observing.visibility import Visibility
from ..problems import UnknownName
from . import models_observing_past as models
from .context import admin_of, context_of, principal_of
from .documents import errors
from .observing import Since, Until, observer_of, stretch_of
from .replies import as_json

router = APIRouter(tags=["observing"])
_PAST = errors(401, 422, 429, 503)
ByWhat = Annotated[By, Query(description="What a row stands for.")]
# An answer that was made just before is given again: several pages may be open.
FRESH_S = 2.0
MOST_FRESH = 64


class FreshAnswers:
    """The last answers of long reads, by what was asked; on the event loop."""

    def __init__(self) -> None:
        self._made: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()

    def find(self, asked: Hashable) -> Any | None:
        """An answer that is young enough, if there is one."""
        made_s, content = self._made.get(asked, (float("-inf"), None))
        return content if time.monotonic() - made_s < FRESH_S else None

    def keep(self, asked: Hashable, content: Any) -> None:
        self._made[asked] = time.monotonic(), content
        self._made.move_to_end(asked)
        if len(self._made) > MOST_FRESH:
            self._made.popitem(last=False)


@router.get(
    "/v1/cluster",
    response_model=models.Cluster,
    responses=errors(401, 429),
    summary="Nodes and their slots",
)
async def cluster(request: Request) -> Any:
    """All nodes, how busy they are, and the queries there that the token may see."""
    visibility = Visibility.of(principal_of(request))
    return as_json(await context_of(request).run(observer_of(request).cluster, visibility))


@router.get(
    "/v1/scheduler",
    response_model=models.SchedulerState,
    responses=errors(401, 422, 429, 503),
    summary="The policy in force, and how it was chosen",
)
async def scheduler(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=500, description="Changes, and decisions.")] = 100,
) -> Any:
    """The policy, its changes, and the decisions of a portfolio with candidates and scores.

    Reasons, shares of tenants and decisions are for admins.
    """
    visibility = Visibility.of(principal_of(request))
    found = observer_of(request).scheduler
    return as_json(await context_of(request).run(found, visibility, limit))


@router.get(
    "/v1/logs",
    response_model=models.Logs,
    responses=errors(401, 403, 422, 429),
    summary="The last lines of the log",
)
async def logs(
    request: Request,
    after: Annotated[
        int | None, Query(ge=0, le=1 << 53, description="Lines after this one; else the last.")
    ] = None,
    level: Annotated[Level, Query(description="This level and above.")] = "info",
    limit: Annotated[int, Query(ge=1, le=2000)] = 200,
) -> Any:
    """Lines since the server began, up to the last 5,000. For admins."""
    admin_of(request)
    return as_json(observer_of(request).logs(after, level, limit))


@router.get(
    "/v1/performance",
    response_model=models.Performance,
    responses=_PAST,
    summary="How queries did",
)
async def performance(
    request: Request, since: Since = None, until: Until = None, by: ByWhat = "tenant"
) -> Any:
    """Response, slowdown, deadlines and predictions of queries that ended in a stretch of time.

    They are those of the token's tenant, an admin's of all. A slowdown is the response over the
    time that the work of the query takes with all slots, at least 10 ms. An error of predictions is
    the median factor between predicted and actual work.
    """
    visibility = Visibility.of(principal_of(request))
    begin, end = stretch_of(since, until, 3600.0)
    fresh: FreshAnswers = request.app.state.fresh
    asked = ("performance", visibility, since, until, by)
    found = fresh.find(asked)
    if found is None:
        run = observer_of(request).performance
        found = await context_of(request).run_long(run, visibility, begin, end, by)
        fresh.keep(asked, found)
    return as_json(found)


@router.get(
    "/v1/archive",
    response_model=models.ArchiveList,
    responses=errors(401, 429, 503),
    summary="Past days",
)
async def archive(request: Request) -> Any:
    """The days of UTC on which queries ended, the latest first."""
    visibility = Visibility.of(principal_of(request))
    fresh: FreshAnswers = request.app.state.fresh
    found = fresh.find(("archive", visibility))
    if found is None:
        found = await context_of(request).run_long(observer_of(request).archive, visibility)
        fresh.keep(("archive", visibility), found)
    return as_json(found)


@router.get(
    "/v1/archive/{day}",
    response_model=models.ArchivedDay,
    responses=errors(401, 404, 422, 429, 503),
    summary="A past day",
)
async def archived_day(
    request: Request,
    day: Annotated[str, Path(max_length=10, description="Of UTC.", examples=["2026-11-18"])],
    by: ByWhat = "tenant",
    limit: Annotated[int, Query(ge=1, le=1000, description="Queries of a page.")] = 100,
    start: Annotated[int, Query(ge=0, le=10_000_000, description="Queries before them.")] = 0,
) -> Any:
    """How the queries of a day did, and a page of them, the latest first."""
    visibility = Visibility.of(principal_of(request))
    try:
        bounds_of(day)
    except (ValueError, OverflowError):
        raise UnknownName(f"unknown day {day!r}: write it as 2026-11-18") from None
    fresh: FreshAnswers = request.app.state.fresh
    asked = ("day", visibility, day, by, limit, start)
    found = fresh.find(asked)
    if found is None:
        run = observer_of(request).archived_day
        found = await context_of(request).run_long(run, visibility, day, by, limit, start)
        fresh.keep(asked, found)
    return as_json(found)
