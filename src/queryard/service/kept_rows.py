"""Rows of a query that stay after they were read, so that a reader can go on where it was cut off.

Rows are taken from the query only when a reader wants them: a query whose rows are not read is
paused by its stream. What was taken is kept, first in memory, then in files. Where the token has
no room for more, it is dropped from the front: first what lies before a position that a client has
asked for, then what was sent long ago.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from queryard.results.errors import NoRoom
from queryard.results.streams import ResultStream, Returns

from .problems import RowsGone

# Batches in files share a file up to about this size: whole files are freed at once.
FILE_BYTES = 64 << 20
# A reader is given about this much at a time.
PIECE_BYTES = 4 << 20
# How long the first rows wait for those that come with them.
TOGETHER_S = 0.005
# So much of what was sent last is kept: a connection that is cut may not have delivered it.
BACK_BYTES = 4 * PIECE_BYTES


class Room(Protocol):
    """Where rows may be kept."""

    def make_room(self, size_bytes: int, rows: KeptRows, position: int) -> None:
        """Some rows are about to be kept, for a reader at a position; they are then counted."""

    def freed(self, size_bytes: int) -> None:
        """Rows are kept no more."""

    def take_memory(self, size_bytes: int) -> bool:
        """Whether rows may be kept in memory; they are then counted."""

    def give_memory(self, size_bytes: int) -> None:
        """Rows are kept in memory no more."""

    def new_file(self) -> Path:
        """A place for a file that is removed with the server."""


class Piece(NamedTuple):
    """Some rows from a position on; `ended` says that none follow, `later` that some may come."""

    batches: list[Any]
    next: int
    ended: bool

    @property
    def later(self) -> bool:
        return not self.batches and not self.ended


@dataclass(slots=True)
class _Kept:
    start: int
    rows: int
    size_bytes: int
    batch: Any
    file: _File | None = None
    at: int = 0
    length: int = 0


class KeptRows:
    """The rows of one query by position; calls come from any thread, and may read files."""

    def __init__(self, output: ResultStream, room: Room) -> None:
        self._output = output
        self._room = room
        self._lock = threading.Lock()
        self._kept: list[_Kept] = []
        self._first = 0
        self._end = 0
        # A client has all rows before this position.
        self._delivered = 0
        self._complete = False
        self._gone = ""
        self._file: _File | None = None
        # The batch that was read last from a file, by its position.
        self._last: tuple[int, Any] | None = None

    @property
    def schema(self) -> Any:
        """The Arrow schema; None before it is known. Raises the query's error."""
        try:
            return self._output.schema(0)
        except TimeoutError:
            if self._gone:
                raise RowsGone(self._gone) from None
            return None

    @property
    def types(self) -> tuple[str, ...]:
        return self._output.types

    @property
    def returns(self) -> Returns:
        return self._output.returns

    @property
    def first(self) -> int:
        """The position of the first row that is kept."""
        return self._first

    @property
    def rows(self) -> int:
        """How many rows the query has given so far, those that were not read included."""
        return self._output.rows

    @property
    def complete(self) -> bool:
        """Whether all rows were taken."""
        return self._complete

    def when_ready(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call something short once the schema is known, or an error; the result withdraws it."""
        return self._output.when_ready(call)

    def when_more(self, call: Callable[[], None]) -> Callable[[], None]:
        """The same once `read` may give more than it did."""
        return self._output.when_more(call)

    def gather(self, rows: int, size_bytes: int, timeout_s: float) -> bool:
        """Wait until the query has given so many rows, or bytes wait to be taken, or no more come;
        False if that takes longer.
        """
        return self._output.gather(rows, size_bytes, timeout_s)

    def asked(self, position: int) -> None:
        """A client asks for the rows from a position on: it has got those before it."""
        self._delivered = max(self._delivered, position)

    def read(self, position: int, most_bytes: int = PIECE_BYTES) -> Piece:
        """Rows from a position on, as far as they are there; raises the query's error."""
        with self._lock:
            if self._gone:
                raise RowsGone(self._gone)
            if position < self._first:
                raise RowsGone(
                    f"rows before {self._first:,} are kept no more, as all rows that are held for "
                    f"the token exceed `result` in [service.limits]; row {position:,} was asked "
                    f"for. Read on from {self._first:,}, or run the query again"
                )
            found: list[Any] = []
            size = 0
            while size < most_bytes:
                if position >= self._end and not self._take(position):
                    break
                if position >= self._end:
                    continue
                kept = self._kept[bisect_right(self._kept, position, key=_start) - 1]
                batch = _about(self._loaded(kept).slice(position - kept.start), most_bytes)
                found.append(batch)
                size += max(1, batch.nbytes)
                position += batch.num_rows
            return Piece(found, position, self._complete and position >= self._end)

    def read_together(self, position: int, rows: int, most_bytes: int) -> Piece:
        """The same with rows that come within a few milliseconds, unless there are enough.

        Few rows come one after another with the columns and the end; a reader that takes them
        together changes threads once, not for each of them.
        """
        self._output.gather(rows, most_bytes, TOGETHER_S)
        return self.read(position, most_bytes)

    def _take(self, position: int) -> bool:
        """Take a further batch from the query, if there is one now; the lock is held."""
        if self._complete:
            return False
        try:
            batch = self._output.next(0)
        except TimeoutError:
            return False
        if batch is None:
            self._complete = True
            return False
        if batch.num_rows:
            self._keep(batch, position)
        return True

    def _keep(self, batch: Any, position: int) -> None:
        size = batch.nbytes
        self._room.make_room(size, self, position)
        kept = _Kept(self._end, batch.num_rows, size, batch)
        if not self._room.take_memory(size):
            self._write(kept)
        self._kept.append(kept)
        self._end += batch.num_rows

    def _write(self, kept: _Kept) -> None:
        if self._file is None or self._file.size_bytes >= FILE_BYTES:
            self._file = _File(self._room.new_file())
        kept.file = self._file
        kept.at, kept.length = self._file.write(kept.batch)
        kept.batch = None

    def _loaded(self, kept: _Kept) -> Any:
        if kept.file is None:
            return kept.batch
        # A large batch is given out in several pieces.
        if self._last is None or self._last[0] != kept.start:
            self._last = kept.start, kept.file.read(kept.at, kept.length)
        return self._last[1]

    # --- freeing ---------------------------------------------------------------------------------

    def free_before(self, position: int) -> None:
        """Drop what lies before a position; the caller holds the lock, being inside `read`."""
        while self._kept and self._kept[0].start + self._kept[0].rows <= position:
            dropped = self._kept.pop(0)
            self._first = dropped.start + dropped.rows
            self._let_go(dropped)

    def free_for(self, position: int, enough: Callable[[], bool]) -> None:
        """Drop the oldest rows until it is enough, for a reader at a position.

        What was sent to it last is kept. The caller holds the lock, being inside `read`.
        """
        back = sum(kept.size_bytes for kept in self._kept if kept.start < position)
        while self._kept and not enough():
            oldest = self._kept[0]
            end = oldest.start + oldest.rows
            back -= oldest.size_bytes
            if end > position or (end > self._delivered and back < BACK_BYTES):
                return
            self.free_before(end)

    def free_read(self) -> bool:
        """Drop all rows that were taken, unless a reader is at it just now."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            self.free_before(self._end)
        finally:
            self._lock.release()
        return True

    def close(self, reason: str) -> None:
        """Drop everything, and take no more; readers are told the reason."""
        with self._lock:
            self._gone = reason
            self._last = None
            self.free_before(self._end)
        self._output.close()

    def _let_go(self, kept: _Kept) -> None:
        self._room.freed(kept.size_bytes)
        if kept.file is None:
            self._room.give_memory(kept.size_bytes)
        else:
            kept.file.release()
            if kept.file is self._file and kept.file.is_gone:
                self._file = None


class _File:
    """Batches one behind another, each with its schema; removed with the last of them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.size_bytes = 0
        self._batches = 0
        self.is_gone = False

    def write(self, batch: Any) -> tuple[int, int]:
        """Append a batch; where it begins, and how long it is."""
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
            writer.write_batch(batch)
        buffer = sink.getvalue()
        at = self.size_bytes
        try:
            with self._path.open("ab") as file:
                file.write(buffer)
        except OSError as error:
            raise NoRoom(
                f"the rows do not fit into memory, and not into {self._path.parent}: "
                f"{error.strerror or error}; make room there, or name another folder"
            ) from None
        self.size_bytes += buffer.size
        self._batches += 1
        return at, buffer.size

    def read(self, at: int, length: int) -> Any:
        with pa.OSFile(str(self._path), "rb") as file:
            file.seek(at)
            return pa.ipc.open_stream(file.read_buffer(length)).read_next_batch()

    def release(self) -> None:
        self._batches -= 1
        if self._batches == 0:
            self.is_gone = True
            self._path.unlink(missing_ok=True)


def _about(batch: Any, size_bytes: int) -> Any:
    """The first rows of a batch that is much larger than wanted."""
    if batch.nbytes <= 2 * size_bytes:
        return batch
    return batch.slice(0, max(1, batch.num_rows * size_bytes // batch.nbytes))


def _start(kept: _Kept) -> int:
    return kept.start
