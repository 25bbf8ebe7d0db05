"""Rows of a run on their way from a node to the reader, which is with the driver."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from queryard.results.streams import Returns

from .messages import NodeEvent, RowsBegan, RowsCame, RowsEnded

# So many bytes may be on their way before the reader has taken any.
WINDOW_BYTES = 16 << 20


class RowsOut:
    """To a query at a node it looks like the stream of its reader; `tell` sends events.

    It is full while `WINDOW_BYTES` are on their way: then the query waits.
    """

    def __init__(self, run: str, tell: Callable[[NodeEvent], None]) -> None:
        self._run = run
        self._tell = tell
        self._lock = threading.Lock()
        self._under_way = 0
        self.wakes: Callable[[], None] = _nothing

    @property
    def full(self) -> bool:
        return self._under_way >= WINDOW_BYTES

    def start(self, schema: Any, types: tuple[str, ...], returns: Returns = "rows") -> None:
        self._tell(RowsBegan(self._run, schema, types, returns))

    def put(self, batch: Any) -> None:
        size_bytes = batch.nbytes
        with self._lock:
            self._under_way += size_bytes
        self._tell(RowsCame(self._run, batch, size_bytes))

    def finish(self) -> None:
        self._tell(RowsEnded(self._run))

    def has_room(self, size_bytes: int) -> None:
        """The reader has taken some."""
        with self._lock:
            was_full = self.full
            self._under_way -= size_bytes
            wakes = was_full and not self.full
        if wakes:
            self.wakes()


def _nothing() -> None:
    pass
