"""Shuffled copies that make themselves, on a thread of low priority beside a session's queries.

An online query that reads a large table says that a copy is wanted. One copy is made at a time. It
pauses while queries are active, and is made again when the files of the table have changed.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from queryard.core.readable import size
from queryard.results.errors import QueryCancelled
from queryard.sql.catalog.catalog import Catalog
from queryard.sql.catalog.model import Table
from queryard.sql.statistics.collecting import lower_priority

from .copies import ShuffledCopy, copy_places, discard, find_copy, list_copies
from .model import SampleError
from .shuffling import BeingMade, shuffle
from .space import expected_bytes, writable_place

LARGE_BYTES, LARGE_ROWS = 64e6, 1e6
"""A table below both is read whole in a moment, and no copy of it is made unasked."""

AGAIN_S = 5.0
"""How often copies that are wanted are looked after."""

REST_FACTOR = 9.0
"""A copy whose table has changed is made again after so many times what it took: a tenth of the
time at most goes into a table that changes all the time."""

LATEST_S, TURN_S, TURN_SHARE = 600.0, 10.0, 0.1
"""For so long a copy makes way for queries; then it has a share of the time in any case."""

LIMIT_BYTES, LIMIT_SHARE = 10e9, 0.2
CLOSE_S = 5.0


class CopyMaker:
    """Makes copies until it is closed; a table that cannot be copied is left until it changes.

    `arrived` hears the key of a table that has a copy now, `failed` what went wrong. `busy` says
    whether queries are active. `limit_bytes` is what all copies of the catalog may take on disk: by
    default 10 GB, or a fifth of what is free if that is more.
    """

    def __init__(
        self,
        catalog: Catalog,
        memory_bytes: int,
        arrived: Callable[[str], None],
        failed: Callable[[BaseException], None],
        busy: Callable[[], bool] = lambda: False,
        limit_bytes: float | None = None,
    ) -> None:
        self._catalog = catalog
        self._memory_bytes = memory_bytes
        self._arrived = arrived
        self._failed = failed
        self._pace = _Pace(busy)
        self._limit_bytes = limit_bytes
        self._stop = threading.Event()
        self._look = threading.Event()
        self._wanted: dict[str, None] = {}
        # The state of a table that was looked after; when it may be next, and the copy on its way.
        self._done: dict[str, Table] = {}
        self._not_before_s: dict[str, float] = {}
        self._making: tuple[str, float] | None = None
        self._thread = threading.Thread(target=self._run, name="queryard-copies", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wanted(self, name: str) -> bool:
        """An online query reads a table; whether a copy is made of it, or would be if it is gone.

        None is made of a small table, of a frame, and of one that lies on another machine.
        """
        table = self._catalog[name]
        if not is_large(table):
            return False
        if table.key not in self._wanted:
            self._wanted[table.key] = None
            self._look.set()
        return True

    @property
    def making(self) -> tuple[str, float] | None:
        """The table of which a copy is being made, and the share that is done; None if none is."""
        return self._making

    def stop(self) -> None:
        """Begin to stop: what is half made is removed."""
        self._stop.set()
        self._look.set()

    def close(self) -> None:
        """Stop, and wait for the thread, which takes a moment."""
        self.stop()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(CLOSE_S)

    def _run(self) -> None:
        lower_priority()
        while not self._stop.is_set():
            self._look.wait(AGAIN_S)
            self._look.clear()
            while (table := self._next()) is not None:
                self._look_after(table)

    def _next(self) -> Table | None:
        """A wanted table that is new or has changed, the one first that was wanted first."""
        if self._stop.is_set():
            return None
        tables, now = self._catalog.tables, time.monotonic()
        for key in tuple(self._wanted):
            table = tables.get(key)
            due = self._not_before_s.get(key, 0.0) <= now
            if table is not None and self._done.get(key) is not table and due:
                return table
        return None

    def _look_after(self, table: Table) -> None:
        began_s = time.monotonic()
        try:
            places = copy_places(self._catalog, table)
            if find_copy(table, places) is None:
                self._make_room(table, places)
                self._make(table, places)
            self._arrived(table.key)
        except QueryCancelled:
            return  # it is to stop
        except BeingMade:
            self._not_before_s[table.key] = time.monotonic() + AGAIN_S
            return
        except Exception as error:  # of a full disk, say: the session goes on
            self._failed(error)
        finally:
            self._making = None
        self._done[table.key] = table
        took_s = time.monotonic() - began_s
        self._not_before_s[table.key] = time.monotonic() + REST_FACTOR * took_s

    def _make(self, table: Table, places: list[Path]) -> None:
        def progress(share: float) -> None:
            self._making = (table.key, share)

        shuffle(
            table,
            places,
            memory_bytes=self._memory_bytes,
            threads=1,
            progress=progress,
            cancelled=self._stop.is_set,
            allowed=self._pace.allowed,
        )

    def _make_room(self, table: Table, places: list[Path]) -> None:
        """Remove copies that no longer hold; SampleError if the limit leaves no room."""
        listed = list_copies(self._catalog)
        for copy, holds in listed:
            if not holds and copy.folder.parent in places:
                with contextlib.suppress(SampleError):  # another user's
                    discard(copy)
        kept = _bytes(copy for copy, holds in listed if holds)
        limit = self._limit_bytes
        if limit is None:
            free = shutil.disk_usage(writable_place(table, places)).free
            limit = max(LIMIT_BYTES, LIMIT_SHARE * free)
        needed = expected_bytes(table)[0]
        if kept + needed > limit:
            raise SampleError(
                f"table {table.key}: a shuffled copy of about {size(needed)} is not made: copies "
                f"may take {size(limit)}, and others have {size(kept)}; remove one with queryard "
                "shuffle --remove, or raise the limit"
            )


class _Pace:
    """Says whether a copy may go on: while no query is active, else after long, and little."""

    def __init__(self, busy: Callable[[], bool]) -> None:
        self._busy = busy
        self._waits_since_s: float | None = None

    def allowed(self) -> bool:
        now = time.monotonic()
        if not self._busy():
            self._waits_since_s = None
            return True
        if self._waits_since_s is None:
            self._waits_since_s = now
        waited_s = now - self._waits_since_s
        return waited_s >= LATEST_S and (waited_s % TURN_S) < TURN_S * TURN_SHARE


def is_large(table: Table) -> bool:
    """Whether a copy of a table is worth making unasked."""
    if not table.files or table.elsewhere:
        return False
    return table.bytes >= LARGE_BYTES or (table.rows or 0.0) >= LARGE_ROWS


def _bytes(copies: Iterable[ShuffledCopy]) -> float:
    return sum(copy.bytes for copy in copies)
