"""Routes of queries: submitting, looking at them, reading their rows, cancelling."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from queryard.core.errors import QueryardError
from queryard.live.amounts import as_age
from queryard.live.request import OnlineRequest
from queryard.results.online import AnswerLog

from ..kept_rows import Piece
from ..principal import Principal
from ..problems import InvalidRequest
from ..results import KeptResult
from ..served import online_wish
from ..submitted import Submitted
from . import models
from .context import Context, context_of, heard, principal_of, ready, told
from .documents import ROWS_CONTENT, errors
from .formats import MEDIA, Format, chosen_format, encoder, rows_json
from .guard import CutOff
from .parameters import deadline_of, parameters_of
from .replies import JSON, as_json, problem_reply, to_json
from .states import brief, told_why
from .streaming import RowStream, has_left

router = APIRouter(tags=["queries"])

# How many rows an answer to a submission has at most.
FIRST_ROWS = 1000
FIRST_BYTES = 1 << 20
MOST_WAIT_S = 300.0
# Queries that take no longer than this are answered by the thread that entered them.
MOMENT_S = 0.02
# How long an answer to a cancellation waits for the end of the query.
CANCEL_S = 1.0
MOST_ROWS = 1 << 62
T = TypeVar("T")
ROWS_WAIT_S = 60.0

QueryId = Annotated[str, Path(max_length=200, examples=["5f0c2a91b7de-14"])]
Wait = Annotated[
    float,
    Query(ge=0, le=MOST_WAIT_S, description="Seconds to wait for something new.", examples=[0.5]),
]
FormatName = Annotated[
    str | None, Query(description="arrow, json or csv; else the Accept header counts.")
]


@router.post(
    "/v1/queries",
    status_code=201,
    response_model=models.QueryAnswer,
    responses={
        200: {
            "description": "The first rows came within `wait`.",
            "model": models.QueryAnswer,
            "content": ROWS_CONTENT,
        },
        **errors(400, 401, 403, 404, 406, 409, 410, 413, 422, 429, 503, 507),
    },
    summary="Submit a query",
)
async def submit(request: Request, body: models.QueryBody, wait: Wait = 0.0) -> Any:
    """Submit a query, and get its id at once.

    With `wait`, the answer comes with the first rows as soon as they are there; where the Accept
    header asks for Arrow or CSV, it is the rows themselves, all of them. A query that fails within
    `wait` is answered with its problem. If nothing has come by then, the state of the query is the
    answer, with status 201.
    """
    context, principal = context_of(request), principal_of(request)
    form = chosen_format(None, request.headers.get("accept", ""))
    result, quick = await context.run(_asked, context, principal, body, form, wait)
    if quick is not None:
        return quick
    headers = _headers(result)
    if wait:
        try:
            found = await _until_gone(request, context, result, body, _first(result, form, wait))
        except QueryardError as error:
            return problem_reply(error, result.id)
        if found is not None and form != "json":
            return RowStream(context, result, form, headers=headers)
        if found is not None:
            return _with_rows(context, result, found, headers)
    return as_json(brief(result.submitted, context.yard.session.now()), 201, headers)


def _asked(
    context: Context, principal: Principal, body: models.QueryBody, form: Format, wait_s: float
) -> tuple[KeptResult, Response | None]:
    """Enter a query, and answer it if all its rows come in a moment: in one thread, without hops.

    Few threads may wait here, so that others are left for what takes longer.
    """
    result = _entered(context, principal, body)
    if not wait_s or not context.moments.acquire(blocking=False):
        return result, None
    try:
        piece = _in_a_moment(result, min(wait_s, MOMENT_S))
        if piece is None:
            return result, None
        if form == "json":
            return result, _with_rows(context, result, piece, _headers(result))
        rows = result.rows
        made = encoder(form, rows.schema, rows.types, rows.returns, 0, header=True)
        content = b"".join((made.head(), made.piece(piece.batches), made.end(None)))
        context.results.read_to_end(result)
        return result, Response(content, 200, _headers(result), MEDIA[form])
    except QueryardError as error:
        return result, problem_reply(error, result.id)
    finally:
        context.moments.release()


def _in_a_moment(result: KeptResult, moment_s: float) -> Piece | None:
    """All rows of a query, if they come at once and are few. Raises the query's error."""
    until_s = time.monotonic() + moment_s
    if result.ticket.request.has_side_effects and not result.ticket.over.wait(moment_s):
        return None
    rows = result.rows
    if not heard(rows.when_ready, until_s) or rows.schema is None:
        return None
    while True:
        piece = rows.read(0, FIRST_BYTES)
        if piece.ended:
            return piece
        if piece.next >= FIRST_ROWS or not heard(rows.when_more, until_s):
            return None


def _headers(result: KeptResult) -> dict[str, str]:
    return {"Location": f"/v1/queries/{result.id}", "Queryard-Query": result.id}


def _entered(context: Context, principal: Principal, body: models.QueryBody) -> KeptResult:
    """Enter a query; in a thread, as looking at files takes time."""
    client = context.client(principal, body.session)
    online = None
    if body.online:
        wanted = models.OnlineOptions() if body.online is True else body.online
        every_s = as_age(wanted.every, "every")
        wish = online_wish(
            wanted.stop_at, wanted.confidence, every_s, wanted.within, wanted.columns
        )
        online = OnlineRequest(wish, AnswerLog())
    submitted = client.enter(
        body.sql,
        parameters_of(body.parameters),
        online=online,
        kept=True,
        plan=body.plan,
        tenant=body.tenant,
        priority=body.priority,
        memory=body.memory,
        time_limit=body.time_limit,
        deadline=deadline_of(body.deadline),
        idempotency_key=body.idempotency_key,
    )
    return context.results.keep(submitted)


async def _first(result: KeptResult, form: str, wait_s: float) -> Piece | None:
    """The first rows, if they come in time; of statements with side effects, once they are over."""
    rows, until_s = result.rows, time.monotonic() + wait_s
    if result.ticket.request.has_side_effects and not await told(result.ticket.when_over, wait_s):
        return None
    if await ready(rows, max(0.0, until_s - time.monotonic())) is None:
        return None
    piece = Piece([], 0, False)
    if form != "json":
        return piece
    while True:
        piece = rows.read(0, FIRST_BYTES)
        left_s = until_s - time.monotonic()
        if piece.ended or piece.next >= FIRST_ROWS or left_s <= 0:
            return piece
        await told(rows.when_more, left_s)


async def _until_gone(
    request: Request,
    context: Context,
    result: KeptResult,
    body: models.QueryBody,
    work: Coroutine[Any, Any, T],
) -> T:
    """Wait for something, for as long as the client does: it alone could ask for the query.

    Without a key it does not know the query's id yet, so that the query would run for nothing.
    """
    gone = asyncio.ensure_future(has_left(request.receive))
    doing = asyncio.ensure_future(work)
    try:
        await asyncio.wait({doing, gone}, return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            return doing.result()
        doing.cancel()
        if not body.idempotency_key:
            await context.run(context.results.drop, result, "its client has left")
        raise CutOff("the client has left before its query had rows")
    finally:
        gone.cancel()


def _with_rows(
    context: Context, result: KeptResult, piece: Piece, headers: dict[str, str]
) -> Response:
    """The state of a query with its first rows."""
    batches, count = [], 0
    for batch in piece.batches:
        part = batch.slice(0, FIRST_ROWS - count)
        if part.num_rows:
            batches.append(part)
        count += part.num_rows
    is_all = piece.ended and count == piece.next
    if is_all:
        context.results.read_to_end(result)
    state = to_json(brief(result.submitted, context.yard.session.now()))
    rows = rows_json(batches, result.rows.types)
    ends = b'"next": null}' if is_all else f'"next": {count}}}'.encode()
    content = b"".join((state[:-1], b', "first_rows": ', rows, b", ", ends))
    return Response(content, 200, headers, JSON)


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
    submitted, _ = context.submitted(principal, query)
    if wait and not submitted.ticket.ended:
        await told(submitted.ticket.when_over, wait)
    return as_json(await context.run(whole_state, context, principal, submitted))


def whole_state(context: Context, principal: Principal, submitted: Submitted) -> dict[str, Any]:
    """All that is known of a query; it asks the scheduler."""
    yard = context.yard
    report = yard.session.host.wait_report(submitted.ticket)
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
        if await ready(result.rows, wait) is None:
            state = brief(submitted, context.yard.session.now())
            return as_json(state, 202, {"Retry-After": "1"})
    except QueryardError as error:
        return problem_reply(error, query)
    header = start == 0 if header is None else header
    return RowStream(context, result, form, start=start, limit=limit, header=header)


@router.get(
    "/v1/queries/{query}/plan",
    response_model=dict[str, Any],
    responses=errors(401, 404, 422, 429),
    summary="How a query is run",
)
async def plan(request: Request, query: QueryId) -> Any:
    """Its jobs or operators, with what was expected of them and what came of it."""
    context, principal = context_of(request), principal_of(request)
    submitted, _ = context.submitted(principal, query)
    found = await context.run(submitted.handle().explain)
    return as_json({} if found is None else {**found.to_json(), "text": found.text()})
