"""The queue for a client's own connection, where one query runs at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import NamedTuple

from .entry import Entry


class Waiter(NamedTuple):
    """A queued query, or a caller (`token`) that wants the connection for itself."""

    entry: Entry | None
    token: Hashable = None


class ConnectionQueue:
    """Entries in order of arrival (FIFO), and the one that holds the connection."""

    def __init__(self) -> None:
        self._waiting: deque[Waiter] = deque()
        self.holder: Waiter | None = None

    def join(self, waiter: Waiter) -> None:
        self._waiting.append(waiter)

    def next(self) -> Waiter | None:
        """The next entry, if the connection is free."""
        return self._waiting.popleft() if self.holder is None and self._waiting else None

    def concerns(self, later: Entry) -> bool:
        """Whether a queued query may have side effects that a later one would see."""
        return any(
            waiter.entry.client.concerns(waiter.entry.request, later.request)
            for waiter in self._all()
            if waiter.entry is not None
        )

    @property
    def work_s(self) -> float:
        """Core-seconds of all queued queries."""
        return sum(waiter.entry.expected_s for waiter in self._all() if waiter.entry is not None)

    def leave(self, waiter: Waiter) -> bool:
        """Remove an entry; whether it held the connection."""
        if self.holder == waiter:
            self.holder = None
            return True
        if waiter in self._waiting:
            self._waiting.remove(waiter)
        return False

    @property
    def empty(self) -> bool:
        return self.holder is None and not self._waiting

    def _all(self) -> list[Waiter]:
        return [*([self.holder] if self.holder is not None else []), *self._waiting]
