"""A query as it is sent to a server, from the options of a session."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from queryard.core.errors import QueryardError
from queryard.engine.native import Parameters
from queryard.engine.syntax.classify import Classified, classify
from queryard.live.amounts import as_seconds, as_time_left
from queryard.live.client import check_types
from queryard.live.request import (
    ONE_SENDING,
    Plan,
    checked_plan,
    checked_priority,
    checked_tenant,
)

from .parameters import as_json


class Submission(NamedTuple):
    """The document of a query, and what the session knows of it."""

    body: Mapping[str, Any]
    statements: Sequence[Classified]
    keeps: bool

    @property
    def reads(self) -> bool:
        """Whether none of its statements has side effects."""
        return all(statement.reads for statement in self.statements)


def only_reads(sql: str) -> bool:
    """Whether no statement of a text has side effects."""
    return all(statement.reads for statement in classify(sql))


def asked(
    sql: str, parameters: Parameters, plan: Plan | None, usual: Plan | None
) -> dict[str, Any]:
    """What all requests about a statement have in common; `usual` is the session's own plan."""
    check_types(sql, parameters)
    return {
        "sql": sql,
        "parameters": as_json(parameters) or None,
        "plan": usual if plan is None else checked_plan(plan),
    }


def submission(
    sql: str,
    parameters: Parameters,
    usual: Plan | None,
    online: Mapping[str, Any] | None,
    *,
    plan: Plan | None = None,
    tenant: str | None = None,
    priority: float = 0.0,
    memory: int | str | None = None,
    time_limit: float | str | None = None,
    deadline: float | str | timedelta | datetime | None = None,
    idempotency_key: str = "",
    keep: float | str | None = None,
) -> Submission:
    """A query with the options of `submit`, all checked as an embedded session does."""
    body = asked(sql, parameters, plan, usual)
    statements = classify(sql)
    reads = all(statement.reads for statement in statements)
    if keep is not None:
        as_seconds(keep, "keep")
    if not isinstance(idempotency_key, str):
        raise QueryardError(f"idempotency_key: must be a text, got {idempotency_key!r}")
    body |= {
        "tenant": None if tenant is None else checked_tenant(tenant),
        "priority": checked_priority(priority),
        "memory": memory,
        "time_limit": None if time_limit is None else _time(time_limit, "time_limit"),
        "deadline": None if deadline is None else as_time_left(deadline, "deadline"),
        # With a key a statement runs once, though its request may be sent twice.
        "idempotency_key": idempotency_key or ("" if reads else f"{ONE_SENDING}{uuid.uuid4().hex}"),
        "online": online or False,
    }
    return Submission(body, statements, keep is not None)


def _time(amount: float | str, what: str) -> float | str:
    """A time as it was written, which errors repeat."""
    as_seconds(amount, what)
    return amount
