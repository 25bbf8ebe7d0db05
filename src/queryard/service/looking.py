"""Statements that are run to tell how another one would run, or runs; they end with their asker."""

from __future__ import annotations

import threading

from queryard.engine.errors import QueryCancelled
from queryard.engine.native import Parameters
from queryard.live.request import Plan
from queryard.live.ticket import Ticket

from .principal import Principal
from .submitted import Owner


class Looking:
    """One look by a principal: what it enters counts for its token and is listed as any query."""

    def __init__(self, owner: Owner, asker: Principal) -> None:
        self._owner = owner
        self._asker = asker
        self._lock = threading.Lock()
        self._entered: list[str] = []
        self._left = ""

    def submit(self, sql: str, parameters: Parameters, plan: Plan) -> Ticket:
        """Enter a statement, as `live.explaining` wants it."""
        self._check_there()
        entered = self._owner.enter(sql, parameters, asker=self._asker, plan=plan)
        with self._lock:
            self._entered.append(entered.id)
            left = self._left
        if left:  # meanwhile
            self._cancel(entered.id)
        return entered.ticket

    def stop(self, reason: str) -> None:
        """The asker has left."""
        with self._lock:
            self._left = reason
            entered = list(self._entered)
        for query in entered:
            self._cancel(query)

    def _check_there(self) -> None:
        if self._left:
            raise QueryCancelled(self._left)

    def _cancel(self, query: str) -> None:
        self._owner.client.host.cancel(query, QueryCancelled(self._left))
