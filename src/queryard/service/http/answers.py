"""The provisional answers of online queries: the newest one, or one after another."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any

import pyarrow as pa
from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from queryard.results.online import AnswerLog, OnlineAnswer

from ..principal import Principal
from ..problems import InvalidRequest, NotAcceptable
from ..results import KeptResult
from . import models
from .context import Context, context_of, principal_of, told
from .documents import EVENTS_CONTENT, errors
from .events import ALIVE, ALIVE_S, REVOKED, STREAM
from .formats import MEDIA, TYPES_KEY, chosen_format, columns_of, rows_json
from .queries import FormatName, QueryId, Wait
from .replies import to_json
from .streaming import watching, while_there

router = APIRouter(tags=["queries"])
ANSWER_KEY = "queryard:answer"


@router.get(
    "/v1/queries/{query}/answers",
    response_model=models.Answers,
    responses={
        200: {
            "description": "The newest answer.",
            "content": {
                **EVENTS_CONTENT,
                MEDIA["arrow"]: {"schema": {"type": "string", "format": "binary"}},
            },
        },
        **errors(401, 404, 406, 422, 429),
    },
    summary="Provisional answers",
)
async def answers(
    request: Request,
    query: QueryId,
    after: Annotated[int, Query(ge=0, description="The number of the last answer seen.")] = 0,
    wait: Wait = 0.0,
    format: FormatName = None,
) -> Any:
    """The newest answer of an online query, if it is newer than number `after`.

    With `wait`, it waits for a newer one. With the Accept header `text/event-stream` all answers
    come one after another, as events `answer`, until the event `end`. As Arrow the answer is a
    stream, with all the rest as the metadata `queryard:answer` of its schema.

    A query that could not be estimated has its answer in `rows`: then `in_rows` is true.
    """
    context, principal = context_of(request), principal_of(request)
    result = context.results.find(principal, query)
    log = result.log
    if log is None:
        raise InvalidRequest(
            f'query {query}: was not submitted as an online query; give "online": true, or read '
            "its rows"
        )
    accept = request.headers.get("accept", "")
    if format is None and "text/event-stream" in accept:
        stream = _events(context, principal, result, log, after)
        return StreamingResponse(stream, media_type=STREAM)
    form = chosen_format(format, accept)
    if form == "csv":
        raise NotAcceptable("format: provisional answers come as json, arrow or events, not as csv")
    if wait and log.number <= after:
        with watching(result, principal):
            await while_there(request.receive, told(partial(log.when_changed, after), wait))
    found, newest = about(result, log, after)
    if form == "json":
        content = await context.run(_json, found, newest)
        return Response(content, media_type="application/json")
    return Response(await context.run(_arrow, found, newest), media_type=MEDIA["arrow"])


def about(
    result: KeptResult, log: AnswerLog, after: int
) -> tuple[dict[str, Any], OnlineAnswer | None]:
    """What there is to say besides the answer, and the answer if it is new."""
    # In this order: an answer that is put before the log is closed must not be missed.
    ended = log.closed
    newest, number = log.newest, log.number
    error = result.ticket.error
    reason = log.reason or next(iter(result.ticket.facts.reasons), "")
    found = {
        "query": result.id,
        "number": number,
        "ended": ended,
        "in_rows": ended and error is None and (newest is None or log.is_whole),
        "reason": reason.removeprefix("runs exactly: "),
    }
    return found, newest if number > after else None


def _parts(answer: OnlineAnswer) -> dict[str, Any]:
    """All of an answer but its rows."""
    return {
        "columns": columns_of(answer.table.schema, answer.types),
        "fraction": answer.fraction,
        "exact": answer.exact,
        "elapsed_s": answer.elapsed_s,
        "confidence": answer.confidence,
        "error": answer.error,
        "low": {name: list(values) for name, values in answer.low.items()},
        "high": {name: list(values) for name, values in answer.high.items()},
        "marks": list(answer.marks),
        "eta_s": answer.eta_s._asdict(),
        "sample": answer.sample,
        "notes": list(answer.notes),
    }


def answer_document(answer: OnlineAnswer) -> dict[str, Any]:
    """An answer with its rows as plain data."""
    rows = rows_json(answer.table.to_batches(), answer.types)
    return {**_parts(answer), "rows": json.loads(rows)}


def _json(found: dict[str, Any], answer: OnlineAnswer | None) -> bytes:
    if answer is None:
        return to_json({**found, "answer": None})
    rows = rows_json(answer.table.to_batches(), answer.types)
    told_parts = to_json(_parts(answer))[:-1] + b', "rows": ' + rows + b"}"
    return to_json(found)[:-1] + b', "answer": ' + told_parts + b"}"


def _arrow(found: dict[str, Any], answer: OnlineAnswer | None) -> bytes:
    """A stream without columns if there is no newer answer."""
    table = pa.table({}) if answer is None else answer.table
    told_parts = {**found, "answer": None if answer is None else _parts(answer)}
    types = () if answer is None else answer.types
    metadata = {ANSWER_KEY: to_json(told_parts), TYPES_KEY: json.dumps(list(types))}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema.with_metadata(metadata)) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


async def _events(
    context: Context, principal: Principal, result: KeptResult, log: AnswerLog, after: int
) -> AsyncIterator[bytes]:
    result.readers += 1
    is_quiet = False
    try:
        with watching(result, principal):
            while True:
                if not context.yard.tokens.holds(principal):
                    yield REVOKED
                    return
                if is_quiet:
                    yield ALIVE
                found, newest = about(result, log, after)
                if newest is not None:
                    after = found["number"]
                    content = _json(found, newest).replace(b"\n", b" ")
                    yield b"event: answer\nid: %d\ndata: %s\n\n" % (after, content)
                if found["ended"]:
                    yield b"event: end\ndata: " + to_json({**found, "answer": None}) + b"\n\n"
                    return
                is_quiet = not await told(partial(log.when_changed, after), ALIVE_S)
    finally:
        result.readers -= 1
