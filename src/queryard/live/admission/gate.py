"""Which queries are admitted: limits of the host, of tenants, and of the tenants above them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Protocol

from ..request import QueryRequest
from .limits import Limits

ALL = ""
NO_LIMITS = Limits()


class Admitted(Protocol):
    """An admitted query, as far as the gate knows it."""

    @property
    def id(self) -> str: ...
    @property
    def request(self) -> QueryRequest: ...
    @property
    def expected_s(self) -> float: ...


class Gate:
    """Counts waiting queries, and knows the expected work of all admitted ones."""

    def __init__(self, limits: Limits, tenants: Mapping[str, Limits], slots: int) -> None:
        self._limits = {ALL: limits, **tenants}
        # How many there are; on a cluster it changes.
        self.slots = slots
        # Whether no query starts, although slots are free.
        self.paused = False
        self._waiting: Counter[str] = Counter()
        self._waiters: set[str] = set()
        self._inside: dict[str, Admitted] = {}

    def follow(self, limits: Limits, tenants: Mapping[str, Limits]) -> None:
        """Hold queries that come from now on to other limits."""
        self._limits = {ALL: limits, **tenants}

    def has_limits(self, request: QueryRequest) -> bool:
        """Whether a query may be refused."""
        return any(limits != NO_LIMITS for _, limits in self._of(request))

    def limits_waits(self, request: QueryRequest) -> bool:
        """Whether a query has a limit on its expected wait."""
        return any(limits.wait_s is not None for _, limits in self._of(request))

    def wait_limit_at_risk_s(self, request: QueryRequest) -> float | None:
        """The smallest limit on a query's wait, if the work ahead may take longer; else None."""
        given = [limits.wait_s for _, limits in self._of(request) if limits.wait_s is not None]
        return min(given) if given and self._expected_work_s() / self.slots > min(given) else None

    def check(self, request: QueryRequest, wait_s: float) -> None:
        """Raise `Refused` if a query that would wait `wait_s` exceeds a limit."""
        # Queries that will get a free slot have not begun yet, but do not count as waiting.
        idle = max(0, self.slots - (len(self._inside) - len(self._waiters)))
        idle = 0 if self.paused else idle
        for name, limits in self._of(request):
            owner = f"tenant {name!r}" if name else "the session"
            waiting = max(0, self._waiting[name] - idle)
            if limits.waiting is not None and waiting >= limits.waiting > 0:
                next_s = self._expected_work_s() / self.slots / max(waiting, 1)
                limits.refuse_waiting(owner, waiting, next_s)
            limits.check(owner, wait_s, request.memory_bytes or 0)

    def _expected_work_s(self) -> float:
        """Expected core-seconds of all admitted queries, done work included."""
        return sum(admitted.expected_s for admitted in self._inside.values())

    def most_bytes(self, request: QueryRequest, usual: int) -> int:
        """What may be reserved for a query that names no amount of memory."""
        given = [limits.memory_bytes for _, limits in self._of(request)]
        return min([usual, *(most for most in given if most is not None)])

    def enter(self, admitted: Admitted) -> None:
        self._inside[admitted.id] = admitted
        self._waiters.add(admitted.id)
        self._waiting.update(_names(admitted.request))

    def started(self, admitted: Admitted) -> None:
        """It no longer waits."""
        if admitted.id in self._waiters:
            self._waiters.remove(admitted.id)
            for name in _names(admitted.request):
                self._waiting[name] -= 1
                if not self._waiting[name]:  # clients choose the names of tenants below their own
                    del self._waiting[name]

    def left(self, admitted: Admitted) -> None:
        self.started(admitted)
        del self._inside[admitted.id]

    @property
    def empty(self) -> bool:
        return not self._inside and not self._waiting

    def _of(self, request: QueryRequest) -> Iterator[tuple[str, Limits]]:
        limits = self._limits  # others may take their place meanwhile
        return ((name, limits[name]) for name in _names(request) if name in limits)


def _names(request: QueryRequest) -> tuple[str, ...]:
    """All queries together, the tenant, and the tenants above it.

    >>> _names(QueryRequest("", (), (), "native", tenant="sales/emea"))
    ('', 'sales', 'sales/emea')
    """
    return _with_above(request.tenant)


@lru_cache(maxsize=1024)
def _with_above(tenant: str) -> tuple[str, ...]:
    parts = tenant.split("/")
    return (ALL, *("/".join(parts[: end + 1]) for end in range(len(parts))))
