"""Routes of all else: tables, tenants, profiles, the history, and whether the server is well."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request

from queryard.core.errors import QueryardError, unknown_name
from queryard.history import HistoryReader
from queryard.policies import catalogue
from queryard.sql.catalog import Catalog
from queryard.version import __version__

from ..principal import Principal
from ..problems import UnknownName
from ..yard import unknown_query
from . import models
from .bodies import ProfileBody
from .context import Context, admin_of, context_of, principal_of
from .documents import errors
from .replies import as_json

router = APIRouter()
_SEEN = errors(401, 422, 429)


@router.get(
    "/v1/whoami",
    tags=["server"],
    response_model=models.Whoami,
    responses=errors(401, 429),
    summary="The token's own name",
)
async def whoami(request: Request) -> Any:
    """The name, the tenant and the role of the token, and the version of the server."""
    principal = principal_of(request)
    about = {"name": principal.name, "tenant": principal.tenant, "role": principal.role}
    return as_json({**about, "version": __version__})


# --- tables --------------------------------------------------------------------------------------


@router.get(
    "/v1/tables",
    tags=["data"],
    response_model=models.TableList,
    responses=_SEEN,
    summary="List tables",
)
async def tables(request: Request) -> Any:
    """The tables that the token's tenant may read, with their columns."""
    context, principal = context_of(request), principal_of(request)
    return as_json({"tables": await context.run(_tables, context, principal)})


@router.get(
    "/v1/tables/{name}",
    tags=["data"],
    response_model=models.TableState,
    responses=errors(401, 404, 422, 429),
    summary="One table",
)
async def table(request: Request, name: Annotated[str, Path(max_length=1000)]) -> Any:
    """One table by its name, as it stands in the list."""
    context, principal = context_of(request), principal_of(request)
    return as_json(await context.run(_table, context, principal, name))


def _tables(context: Context, principal: Principal) -> list[dict[str, Any]]:
    catalog = context.yard.shared(principal).catalog_now()
    return [_described(catalog, key) for key in sorted(catalog.tables)]


def _table(context: Context, principal: Principal, name: str) -> dict[str, Any]:
    catalog = context.yard.shared(principal).catalog_now()
    if name not in catalog:
        raise UnknownName(unknown_name("table", name, catalog.tables))
    return _described(catalog, catalog[name].key)


def _described(catalog: Catalog, key: str) -> dict[str, Any]:
    found = catalog[key]
    described: dict[str, Any] = {"name": key, "kind": found.kind, "bytes": found.bytes}
    try:
        columns = [{"name": column.name, "type": column.type} for column in found.columns]
        described |= {"rows": found.rows, "columns": columns, "error": None}
    except QueryardError as error:
        described |= {"rows": None, "columns": None, "error": str(error)}
    return described | {"files": len(found.files)}


# --- tenants, profiles ---------------------------------------------------------------------------


@router.get(
    "/v1/tenants",
    tags=["server"],
    response_model=models.TenantList,
    responses=errors(401, 429),
    summary="List tenants",
)
async def tenants(request: Request) -> Any:
    """The tenant of the token and those below it, with their shares and what they do now.

    An admin's token sees all tenants.
    """
    context, principal = context_of(request), principal_of(request)
    return as_json({"tenants": await context.run(_tenants, context, principal)})


def _tenants(context: Context, principal: Principal) -> list[dict[str, Any]]:
    session = context.yard.session
    named = {tenant.name: tenant for tenant in session.tenants}
    waiting: Counter[str] = Counter()
    running: Counter[str] = Counter()
    slots: Counter[str] = Counter()
    for view in session.queries():
        (waiting if view.started_s is None else running)[view.tenant] += 1
        slots[view.tenant] += view.slots
    known = {*named, *waiting, *running, principal.tenant}
    if principal.role == "admin":
        known |= {info.tenant for info in context.yard.tokens.list()}
    return [
        {
            "name": name,
            "weight": named[name].weight if name in named else None,
            "guarantee": named[name].guarantee if name in named else None,
            "cap": named[name].cap if name in named else None,
            "waiting": waiting[name],
            "running": running[name],
            "slots": slots[name],
        }
        for name in sorted(known)
        if principal.may_see(name)
    ]


@router.get(
    "/v1/profiles",
    tags=["server"],
    response_model=models.ProfileList,
    responses=errors(401, 429),
    summary="List policies",
)
async def profiles(request: Request) -> Any:
    """The policy that the server follows, and all profiles there are."""
    context, principal = context_of(request), principal_of(request)
    current = context.yard.session.profile
    # With the shares of tenants in it, a profile is an admin's to see.
    shown = dict(current) if principal.role == "admin" else {"name": current.get("name", "")}
    listed = [asdict(info) for info in catalogue()]
    return as_json({"current": shown, "profiles": listed})


@router.put(
    "/v1/profiles/current",
    tags=["server"],
    response_model=models.ProfileList,
    responses=errors(400, 401, 403, 413, 422, 429),
    summary="Follow another policy",
)
async def use_profile(request: Request, body: ProfileBody) -> Any:
    """Decide by another policy from now on; what runs is not disturbed. For admins.

    It is recorded as a change, as by `POST /v1/controls`.
    """
    context, admin = context_of(request), admin_of(request)
    wanted = {"change": "profile", "profile": body.profile}
    await context.run(context.yard.controls.change, admin.name, wanted)
    return await profiles(request)


# --- history -------------------------------------------------------------------------------------


@router.get(
    "/v1/history",
    tags=["data"],
    response_model=models.HistoryList,
    responses=errors(401, 404, 422, 429, 503),
    summary="Queries of the past",
)
async def history(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=10_000, description="The last so many.")] = 100,
    since: Annotated[
        datetime | None, Query(description="A time of ISO 8601; of UTC without a zone.")
    ] = None,
    tenant: Annotated[str | None, Query(description="This tenant and those below it.")] = None,
    outcome: Annotated[
        list[Literal["finished", "failed", "cancelled", "refused", "lost", "open"]] | None,
        Query(description="Only such outcomes."),
    ] = None,
    template: Annotated[str | None, Query(description="Only queries of this template.")] = None,
) -> Any:
    """Queries of the token's tenant, an admin's of all tenants, with what they took."""
    context, principal = context_of(request), principal_of(request)
    wanted = {
        "limit": limit,
        "since": None if since is None else _moment(since),
        "tenant": tenant,
        "outcomes": outcome,
        "template": template,
    }
    return as_json({"queries": await context.run(_history, context, principal, wanted)})


@router.get(
    "/v1/history/{query}",
    tags=["data"],
    response_model=dict[str, Any],
    responses=errors(401, 404, 429, 503),
    summary="One query of the past",
)
async def past_query(request: Request, query: Annotated[str, Path(max_length=200)]) -> Any:
    """One query by its id."""
    context, principal = context_of(request), principal_of(request)
    found = await context.run(_history, context, principal, {"query": query, "tenant": None})
    if not found:
        raise unknown_query(query)
    return as_json(found[0])


def _moment(time: datetime) -> float:
    """Seconds since 1970; a time without a zone is one of UTC."""
    return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()


def _history(
    context: Context, principal: Principal, wanted: dict[str, Any]
) -> list[dict[str, Any]]:
    tenant = wanted.pop("tenant")
    if principal.role != "admin":
        if tenant is not None and not principal.may_act_for(tenant):
            return []  # as for one that does not exist
        tenant = tenant or principal.tenant
    file = context.yard.session.host.history_file
    if file is None:
        raise UnknownName("the server keeps no history")
    with HistoryReader(file) as reader:
        return [asdict(record) for record in reader.queries(tenant=tenant, **wanted)]


# --- health --------------------------------------------------------------------------------------


@router.get("/healthz", tags=["server"], response_model=models.Health, summary="Is it alive?")
async def healthz(request: Request) -> Any:
    """Whether the server answers; it needs no token."""
    return as_json({"status": "ok", "reason": None})


@router.get(
    "/readyz",
    tags=["server"],
    response_model=models.Health,
    responses={503: {"description": "It takes no queries.", "model": models.Health}},
    summary="Does it take queries?",
)
async def readyz(request: Request) -> Any:
    """Whether the server takes queries; it needs no token."""
    context = context_of(request)
    if closed := context.yard.closed:
        return as_json({"status": "draining", "reason": closed}, 503)
    try:
        await context.run(context.yard.session.queries)
    except Exception as error:
        return as_json({"status": "failed", "reason": type(error).__name__}, 503)
    return as_json({"status": "ok", "reason": None})
