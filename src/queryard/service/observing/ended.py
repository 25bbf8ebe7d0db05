"""The queries that ended last, by tenant, as plain data: their rows are not kept for it."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from typing import NamedTuple

from queryard.engine.syntax.redaction import without_literals
from queryard.live.facts import Timing

from ..problems import problem_of
from ..submitted import Submitted
from .visibility import Visibility

# Of each tenant, and of how many tenants; and of a text.
KEPT = 20
TENANTS = 1_000
SQL_CHARACTERS = 300


class EndedQuery(NamedTuple):
    """One query that has ended."""

    id: str
    sql: str
    tenant: str
    status: str
    timing: Timing
    deadline_s: float | None
    why: str


class EndedQueries:
    """Hears of the queries of a yard, in threads of others."""

    def __init__(self, redacts: bool) -> None:
        self._redacts = redacts
        self._lock = threading.Lock()
        self._by_tenant: OrderedDict[str, deque[EndedQuery]] = OrderedDict()

    def began(self, submitted: Submitted) -> None:
        """Nothing is noted before the end."""

    def ended(self, submitted: Submitted) -> None:
        ticket = submitted.ticket
        error = ticket.error
        why = "" if error is None else problem_of(error).kind.title
        if error is not None and not self._redacts:
            why = problem_of(error).detail.partition("\n")[0][:SQL_CHARACTERS]
        sql = ticket.request.sql
        self.keep(
            EndedQuery(
                id=submitted.id,
                sql=(without_literals(sql) if self._redacts else sql)[:SQL_CHARACTERS],
                tenant=submitted.tenant,
                status=ticket.status,
                timing=ticket.timing(),
                deadline_s=ticket.request.deadline_s,
                why=why,
            )
        )

    def keep(self, row: EndedQuery) -> None:
        """Keep a query, in the place of the oldest of its tenant."""
        with self._lock:
            rows = self._by_tenant.get(row.tenant)
            if rows is None:
                rows = self._by_tenant[row.tenant] = deque(maxlen=KEPT)
                if len(self._by_tenant) > TENANTS:
                    self._by_tenant.popitem(last=False)
            else:
                self._by_tenant.move_to_end(row.tenant)
            rows.append(row)

    def last(self, visibility: Visibility, most: int = KEPT) -> list[EndedQuery]:
        """Those that ended last of all that are seen, the last one first."""
        with self._lock:
            found = [
                row
                for tenant, rows in self._by_tenant.items()
                if visibility.may_see(tenant)
                for row in rows
            ]
        found.sort(key=lambda row: row.timing.ended_s or 0.0, reverse=True)
        return found[:most]
