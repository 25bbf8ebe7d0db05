"""Where the rows of a query go until they are read, in bounded memory.

A stream that is full pauses its query until the reader has caught up (backpressure). A stream that
spills to a file is never full. The session's own connection uses such a stream, because a paused
statement would block all later ones there; so do queries that hold memory other queries wait for.

Rows are charged to an account. Where it is short of room a stream is full with its first batch, and
one that spills fails.
"""

from __future__ import annotations

import contextlib
import copy
import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, Protocol

from .accounts import UNLIMITED, Account
from .errors import NoRoom, QueryFailed
from .spool import SpoolFile

BUFFER_BYTES = 32 << 20

Returns = Literal["rows", "changes", "nothing"]
"""What a statement answers with: rows, how many rows it has changed, or that it is done."""


class Output(Protocol):
    """Where a query puts its rows."""

    # Called when a query that waits may go on.
    on_room: Callable[[], None]

    @property
    def full(self) -> bool:
        """Whether the query should wait."""

    def start(self, schema: Any, types: tuple[str, ...], returns: Returns = "rows") -> None: ...
    def put(self, batch: Any) -> None: ...
    def finish(self) -> None: ...
    def fail(self, error: BaseException) -> None: ...


class ResultStream:
    """Record batches on their way from one query to one reader."""

    def __init__(
        self,
        overflow: Path | None = None,
        limit_bytes: int = BUFFER_BYTES,
        account: Account = UNLIMITED,
    ) -> None:
        self._limit_bytes = limit_bytes
        self._account = account
        self._file = None if overflow is None else SpoolFile(overflow)
        self._changed = threading.Condition()
        self._batches: deque[Any] = deque()
        self._bytes = 0
        self._full = False
        self._ended = False
        self._finished = False
        # Whether a reader has taken rows.
        self.touched = False
        self._error: BaseException | None = None
        self._schema: Any = None
        self._types: tuple[str, ...] = ()
        self._returns: Returns = "rows"
        self.rows = 0
        self._waiting: list[Callable[[], None]] = []
        self._wanting: list[Callable[[], None]] = []
        # Readers that wait for many rows: how many, how many bytes, and what wakes each.
        self._gathering: list[tuple[int, int, threading.Event]] = []
        # The scheduler hears of both under a lock, in the order in which it happened; the query
        # that writes is woken.
        self.on_full: Callable[[], None] = _nothing
        self.on_room: Callable[[], None] = _nothing
        self.wakes: Callable[[], None] = _nothing
        # Hears why no further rows can be held: the query is to be stopped.
        self.on_refused: Callable[[NoRoom], None] = lambda error: None

    # --- the query's side --------------------------------------------------------------------

    @property
    def full(self) -> bool:
        return self._full

    @property
    def closed(self) -> bool:
        """Whether no more rows are wanted."""
        return self._ended

    @property
    def drained(self) -> bool:
        """Whether a reader has taken all rows."""
        return self._finished and not self._has_rows

    @property
    def _has_rows(self) -> bool:
        """Whether rows wait for a reader, in memory or in the file."""
        return bool(self._batches) or (self._file is not None and self._file.batches > 0)

    @property
    def spent(self) -> bool:
        """Whether all rows were read and nothing of them is left, in memory or in a file."""
        return self._finished and not self._batches and self._file is None

    @property
    def complete(self) -> bool:
        """Whether all rows have come, without an error."""
        return self._finished

    @property
    def ready(self) -> bool:
        """Whether there are columns to be read, or an error to be met."""
        return self._schema is not None or self._ended

    def is_small(self, rows: int, size_bytes: int) -> bool:
        """Whether all rows have come and are few, so that taking them neither waits nor lasts."""
        few = self.rows < rows and self._bytes <= size_bytes
        return self._finished and few and self._file is None

    def start(self, schema: Any, types: tuple[str, ...], returns: Returns = "rows") -> None:
        """The columns are known: an Arrow schema, and the SQL types."""
        with self._changed:
            self._returns = returns
            self._schema = schema
            self._types = types
            self._ready()

    def put(self, batch: Any) -> None:
        with self._changed:
            if self._ended:
                return  # the reader has closed it
            self._keep(batch)
            self.rows += batch.num_rows
            self._changed.notify_all()
            self._tell_more()
            self._tell_gathered()

    def _keep(self, batch: Any) -> None:
        size = batch.nbytes
        fits = self._bytes + size <= self._limit_bytes
        if self._batches and fits:
            fits = not self._account.crowded
        if self._file is not None and (self._file.batches or not fits):
            # As long as one batch is in the file all later ones go there: their order is kept.
            refusal = self._account.refusal()
            if refusal is not None:
                # Here, not in the query: others may read the same rows.
                self._fail(refusal)
                self.on_refused(refusal)
                return
            self._file.write(batch)
            self._account.hold(size, in_memory=False)
            return
        self._batches.append(batch)
        self._bytes += size
        self._account.hold(size, in_memory=True)
        if self._file is None and not self._full:
            self._full = self._bytes >= self._limit_bytes or self._account.crowded
            if self._full:
                self.on_full()

    def overflow_into(self, path: Path) -> None:
        """Do not pause the query any more: what does not fit goes to a file."""
        with self._changed:
            if self._file is None and not self._ended:
                self._file = SpoolFile(path)
                if self._full:
                    self._has_room()

    def take_back(self) -> bool:
        """Forget all rows, since the query begins again; False if a reader has taken some."""
        with self._changed:
            if self.touched:
                return False
            was_full = self._full
            self._drop()
            self.rows = 0
            if was_full:
                self._has_room()
            return True

    def finish(self) -> None:
        with self._changed:
            self._finished = self._finished or not self._ended
            self._ended = True
            self._ready()

    def fail(self, error: BaseException) -> None:
        """End with an error, which the reader meets at once: rows before it are dropped."""
        with self._changed:
            if not self._ended:
                self._fail(error)
            self._ready()

    def _fail(self, error: BaseException) -> None:
        self._ended = True
        self._error = error
        self._drop()
        self._ready()

    # --- the reader's side -------------------------------------------------------------------
    # Each reader has an error of its own: what is raised keeps the frames it passes, and with them
    # whatever a program holds there.

    def when_ready(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call something short once there are columns to be read, or an error to be met.

        What is given back withdraws the wish.
        """
        with self._changed:
            if self._schema is None and not self._ended:
                self._waiting.append(call)
                return lambda: without(self._waiting, call)
        call()
        return _nothing

    def when_more(self, call: Callable[[], None]) -> Callable[[], None]:
        """The same once there are rows to be taken, or none will come."""
        with self._changed:
            if not self._has_rows and not self._ended:
                self._wanting.append(call)
                return lambda: without(self._wanting, call)
        call()
        return _nothing

    def _ready(self) -> None:
        self._changed.notify_all()
        while self._waiting:
            self._waiting.pop()()
        if self._ended:
            self._tell_more()
            self._tell_gathered()

    def _tell_more(self) -> None:
        while self._wanting:
            self._wanting.pop()()

    def gather(self, rows: int, size_bytes: int, timeout_s: float | None = None) -> bool:
        """Wait until so many rows have come, or bytes wait, or no more come; a reader that takes
        them together is woken once, not by every step of the query. False if it was in vain.
        """
        with self._changed:
            if self._has_gathered(rows, size_bytes):
                return True
            enough = threading.Event()
            waits = (rows, size_bytes, enough)
            self._gathering.append(waits)
        if enough.wait(timeout_s):
            return True
        with self._changed:
            if waits in self._gathering:
                self._gathering.remove(waits)
        return enough.is_set()

    def _has_gathered(self, rows: int, size_bytes: int) -> bool:
        # A query that waits for its reader gives no more.
        return self._ended or self._full or self.rows >= rows or self._bytes >= size_bytes

    def _tell_gathered(self) -> None:
        if self._gathering:
            left = []
            for rows, size_bytes, enough in self._gathering:
                if self._has_gathered(rows, size_bytes):
                    enough.set()
                else:
                    left.append((rows, size_bytes, enough))
            self._gathering = left

    def when_gathered(self, rows: int, size_bytes: int, call: Callable[[], None]) -> None:
        """Call something short once `gather` would return; at once if it would now."""
        with self._changed:
            if not self._has_gathered(rows, size_bytes):
                self._gathering.append((rows, size_bytes, _Call(call)))
                return
        call()

    def schema(self, timeout_s: float | None = None) -> Any:
        """Wait for the columns; raises the query's error."""
        with self._changed:
            self._changed.wait_for(lambda: self._schema is not None or self._ended, timeout_s)
            if self._error is not None:
                raise copy.copy(self._error)
            if self._schema is None:
                raise TimeoutError(f"no answer within {timeout_s} s")
            return self._schema

    @property
    def types(self) -> tuple[str, ...]:
        """SQL types of the columns, once `schema` has answered."""
        return self._types

    @property
    def returns(self) -> Returns:
        """What the rows mean, once `schema` has answered."""
        return self._returns

    def next(self, timeout_s: float | None = None) -> Any:
        """The next batch; None at the end. Raises the query's error."""
        with self._changed:
            while True:
                if self._error is not None:
                    raise copy.copy(self._error)
                batch = self._take()
                if batch is not None:
                    return batch
                if self._ended:
                    return None
                if not self._changed.wait(timeout_s):
                    raise TimeoutError(f"no further rows within {timeout_s} s")

    def _take(self) -> Any:
        if not self._batches:
            if self._file is not None and self._file.batches:
                self.touched = True
                batch, size = self._file.read()
                self._account.let_go(size, in_memory=False)
                return batch
            return None
        self.touched = True
        batch = self._batches.popleft()
        size = batch.nbytes
        self._bytes -= size
        self._account.let_go(size, in_memory=True)
        # A reader that has taken everything is waited for no more, however crowded it is.
        few = self._bytes <= self._limit_bytes / 2 and not self._account.crowded
        if self._full and (few or not self._batches):
            self._has_room()
        return batch

    def _has_room(self) -> None:
        self._full = False
        self.on_room()
        self.wakes()

    def __iter__(self) -> Iterator[Any]:
        while (batch := self.next()) is not None:
            yield batch

    def close(self) -> None:
        """The reader wants no more."""
        with self._changed:
            self._ended = True
            self._drop()
            self._changed.notify_all()
            self._tell_more()
            self._tell_gathered()

    def discard(self) -> None:
        """The rows are wanted no more; a reader that comes all the same is told so."""
        with self._changed:
            if not (self._finished and self.drained):
                self._error = self._error or QueryFailed(
                    "the rows of the query are not kept any more; run it again"
                )
        self.close()

    def _drop(self) -> None:
        if self._bytes:
            self._account.let_go(self._bytes, in_memory=True)
        self._batches.clear()
        self._bytes = 0
        self._full = False
        if self._file is not None:
            if self._file.batches:
                self._account.let_go(self._file.size_bytes, in_memory=False)
            self._file.remove()


class _Call(threading.Event):
    """Something that is called when the event is set."""

    def __init__(self, call: Callable[[], None]) -> None:
        super().__init__()
        self._call = call

    def set(self) -> None:
        super().set()
        self._call()


def without(calls: list[Callable[[], None]], call: Callable[[], None]) -> None:
    """Take a call out of a list, unless another thread has; from any thread."""
    with contextlib.suppress(ValueError):
        calls.remove(call)


def _nothing() -> None:
    pass
