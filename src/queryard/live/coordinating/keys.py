"""The idempotency keys of queries: the same key again is the same query."""

from __future__ import annotations

from collections import OrderedDict

from ..admission.limits import came_with_another
from ..request import QueryRequest
from .entry import Entry

# How many keys are remembered; the oldest are forgotten first.
KEYS_KEPT = 100_000


class Keys:
    """Queries by tenant and key; the coordinator alone changes it."""

    def __init__(self) -> None:
        # With what must be the same if the key is.
        self._queries: OrderedDict[tuple[str, str], tuple[str, str]] = OrderedDict()

    def query(self, request: QueryRequest) -> str | None:
        """The query that came with the same key; an error if it asked for something else."""
        key = request.idempotency_key
        found = self._queries.get((request.tenant, key)) if key else None
        if found is None:
            return None
        query, asked = found
        if asked != request.asked_hash:
            raise came_with_another(key)
        return query

    def knows(self, request: QueryRequest) -> bool:
        """Whether a query came with the same key."""
        return (request.tenant, request.idempotency_key) in self._queries

    def remember(self, query: str, request: QueryRequest) -> None:
        if request.idempotency_key:
            key = request.tenant, request.idempotency_key
            self._queries[key] = query, request.asked_hash
            if len(self._queries) > KEYS_KEPT:
                self._queries.popitem(last=False)

    def ended(self, entry: Entry) -> None:
        """Forget the key of a query that has left nothing behind: given again, it runs.

        Of a script that failed, some statements may have run. A transaction that is still open may
        be rolled back.
        """
        request = entry.request
        key = request.tenant, request.idempotency_key
        if not request.idempotency_key or self._queries.get(key, ("",))[0] != entry.id:
            return
        if entry.error is not None:
            forgets = not request.is_script
        else:
            undoable = request.has_side_effects and entry.client.in_transaction
            forgets = undoable and not request.guards_sending
        if forgets:
            del self._queries[key]
