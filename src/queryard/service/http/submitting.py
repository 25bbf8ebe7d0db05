"""The route by which queries are submitted, and how they are answered at once."""

from __future__ import annotations

import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from starlette.responses import Response

from queryard.core.errors import QueryardError
from queryard.live.amounts import as_age
from queryard.live.online import online_wish
from queryard.live.request import OnlineRequest
from queryard.results.online import AnswerLog

from ..kept_rows import Piece
from ..principal import Principal
from ..results import KeptResult
from . import models
from .bodies import OnlineOptions, QueryBody
from .context import Context, context_of, principal_of, ready, told
from .documents import ROWS_CONTENT, errors
from .formats import MEDIA, Format, chosen_format, encoder, rows_json
from .guard import CutOff
from .parameters import deadline_of, parameters_of
from .queries import Wait
from .replies import JSON, as_json, problem_reply, to_json
from .states import brief
from .streaming import RowStream, while_there

router = APIRouter(tags=["queries"])

# How many rows an answer to a submission has at most.
FIRST_ROWS = 1000
FIRST_BYTES = 1 << 20
# Queries that take no longer than this are answered by the thread that entered them.
MOMENT_S = 0.1
LEFT = "its client has left"
T = TypeVar("T")


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
async def submit(request: Request, body: QueryBody, wait: Wait = 0.0) -> Any:
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
            first = _first(context, result, form, wait)
            found = await _until_gone(request, context, result, body, first)
        except QueryardError as error:
            return problem_reply(error, result.id)
        if found is not None and form != "json":
            return RowStream(context, principal, result, form, headers=headers)
        if found is not None:
            return await context.run(_with_rows, context, result, found, headers)
    if not body.idempotency_key and await request.is_disconnected():
        # It was not told the id, so that no client can ask for the query.
        await context.run(context.results.drop, result, LEFT)
        raise CutOff(LEFT)
    return as_json(brief(result.submitted, context.yard.session.now()), 201, headers)


def _asked(
    context: Context, principal: Principal, body: QueryBody, form: Format, wait_s: float
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
    if result.ticket.request.has_side_effects and not result.ticket.over.wait(moment_s):
        return None
    rows = result.rows
    # Woken once, and not by the columns, the rows and their end.
    if not rows.gather(FIRST_ROWS, FIRST_BYTES, moment_s) or rows.schema is None:
        return None
    piece = rows.read(0, FIRST_BYTES)
    return piece if piece.ended else None


def _headers(result: KeptResult) -> dict[str, str]:
    return {"Location": f"/v1/queries/{result.id}", "Queryard-Query": result.id}


def _entered(context: Context, principal: Principal, body: QueryBody) -> KeptResult:
    """Enter a query; in a thread, as looking at files takes time."""
    client = context.client(principal, body.session)
    online = None
    if body.online:
        wanted = OnlineOptions() if body.online is True else body.online
        every_s = as_age(wanted.every, "every")
        wish = online_wish(
            wanted.stop_at,
            wanted.confidence,
            every_s,
            wanted.within,
            wanted.columns,
            wanted.groups,
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


async def _first(context: Context, result: KeptResult, form: str, wait_s: float) -> Piece | None:
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
        piece = await context.run(rows.read_together, 0, FIRST_ROWS, FIRST_BYTES)
        left_s = until_s - time.monotonic()
        if piece.ended or piece.next >= FIRST_ROWS or left_s <= 0:
            return piece
        await told(rows.when_more, left_s)


async def _until_gone(
    request: Request,
    context: Context,
    result: KeptResult,
    body: QueryBody,
    work: Coroutine[Any, Any, T],
) -> T:
    """Wait for something, for as long as the client does: it alone could ask for the query.

    Without a key it does not know the query's id yet, so that the query would run for nothing.
    """
    try:
        return await while_there(request.receive, work)
    except CutOff:
        if body.idempotency_key:
            result.leave(principal_of(request))
        else:
            await context.run(context.results.drop, result, LEFT)
        raise


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
