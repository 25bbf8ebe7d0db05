"""Routes of statements that are looked at: their columns, their plan, what they would take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter, Request

from queryard.engine.syntax.classify import classify
from queryard.live.explaining import estimate as estimated
from queryard.live.explaining import explain as explained
from queryard.live.explaining import explain_query

from ..looking import Looking
from ..served import ServedClient, check_stateless
from . import models
from .bodies import ExplainBody, PlanBody, StatementBody
from .context import context_of, principal_of
from .documents import errors
from .guard import CutOff
from .parameters import parameters_of
from .queries import QueryId
from .replies import as_json
from .streaming import while_there

router = APIRouter()
T = TypeVar("T")
_ERRORS = errors(400, 401, 403, 404, 409, 413, 422, 429, 503)


@router.post(
    "/v1/describe",
    tags=["statements"],
    response_model=models.Described,
    responses=_ERRORS,
    summary="Columns and parameters",
)
async def describe(request: Request, body: StatementBody) -> Any:
    """The columns that a statement would give, and the types of its parameters; nothing is run."""

    def look(client: ServedClient, looking: Looking) -> Any:
        given = None if body.parameters is None else parameters_of(body.parameters)
        return client.describe(body.sql, given)

    found = await _looked(request, body, look)
    columns = zip(found.names, found.types, strict=True)
    return as_json(
        {
            "columns": [{"name": name, "type": kind} for name, kind in columns],
            "parameters": list(found.parameters),
        }
    )


@router.post(
    "/v1/explain",
    tags=["statements"],
    response_model=dict[str, Any],
    responses=_ERRORS,
    summary="How it would be run",
)
async def explain(request: Request, body: ExplainBody) -> Any:
    """The jobs or operators of a statement; with `analyze` it is run, for the real figures."""
    found = await _looked(
        request,
        body,
        lambda client, looking: explained(
            client.client,
            body.sql,
            parameters_of(body.parameters),
            analyze=body.analyze,
            plan=body.plan,
            submit=looking.submit,
        ),
    )
    return as_json({**found.to_json(), "text": found.text()})


@router.post(
    "/v1/estimate",
    tags=["statements"],
    response_model=dict[str, Any],
    responses=_ERRORS,
    summary="What it would take",
)
async def estimate(request: Request, body: PlanBody) -> Any:
    """What a statement would read, take and give, with intervals; it is planned, not run."""
    found = await _looked(
        request,
        body,
        lambda client, looking: estimated(
            client.client,
            body.sql,
            parameters_of(body.parameters),
            plan=body.plan,
            submit=looking.submit,
        ),
    )
    return as_json({**found.to_dict(), "text": found.text()})


@router.get(
    "/v1/queries/{query}/plan",
    tags=["queries"],
    response_model=dict[str, Any],
    responses=errors(401, 404, 422, 429),
    summary="How a query is run",
)
async def plan(request: Request, query: QueryId) -> Any:
    """Its jobs or operators, with what was expected of them and what came of it."""
    context, principal = context_of(request), principal_of(request)
    submitted, _ = context.submitted(principal, query)
    looking = Looking(submitted.owner, principal)
    found = await looked(
        request,
        looking,
        lambda: explain_query(submitted.client, submitted.ticket, looking.submit),
    )
    return as_json({} if found is None else {**found.to_json(), "text": found.text()})


async def _looked(
    request: Request, body: StatementBody, look: Callable[[ServedClient, Looking], T]
) -> T:
    """Look at a statement in a thread, within the limits of the token, while its client waits."""
    context, principal = context_of(request), principal_of(request)
    client = context.client(principal, body.session)
    looking = Looking(client, principal)

    def run() -> T:
        if client.stateless:
            for statement in classify(body.sql):
                check_stateless(statement)
        context.yard.count(principal, body.sql)
        return look(client, looking)

    return await looked(request, looking, run)


async def looked(request: Request, looking: Looking, look: Callable[[], T]) -> T:
    """Run a look; what it has entered ends when its client leaves."""
    try:
        return await while_there(request.receive, context_of(request).run_long(look))
    except CutOff:
        looking.stop("its client has left")
        raise
