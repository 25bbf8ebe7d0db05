"""Routes of what-ifs: policies compared on a window of the history."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from . import models_controls as models
from .context import admin_of, context_of
from .documents import errors
from .replies import as_json

router = APIRouter(tags=["operating"])
Name = Annotated[str, Path(max_length=100)]


@router.post(
    "/v1/whatif",
    status_code=201,
    response_model=models.WhatIfState,
    responses=errors(400, 401, 403, 404, 413, 422, 429),
    summary="What if?",
)
async def submit(request: Request, body: models.WhatIfBody) -> Any:
    """Compare policies on the queries of some time, in simulation. For admins.

    It runs in a process of its own at low priority, one at a time, and for five minutes at most.
    """
    context, admin = context_of(request), admin_of(request)
    yard = context.yard
    given = body.model_dump(exclude_none=True)
    history, tenants = yard.session.host.history_file, yard.session.tenants
    made = await context.run(yard.whatifs.submit, admin.name, given, history, tenants)
    return as_json(made, 201, {"Location": f"/v1/whatif/{made['id']}"})


@router.get(
    "/v1/whatif",
    response_model=models.WhatIfList,
    responses=errors(401, 403, 429),
    summary="List what-ifs",
)
async def listed(request: Request) -> Any:
    """Those that wait, run or are kept, the latest first. For admins."""
    admin_of(request)
    return as_json({"whatifs": context_of(request).yard.whatifs.list()})


@router.get(
    "/v1/whatif/{whatif}",
    response_model=models.WhatIfFound,
    responses=errors(401, 403, 404, 429),
    summary="One what-if",
)
async def shown(request: Request, whatif: Name) -> Any:
    """How far it is; once it is done, the table and figures of `queryard compare`. For admins."""
    admin_of(request)
    return as_json(context_of(request).yard.whatifs.show(whatif))


@router.delete(
    "/v1/whatif/{whatif}",
    status_code=204,
    responses=errors(401, 403, 404, 429),
    summary="Forget a what-if",
)
async def deleted(request: Request, whatif: Name) -> Response:
    """Forget it; if it runs, its process is killed. For admins."""
    admin_of(request)
    context_of(request).yard.whatifs.delete(whatif)
    return Response(status_code=204)
