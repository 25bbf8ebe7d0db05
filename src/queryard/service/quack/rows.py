"""The rows of one result on their way to a client, of which several threads may ask at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from queryard.results.answer import Answer

from .versions import Codec

# The first reply has fewer rows, so that a small result costs little and a large one begins soon.
FIRST_CHUNKS = 12
MOST_CHUNKS = 60
# Replies are cut beyond this.
MOST_BYTES = 8 << 20


class Rows:
    """Batches are taken under a lock and numbered; they are encoded by the threads that ask."""

    def __init__(self, codec: Codec, answer: Answer, result: int) -> None:
        self.result = result
        self._codec = codec
        self._answer = answer
        self._columns = codec.columns(answer.columns, answer.types, answer.schema)
        self._lock = threading.Lock()
        self._batches: Iterator[Any] = iter(answer.batches())
        # The next batch, which says whether there are more.
        self._ahead: Any = None
        self._ended = False
        self._number = 0

    def first(self) -> list[Any]:
        """The reply to the statement, with the first rows; it waits for them."""
        with self._lock:
            batches = self._take(FIRST_CHUNKS)
            more = self._peek() is not None
        return self._columns.prepared(self._chunks(batches), self.result, more=more)

    def next(self) -> list[Any]:
        """The reply to a request for more; it waits for rows."""
        with self._lock:
            batches = self._take(MOST_CHUNKS)
            if batches:
                self._number += 1
            number = self._number if batches else None
        return self._codec.fetched(self._chunks(batches), number)

    @property
    def ended(self) -> bool:
        """Whether all rows were given out."""
        return self._ended and self._ahead is None

    def _take(self, most_chunks: int) -> list[Any]:
        """Batches for one reply, at least one unless there are no more."""
        found: list[Any] = []
        chunks = size = 0
        per_chunk = self._codec.chunk_rows
        while chunks < most_chunks and size < MOST_BYTES:
            batch = self._peek()
            if batch is None:
                break
            room = (most_chunks - chunks) * per_chunk
            piece = batch.slice(0, room)
            self._ahead = batch.slice(room) if batch.num_rows > room else None
            found.append(piece)
            chunks += -(-piece.num_rows // per_chunk)
            size += piece.nbytes
        return found

    def _peek(self) -> Any:
        while self._ahead is None and not self._ended:
            batch = next(self._batches, None)
            if batch is None:
                self._ended = True
            elif batch.num_rows:
                self._ahead = batch
        return self._ahead

    def _chunks(self, batches: list[Any]) -> list[Any]:
        return [chunk for batch in batches for chunk in self._columns.chunks(batch)]

    def close(self) -> None:
        """No more rows are wanted; a query that still runs is cancelled."""
        self._answer.close()
