"""What OpenAPI says of all routes alike."""

from __future__ import annotations

from typing import Any

from ..problems import BY_CLASS, BY_HEADING
from . import models
from .formats import MEDIA
from .replies import PROBLEM

_EXAMPLE = {
    "type": "urn:queryard:problem:unknown-name",
    "title": "The statement names what is not there",
    "status": 422,
    "detail": 'Catalog Error: Table with name ordres does not exist!\nDid you mean "orders"?',
    "sqlstate": "42P01",
    "query": "5f0c2a91b7de-14",
}
# Besides JSON; the schemas of both are their own.
ROWS_CONTENT: dict[str, Any] = {
    MEDIA["arrow"]: {"schema": {"type": "string", "format": "binary"}},
    MEDIA["csv"]: {"schema": {"type": "string"}, "example": "n,name\n1,Ann\n"},
}
EVENTS_CONTENT: dict[str, Any] = {
    "text/event-stream": {
        # Of each event.
        "schema": {
            "type": "object",
            "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
            "required": ["data"],
        },
        "example": {"event": "state", "data": '{"id": "5f0c2a91b7de-14", "state": "running"}'},
    }
}
DESCRIPTION = """
Queries of a team, on one Queryard. Every request has a token: `Authorization: Bearer qy_…`.

Errors are `application/problem+json`, with an SQLSTATE. Times that end in `_s` are seconds; those
of queries are on the server's clock, which every answer tells as `now_s`.
"""


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems that a route may answer with."""
    titles: dict[int, set[str]] = {}
    for kind in (*(kind for _, kind in BY_CLASS), *BY_HEADING.values()):
        titles.setdefault(kind.status, set()).add(kind.title)
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {
            "description": "; ".join(sorted(titles.get(status, {"A problem"}))),
            "content": {PROBLEM: {"schema": schema, "example": _EXAMPLE}},
        }
        for status in statuses
    }


def finished_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """OpenAPI's document with the token and the problems of all routes."""
    components = schema.setdefault("components", {})
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "`queryard token add NAME`"}
    }
    components.setdefault("schemas", {})["Problem"] = models.Problem.model_json_schema(
        ref_template="#/components/schemas/{model}"
    )
    # FastAPI's own form of errors, which are problems here.
    for name in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(name, None)
    schema["security"] = [{"token": []}]
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            if path in ("/healthz", "/readyz"):
                operation["security"] = []
            found = operation["responses"].get("422", {}).get("content", {})
            if "application/json" in found:
                operation["responses"].update({"422": errors(422)[422]})
    return schema
