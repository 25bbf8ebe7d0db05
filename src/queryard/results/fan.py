"""The rows of one query for all requests that asked the same at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from .streams import ResultStream, Returns

# A late reader is given the rows so far as long as there are no more than this.
KEPT_BYTES = 8 << 20


class Fan:
    """To a query it looks like the stream it writes to; readers have a stream each.

    A reader may join until rows are gone that it has not seen.
    """

    def __init__(self, first: ResultStream) -> None:
        self._lock = threading.Lock()
        self._streams: list[ResultStream] = []
        self._start: tuple[Any, tuple[str, ...], Returns] | None = None
        # The batches so far; None once they are too many to be kept.
        self._kept: list[Any] | None = []
        self._kept_bytes = 0
        self._ended = False
        self.on_room: Callable[[], None] = _nothing
        self.join(first)

    # --- readers ---------------------------------------------------------------------------------

    def join(self, stream: ResultStream) -> bool:
        """Give a stream all rows, those so far included; False if that is too late."""
        with self._lock:
            if self._ended or self._kept is None:
                return False
            stream.wakes = self._wake
            if self._start is not None:
                stream.start(*self._start)
            for batch in self._kept:
                stream.put(batch)
            self._streams.append(stream)
            return True

    def leave(self, stream: ResultStream) -> None:
        """A reader wants no more."""
        with self._lock:
            if stream in self._streams:
                self._streams.remove(stream)
        self.on_room()  # it may have been the one that was behind

    def _wake(self) -> None:
        self.on_room()

    # --- the query's side ------------------------------------------------------------------------

    @property
    def started(self) -> bool:
        """Whether readers have been told of columns."""
        return self._start is not None

    @property
    def full(self) -> bool:
        """Whether a reader is so far behind that the query has to wait."""
        return any(stream.full for stream in self._streams)

    def start(self, schema: Any, types: tuple[str, ...], returns: Returns = "rows") -> None:
        with self._lock:
            self._start = (schema, types, returns)
            for stream in self._streams:
                stream.start(schema, types, returns)

    def put(self, batch: Any) -> None:
        with self._lock:
            if self._kept is not None:
                self._kept_bytes += batch.nbytes
                self._kept.append(batch)
                if self._kept_bytes > KEPT_BYTES:
                    self._kept = None
            for stream in self._streams:
                stream.put(batch)

    def finish(self) -> None:
        for stream in self._end():
            stream.finish()

    def fail(self, error: BaseException) -> None:
        """No further reader may join. What the error means to readers is decided elsewhere: the
        query may be run again.
        """
        self._end()

    def _end(self) -> list[ResultStream]:
        with self._lock:
            self._ended = True
            self._kept = None
            return list(self._streams)


def _nothing() -> None:
    pass
