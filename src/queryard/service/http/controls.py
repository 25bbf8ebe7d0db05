"""Routes of the controls: what admins change while the server runs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request

from . import models_controls as models
from .context import admin_of, context_of
from .documents import errors
from .replies import as_json

router = APIRouter()


@router.get(
    "/v1/controls",
    tags=["operating"],
    response_model=models.ControlsState,
    responses=errors(401, 403, 422, 429),
    summary="What can be changed",
)
async def controls(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=10_000, description="The last so many changes.")] = 100,
) -> Any:
    """The policy, the tenants' shares and limits, whether queries start, and the last changes.

    For admins.
    """
    admin_of(request)
    context = context_of(request)
    return as_json(await context.run(context.yard.controls.show, limit))


@router.post(
    "/v1/controls",
    tags=["operating"],
    response_model=models.ChangeRecord,
    responses=errors(400, 401, 403, 404, 409, 413, 422, 429),
    summary="Make a change",
)
async def change(request: Request, body: models.ChangeBody) -> Any:
    """Change something while the server runs; what runs is not disturbed. For admins.

    `profile` follows another policy, `tenant` changes shares and limits of a tenant, `pause` starts
    no waiting query until `resume`, `drain` takes no further queries until `open`, `cancel-tenant`
    cancels all queries of a tenant and those below it, `reset-models` forgets what was learnt from
    queries that have ended.
    """
    context, admin = context_of(request), admin_of(request)
    given = body.model_dump(exclude_unset=True)
    return as_json(await context.run(context.yard.controls.change, admin.name, given))


@router.post(
    "/v1/controls/{change}/undo",
    tags=["operating"],
    response_model=models.ChangeRecord,
    responses=errors(400, 401, 403, 404, 409, 413, 422, 429),
    summary="Undo a change",
)
async def undo(
    request: Request,
    change: Annotated[int, Path(description="The number of the change.")],
    body: models.UndoBody | None = None,
) -> Any:
    """Set what a change has set to what it was before. For admins.

    It must be the last change of that: a later one is undone first.
    """
    context, admin = context_of(request), admin_of(request)
    reason = "" if body is None else body.reason or ""
    return as_json(await context.run(context.yard.controls.undo, admin.name, change, reason))
