"""Routes of statements that are looked at: their columns, their plan, what they would take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter, Request

from queryard.engine.classify import classify
from queryard.live.explaining import estimate as estimated
from queryard.live.explaining import explain as explained

from ..principal import Principal
from ..served import ServedClient, check_stateless
from . import models
from .context import Context, context_of, principal_of
from .documents import errors
from .parameters import parameters_of
from .replies import as_json

router = APIRouter(tags=["statements"])
T = TypeVar("T")
_ERRORS = errors(400, 401, 403, 404, 409, 413, 422, 429, 503)


@router.post(
    "/v1/describe",
    response_model=models.Described,
    responses=_ERRORS,
    summary="Columns and parameters",
)
async def describe(request: Request, body: models.StatementBody) -> Any:
    """The columns that a statement would give, and the types of its parameters; nothing is run."""

    def look(client: ServedClient) -> Any:
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
    "/v1/explain", response_model=dict[str, Any], responses=_ERRORS, summary="How it would be run"
)
async def explain(request: Request, body: models.ExplainBody) -> Any:
    """The jobs or operators of a statement; with `analyze` it is run, for the real figures."""
    found = await _looked(
        request,
        body,
        lambda client: explained(
            client.client,
            body.sql,
            parameters_of(body.parameters),
            analyze=body.analyze,
            plan=body.plan,
        ),
    )
    return as_json({**found.to_json(), "text": found.text()})


@router.post(
    "/v1/estimate",
    response_model=dict[str, Any],
    responses=_ERRORS,
    summary="What it would take",
)
async def estimate(request: Request, body: models.PlanBody) -> Any:
    """What a statement would read, take and give, with intervals; it is planned, not run."""
    found = await _looked(
        request,
        body,
        lambda client: estimated(
            client.client, body.sql, parameters_of(body.parameters), plan=body.plan
        ),
    )
    return as_json({**found.to_dict(), "text": found.text()})


async def _looked(
    request: Request, body: models.StatementBody, look: Callable[[ServedClient], T]
) -> T:
    """Look at a statement in a thread, within the limits of the token."""
    context, principal = context_of(request), principal_of(request)
    return await context.run(_look, context, principal, body, look)


def _look(
    context: Context,
    principal: Principal,
    body: models.StatementBody,
    look: Callable[[ServedClient], T],
) -> T:
    client = context.client(principal, body.session)
    if client.stateless:
        for statement in classify(body.sql):
            check_stateless(statement)
    context.yard.admit(principal, body.sql)
    try:
        return look(client)
    finally:
        context.yard.withdraw(principal)
