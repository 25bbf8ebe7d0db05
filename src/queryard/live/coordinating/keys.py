"""Idempotency keys: a second submission with the same key is the same query."""

from __future__ import annotations

from collections import OrderedDict

from queryard.core.errors import QueryardError

from .. import inputs
from ..request import QueryRequest

# How many keys are remembered; the oldest are forgotten first.
KEYS_KEPT = 100_000


class Keys:
    """The keys of a session, each within its tenant."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], tuple[str, tuple[str, str]]] = OrderedDict()

    def asked_before(self, request: QueryRequest) -> str | None:
        """The query that came with the same key."""
        key = request.idempotency_key
        found = self._known.get((request.tenant, key)) if key else None
        if found is None:
            return None
        query, asked = found
        if asked != _asked(request):
            raise QueryardError(
                f"idempotency_key {key!r}: came with another statement or other parameters before; "
                "use a key of its own for each statement"
            )
        return query

    def knows(self, request: QueryRequest) -> bool:
        """Whether a query came with the same key."""
        return (request.tenant, request.idempotency_key) in self._known

    def remember(self, given: inputs.Submit) -> None:
        request = given.request
        if request.idempotency_key:
            self._known[request.tenant, request.idempotency_key] = given.query, _asked(request)
            if len(self._known) > KEYS_KEPT:
                self._known.popitem(last=False)


def kernel_key(request: QueryRequest) -> str:
    """One per tenant and key, within the session: no tenant has an empty name in it."""
    key = request.idempotency_key
    return f"{request.tenant}//{key}" if key else ""


def _asked(request: QueryRequest) -> tuple[str, str]:
    """What must be the same if a key is: the statement and its parameters."""
    return request.sql, repr(request.parameters)
