"""Routes of queries: looking at them, reading their rows, cancelling."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request

from queryard.core.errors import QueryardError

from ..principal import Principal
from ..problems import InvalidRequest
from ..submitted import Submitted
from . import models
from .context import Context, context_of, principal_of, ready, told
from .documents import ROWS_CONTENT, errors
from .formats import chosen_format
from .replies import as_json, problem_reply
from .states import brief, told_why
from .streaming import RowStream, watching, while_there

router = APIRouter(tags=["queries"])

MOST_WAIT_S = 300.0
# How long an answer to a cancellation waits for the end of the query.
CANCEL_S = 1.0
MOST_ROWS = 1 << 62
ROWS_WAIT_S = 60.0

QueryId = Annotated[str, Path(max_length=200, examples=["5f0c2a91b7de-14"])]
Wait = Annotated[
    float,
    Query(ge=0, le=MOST_WAIT_S, description="Seconds to wait for something new.", examples=[0.5]),
]
FormatName = Annotated[
    str | None, Query(description="arrow, json or csv; else the Accept header counts.")
]


@router.get(
    "/v1/queries",
    response_model=models.QueryList,
    responses=errors(401, 429),
    summary="List queries",
)
async def queries(
    request: Request,
    state: Annotated[models.State | None, Query(description="Only those in this state.")] = None,
    limit: Annotated[int, Query(ge=1, le=10_000, description="The last so many.")] = 1000,
) -> Any:
    """The queries of the token's tenant that are active, or have rows that are kept.

    An admin's token sees those of all tenants.
    """
    context, principal = context_of(request), principal_of(request)
    found = {result.id: result.submitted for result in context.results.all(principal)}
    for submitted in context.yard.active():
        if principal.may_see(submitted.tenant):
            found.setdefault(submitted.id, submitted)
    now_s = context.yard.session.now()
    slots = {view.id: view.slots for view in await context.run(context.yard.session.queries)}
    listed = [
        brief(submitted, now_s) | {"slots": slots.get(submitted.id, 0)}
        for submitted in sorted(found.values(), key=lambda each: each.ticket.facts.submitted_s)
        if state is None or submitted.ticket.status == state
    ]
    return as_json({"now_s": now_s, "queries": listed[-limit:]})


@router.get(
    "/v1/forecasts",
    response_model=models.ForecastList,
    responses=errors(401, 429),
    summary="List forecasts",
)
async def forecasts(request: Request) -> Any:
    """When each active query is expected to start and end; queries without a forecast are left out.

    The queries are those of the token's tenant; an admin's token sees those of all tenants. Times
    are seconds on the server's clock, as `now_s`.
    """
    context, principal = context_of(request), principal_of(request)
    session = context.yard.session
    found = await context.run_long(session.forecasts)
    visible = {each.id for each in context.yard.active() if principal.may_see(each.tenant)}
    listed = [asdict(forecast) for query, forecast in found.items() if query in visible]
    return as_json({"now_s": session.now(), "forecasts": listed})


@router.get(
    "/v1/queries/{query}",
    response_model=models.QueryState,
    responses=errors(401, 404, 422, 429),
    summary="Look at a query",
)
async def query(request: Request, query: QueryId, wait: Wait = 0.0) -> Any:
    """State, progress, what holds it, the forecast of its end, and its cost.

    With `wait`, the answer comes when the query has ended, or after that time.
    """
    context, principal = context_of(request), principal_of(request)
    submitted, result = context.submitted(principal, query)
    if wait and not submitted.ticket.ended:
        with watching(result, principal):
            await while_there(request.receive, told(submitted.ticket.when_over, wait))
    return as_json(await context.run(whole_state, context, principal, submitted))


def whole_state(context: Context, principal: Principal, submitted: Submitted) -> dict[str, Any]:
    """All that is known of a query; it asks the scheduler."""
    yard = context.yard
    report = yard.session.host.looking.wait_report(submitted.ticket)
    active = yard.active()
    visible = [each.id for each in active if principal.may_see(each.tenant)]
    tenants = {each.tenant for each in active} | {each.name for each in yard.session.tenants}
    state = brief(submitted, yard.session.now())
    return {**state, "why": told_why(report, principal, visible, tenants)}


@router.delete(
    "/v1/queries/{query}",
    response_model=models.QueryState,
    responses=errors(401, 404, 429),
    summary="Cancel a query",
)
async def cancel(request: Request, query: QueryId) -> Any:
    """Stop a query, and free its rows; of one that has ended, only the rows are freed.

    Its state can still be asked for, for a while.
    """
    context, principal = context_of(request), principal_of(request)
    submitted, result = context.submitted(principal, query)
    if result is not None:
        await context.run(context.results.cancel, result)
    else:
        context.yard.cancel(principal, query)
    await told(submitted.ticket.when_over, CANCEL_S)
    return as_json(brief(submitted, context.yard.session.now()))


@router.get(
    "/v1/queries/{query}/rows",
    response_model=models.Rows,
    responses={
        200: {"description": "The rows.", "content": ROWS_CONTENT},
        202: {"description": "There are no rows yet.", "model": models.QueryState},
        **errors(401, 404, 406, 409, 410, 422, 429, 507),
    },
    summary="Read rows",
)
async def rows(
    request: Request,
    query: QueryId,
    start: Annotated[int, Query(ge=0, le=MOST_ROWS, description="The first row wanted.")] = 0,
    limit: Annotated[int | None, Query(ge=0, le=MOST_ROWS, description="At most so many.")] = None,
    format: FormatName = None,
    header: Annotated[
        bool | None, Query(description="Whether CSV begins with names; by default if start is 0.")
    ] = None,
    wait: Wait = ROWS_WAIT_S,
) -> Any:
    """The rows as they come, from any position: after a cut, go on where it happened.

    Arrow is an IPC stream; its schema has the SQL types as the metadata `queryard:types`. An answer
    whose end is missing was cut off: ask for the state of the query, and for the rest of the rows.
    Rows stay until the query was not read for a while. While they are not read, the query pauses.
    """
    context, principal = context_of(request), principal_of(request)
    form = chosen_format(format, request.headers.get("accept", ""))
    submitted, result = context.submitted(principal, query)
    if result is None:
        raise InvalidRequest(
            f"query {query}: its rows go to its own connection ({submitted.protocol})"
        )
    result.used_s = time.monotonic()
    try:
        with watching(result, principal):
            schema = await while_there(request.receive, ready(result.rows, wait))
        if schema is None:
            state = brief(submitted, context.yard.session.now())
            return as_json(state, 202, {"Retry-After": "1"})
    except QueryardError as error:
        return problem_reply(error, query)
    header = start == 0 if header is None else header
    return RowStream(context, principal, result, form, start=start, limit=limit, header=header)
