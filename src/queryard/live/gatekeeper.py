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
    """Counts who waits, and adds up what is still to be done for all who are inside.

    Queries come on any thread, and begin on the driver's.
    """

    def __init__(self, limits: Limits, tenants: Mapping[str, Limits]) -> None:
        self._limits = {ALL: limits, **tenants}
        self._lock = threading.Lock()
        self._waiting: Counter[str] = Counter()
        self._waiters: set[str] = set()
        # Core-seconds expected of each query inside.
        self._due: dict[str, float] = {}
        self._due_s = 0.0

    def check(self, asked: Asked, slots: int) -> None:
        """Let a query in, or say what stands against it (`Refused`)."""
        wait_s = self._due_s / slots
        # Those for whom there is a slot have not begun yet, but do not wait either.
        idle = max(0, slots - (len(self._due) - len(self._waiters)))
        for name, limits in self._of(asked):
            whose = f"tenant {name!r}" if name else "the session"
            waiting = max(0, self._waiting[name] - idle)
            limits.check(whose, waiting, wait_s, asked.memory_bytes or 0)

    def most_bytes(self, asked: Asked, usual: int) -> int:
        """What may be reserved for a query that names no amount of memory."""
        given = [limits.memory_bytes for _, limits in self._of(asked)]
        return min([usual, *(most for most in given if most is not None)])

    def enter(self, record: Record) -> None:
        with self._lock:
            self._due[record.id] = record.expected_s
            self._due_s += record.expected_s
            self._waiters.add(record.id)
            self._waiting.update(_names(record.asked))

    def started(self, record: Record) -> None:
        """It waits no more."""
        with self._lock:
            self._stop_waiting(record)

    def left(self, record: Record) -> None:
        with self._lock:
            self._stop_waiting(record)
            self._due_s -= self._due.pop(record.id)
            if not self._due:
                self._due_s = 0.0  # no rounding left over

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
