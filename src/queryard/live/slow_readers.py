"""Rows that nobody has read yet must not hold memory for which others wait."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from queryard.results.streams import ResultStream

from .record import Record


class SlowReaders:
    """A slow reader pauses its query, until somebody waits for the memory it reserves."""

    def __init__(self, pool_bytes: int, file: Callable[[str], Path]) -> None:
        self._pool_bytes = pool_bytes
        self._file = file
        # Those that pause their query, or did.
        self._paused: set[ResultStream] = set()
        # Of all queries on their way, those that wait for memory included.
        self._reserved_bytes = 0

    def stream(self, never_full: bool) -> ResultStream:
        """A new one; one that is never full holds up nothing that comes after it."""
        return ResultStream(self._file(".arrow") if never_full else None)

    def go_on(self, stream: ResultStream) -> None:
        """Whatever does not fit goes to a file from now on."""
        stream.overflow_into(self._file(".arrow"))

    def reserve(self, record: Record, memory_bytes: int) -> None:
        """A query is about to wait for memory, or to take it."""
        record.memory_bytes = memory_bytes
        self._reserved_bytes += memory_bytes
        if self._is_crowded():
            while self._paused:
                if (stream := self._paused.pop()).full:
                    self.go_on(stream)

    def free(self, record: Record) -> None:
        self._reserved_bytes -= record.memory_bytes
        self._paused.discard(record.output)

    def _is_crowded(self) -> bool:
        """Whether somebody waits for memory; asked under the lock of a stream, takes no other."""
        return self._reserved_bytes > self._pool_bytes

    def watch(self, stream: ResultStream) -> None:
        """Decide when it is full: pause its query, or go on in a file."""
        pause = stream.on_full

        def on_full() -> None:
            # First noted, then asked: who reserves memory meanwhile sees one or the other.
            self._paused.add(stream)
            if self._is_crowded():
                self.go_on(stream)
            else:
                pause()

        stream.on_full = on_full
