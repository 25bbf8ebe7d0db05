"""Rows that no reader has taken must not hold memory for which other queries wait."""

from __future__ import annotations


class SlowReaders:
    """A slow reader pauses its query, until another query waits for the memory it reserves."""

    def __init__(self, pool_bytes: int) -> None:
        # What there is for queries; on a cluster it changes.
        self.pool_bytes = pool_bytes
        # Queries with slow readers.
        self._paused: set[str] = set()
        # Of all active queries, those that wait for memory included.
        self.reserved_bytes = 0

    @property
    def is_crowded(self) -> bool:
        """Whether a query waits for memory."""
        return self.reserved_bytes > self.pool_bytes

    def reserve(self, memory_bytes: int) -> list[str]:
        """A query is about to reserve memory, or wait for it; the queries that must spill."""
        self.reserved_bytes += memory_bytes
        if not self.is_crowded:
            return []
        paused, self._paused = sorted(self._paused), set()
        return paused

    def free(self, query: str, memory_bytes: int) -> None:
        self.reserved_bytes -= memory_bytes
        self._paused.discard(query)

    def fell_behind(self, query: str) -> bool:
        """A reader is slow; whether its query must spill instead of pausing."""
        if self.is_crowded:
            return True
        self._paused.add(query)
        return False

    def caught_up(self, query: str) -> None:
        self._paused.discard(query)
