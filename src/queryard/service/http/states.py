"""Queries as plain data: how far they are, why they wait, when they end and what they cost."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any

from queryard.live.facts import Timing
from queryard.live.why import WaitReport

from ..principal import Principal
from ..problems import problem_of
from ..submitted import Submitted
from .formats import columns_of
from .replies import problem_json

_QUERY_ID = re.compile(r"\b[0-9a-f]{12}-\d+\b")
_TIMES = tuple(field.name for field in fields(Timing))
ANOTHER_QUERY = "another query"
ANOTHER_TENANT = "another tenant"


def brief(submitted: Submitted, now_s: float) -> dict[str, Any]:
    """What is known of a query without asking the scheduler."""
    ticket = submitted.ticket
    facts, request, timing = ticket.facts, ticket.request, ticket.timing()
    error = ticket.facts.error
    online = request.online
    schema = columns = returns = None
    output = ticket.output
    if error is None and output.types:
        schema = output.schema(0)
        columns, returns = columns_of(schema, output.types), output.returns
    return {
        "id": ticket.id,
        "state": ticket.status,
        "sql": request.sql,
        "tenant": request.tenant,
        "token": submitted.principal.name,
        "protocol": submitted.protocol,
        "priority": request.priority,
        "plan": request.plan,
        "deadline_s": request.deadline_s,
        "time_limit_s": request.time_limit_s,
        "online": online is not None,
        "progress": ticket.progress(),
        "rows": output.rows,
        "columns": columns,
        "returns": returns,
        "reasons": list(facts.reasons),
        "submitted_at": datetime.fromtimestamp(submitted.asked_at, UTC).isoformat(),
        "now_s": now_s,
        "timing": {name: getattr(timing, name) for name in _TIMES},
        "memory_bytes": facts.memory_bytes,
        "peak_memory_bytes": facts.peak_memory_bytes,
        "error": None if error is None else problem_json(problem_of(error)),
        "links": links(ticket.id, online is not None),
    }


def links(query: str, is_online: bool) -> dict[str, str]:
    """Where to go on."""
    own = f"/v1/queries/{query}"
    found = {"self": own, "rows": f"{own}/rows", "events": f"{own}/events", "plan": f"{own}/plan"}
    return found | ({"answers": f"{own}/answers"} if is_online else {})


def told_why(
    report: WaitReport, principal: Principal, visible: Iterable[str], tenants: Iterable[str]
) -> dict[str, Any]:
    """What holds a query, without the names of other tenants and of their queries."""
    found = {**asdict(report), "text": str(report), "ahead_count": len(report.ahead)}
    if principal.role == "admin":
        return found
    own = {report.query, *visible}
    others = [name for name in tenants if not principal.may_act_for(name)]

    def cleaned(text: str) -> str:
        text = _QUERY_ID.sub(lambda m: m[0] if m[0] in own else ANOTHER_QUERY, text)
        # Longer names first: "web/shop" before "web".
        for name in sorted(others, key=len, reverse=True):
            text = re.sub(rf"(?<![\w/]){re.escape(name)}(?![\w])", ANOTHER_TENANT, text)
        return text

    found["ahead"] = [name for name in report.ahead if name in own]
    found["reasons"] = [cleaned(reason) for reason in report.reasons]
    found["text"] = cleaned(str(report))
    return found
