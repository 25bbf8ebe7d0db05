"""Answers of the server: JSON, and problems after RFC 9457."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from queryard.live.admission.limits import AlreadyRan, MayHaveRun

from ..problems import Problem, Unauthorized, problem_of

JSON = "application/json"
PROBLEM = "application/problem+json"
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=str)


def as_json(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Plain data as JSON."""
    return Response(to_json(content), status, dict(headers or {}), JSON)


def to_json(content: Any) -> bytes:
    """JSON without what JSON lacks: infinite numbers are null."""
    try:
        text = _ENCODER.encode(content)
    except ValueError:
        text = _ENCODER.encode(_finite(content))
    return text.encode(errors="replace")


def _finite(content: Any) -> Any:
    if isinstance(content, float) and not math.isfinite(content):
        return None
    if isinstance(content, Mapping):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return content


def problem_json(problem: Problem, query: str | None = None) -> dict[str, Any]:
    """A problem as plain data."""
    kind = problem.kind
    found: dict[str, Any] = {
        "type": kind.type,
        "title": kind.title,
        "status": kind.status,
        "detail": problem.detail,
        "sqlstate": problem.sqlstate,
    }
    optional = {"query": query, "line": problem.line, "retry_after_s": problem.retry_after_s}
    return found | {name: value for name, value in optional.items() if value is not None}


def problem_reply(error: BaseException, query: str | None = None) -> Response:
    """What a client is told of an error."""
    if query is None and isinstance(error, AlreadyRan | MayHaveRun):
        query = error.query
    problem = problem_of(error)
    headers = {}
    if problem.retry_after_s is not None:
        headers["Retry-After"] = str(max(1, math.ceil(problem.retry_after_s)))
    if isinstance(error, Unauthorized):
        headers["WWW-Authenticate"] = 'Bearer realm="queryard"'
    if query is not None:
        headers["Queryard-Query"] = query
    content = to_json(problem_json(problem, query))
    return Response(content, problem.kind.status, headers, PROBLEM)
