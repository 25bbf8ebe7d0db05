"""Routes of sessions: requests that share temporary tables, settings and transactions."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from ..principal import Principal
from . import models
from .bodies import SessionBody
from .context import Context, context_of, principal_of
from .documents import errors
from .replies import as_json

router = APIRouter(tags=["sessions"])


@router.post(
    "/v1/sessions",
    status_code=201,
    response_model=models.SessionState,
    responses=errors(400, 401, 403, 413, 422, 429, 503),
    summary="Open a session",
)
async def open_session(request: Request, body: SessionBody) -> Any:
    """A session with temporary tables, settings and transactions of its own.

    Name it in `session` of a query. It counts as a connection, and ends when it was idle for long.
    """
    context, principal = context_of(request), principal_of(request)
    return as_json(await context.run(_opened, context, principal, body), 201)


def _opened(context: Context, principal: Principal, body: SessionBody) -> dict[str, Any]:
    name, client = context.sessions.open(principal, body.label)
    if body.tenant is not None:
        try:
            client.narrow(body.tenant)
        except BaseException:
            context.sessions.drop(principal, name)
            raise
    return {"id": name, "label": client.label, "tenant": client.tenant}


@router.get(
    "/v1/sessions",
    response_model=models.SessionList,
    responses=errors(401, 429),
    summary="List sessions",
)
async def list_sessions(request: Request) -> Any:
    """The open sessions of the token."""
    context, principal = context_of(request), principal_of(request)
    found = context.sessions.all(principal)
    return as_json(
        {
            "sessions": [
                {"id": name, "label": client.label, "tenant": client.tenant}
                for name, client in found
            ]
        }
    )


@router.delete(
    "/v1/sessions/{session}",
    status_code=204,
    responses=errors(401, 404, 429),
    summary="Close a session",
)
async def close_session(
    request: Request, session: Annotated[str, Path(max_length=200)]
) -> Response:
    """Cancel what runs in a session, and free its temporary tables."""
    context, principal = context_of(request), principal_of(request)
    await context.run(context.sessions.drop, principal, session)
    return Response(status_code=204)
