"""Who is let in: limits of the session, of tenants, and of those above them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping

from .asked import Asked
from .limits import Limits
from .record import Record

ALL = ""


class Gatekeeper:
    """Counts who waits, and knows what is expected of all who are inside.

    Queries come on any thread, and begin on the driver's.
    """

    def __init__(self, limits: Limits, tenants: Mapping[str, Limits]) -> None:
        self._limits = {ALL: limits, **tenants}
        self._lock = threading.Lock()
        self._waiting: Counter[str] = Counter()
        self._waiters: set[str] = set()
        self._inside: dict[str, Record] = {}

    def doubtful_s(self, asked: Asked, slots: int) -> float | None:
        """The shortest wait that is too long for a query, if all before it may take longer."""
        given = [limits.wait_s for _, limits in self._of(asked) if limits.wait_s is not None]
        return min(given) if given and self._due_s() / slots > min(given) else None

    def check(self, asked: Asked, slots: int, wait_s: float) -> None:
        """Let a query in that would wait so long, or say what stands against it (`Refused`)."""
        # Those for whom there is a slot have not begun yet, but do not wait either.
        idle = max(0, slots - (len(self._inside) - len(self._waiters)))
        for name, limits in self._of(asked):
            whose = f"tenant {name!r}" if name else "the session"
            waiting = max(0, self._waiting[name] - idle)
            if limits.waiting is not None and waiting >= limits.waiting > 0:
                limits.refuse_waiting(whose, waiting, self._due_s() / slots / max(waiting, 1))
            limits.check(whose, wait_s, asked.memory_bytes or 0)

    def _due_s(self) -> float:
        """Core-seconds of all inside, as they are expected now; what is done is among them."""
        with self._lock:
            return sum(record.expected_s for record in self._inside.values())

    def most_bytes(self, asked: Asked, usual: int) -> int:
        """What may be reserved for a query that names no amount of memory."""
        given = [limits.memory_bytes for _, limits in self._of(asked)]
        return min([usual, *(most for most in given if most is not None)])

    def enter(self, record: Record) -> None:
        with self._lock:
            self._inside[record.id] = record
            self._waiters.add(record.id)
            self._waiting.update(_names(record.asked))

    def started(self, record: Record) -> None:
        """It waits no more."""
        with self._lock:
            self._stop_waiting(record)

    def left(self, record: Record) -> None:
        with self._lock:
            self._stop_waiting(record)
            del self._inside[record.id]

    def _stop_waiting(self, record: Record) -> None:
        if record.id in self._waiters:
            self._waiters.remove(record.id)
            self._waiting.subtract(_names(record.asked))

    def _of(self, asked: Asked) -> Iterator[tuple[str, Limits]]:
        return ((name, self._limits[name]) for name in _names(asked) if name in self._limits)


def _names(asked: Asked) -> list[str]:
    """Everybody, the tenant, and those above it.

    >>> _names(Asked("", (), (), "native", tenant="sales/emea"))
    ['', 'sales', 'sales/emea']
    """
    parts = asked.tenant.split("/")
    return [ALL, *("/".join(parts[: end + 1]) for end in range(len(parts)))]
