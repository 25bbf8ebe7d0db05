"""Reads a segment once for many queries, and keeps what was parsed for later ones.

Parsing runs on the thread of the reader that comes first; others that want the same wait for it. A
reader that is cancelled or fails leaves the parsing to the next one. Only an error of the data that
concerns columns of a waiting reader is its error, too.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from queryard.core.errors import QueryardError
from queryard.engine.errors import QueryCancelled, QueryFailed
from queryard.estimate.sharing import SharingCosts
from queryard.sql.catalog.csv_files import CsvTable
from queryard.sql.catalog.json_files import JsonTable
from queryard.sql.catalog.model import Column, Table
from queryard.sql.catalog.segments import (
    TARGET_BYTES,
    Segment,
    Segments,
    known_segments,
    segments_of,
)

from .arrow_csv import is_usual
from .forms import kept_form
from .kept import Kept, KeptFile
from .making import Maker
from .places import Places
from .relations import key_of, listed, named, relation_of
from .text import Stop, rows_of

# How often a reader that waits for another looks whether it is cancelled.
_LOOK_S = 0.05
# Of so many tables, the last ones, costs outlive a session.
_COSTS_KEPT = 1_000

_stores: weakref.WeakSet[SegmentStore] = weakref.WeakSet()
_instances_of_parents: list[duckdb.DuckDBPyConnection | None] = []


class _Making:
    """A segment that is being parsed."""

    def __init__(self, columns: frozenset[str]) -> None:
        self.columns = columns
        self.done = threading.Event()
        self.error: QueryFailed | None = None


class SegmentStore:
    """Segments as relations that any connection of this process can read.

    What was parsed is kept in at most `memory_bytes` of memory and `disk_bytes` of disk in
    `folder` (by default the system's place for temporary files), as Parquet. Where nothing can be
    kept, because the folder cannot be written or the budgets are 0, segments are parsed for the
    readers of a moment only.
    """

    def __init__(
        self,
        memory_bytes: float,
        disk_bytes: float = 0.0,
        folder: str | Path | None = None,
        target_bytes: float = TARGET_BYTES,
    ) -> None:
        for name, value in (("memory_bytes", memory_bytes), ("disk_bytes", disk_bytes)):
            if value < 0:
                raise QueryardError(f"{name} is {value}: must be 0 or more")
        self.target_bytes = target_bytes
        self._budgets = (memory_bytes, disk_bytes)
        self._folder = folder
        self._start()
        _stores.add(self)

    def _start(self) -> None:
        self._places = Places(self._folder)
        self._kept = Kept(*self._budgets, self._places)
        self._lock = threading.Lock()
        self._making: dict[Hashable, _Making] = {}
        self._costs: dict[str, SharingCosts] = {}
        self._recalled: dict[str, Any] = {}
        self._versions: dict[str, str] = {}
        self._maker = Maker(self._places)
        self._closed = False
        self.makes = 0
        """How many times a segment was parsed."""

    # ------------------------------------------------------------------ reading

    def segments(self, table: Table) -> Segments:
        """The segments of a table, of the size that this store works with."""
        return segments_of(table, self.target_bytes)

    @contextmanager
    def reading(
        self,
        table: Table,
        segment: Segment,
        columns: Iterable[str],
        also: Iterable[str] = (),
        stop: Stop | None = None,
    ) -> Iterator[str]:
        """SQL to be put behind FROM that gives these columns of a segment.

        It holds as long as the context lasts. `also` are further columns that other readers are
        about to want: they are parsed in the same pass. Raises `QueryFailed` for bad data, and
        `InputMissing` where the files have changed since the table was opened.
        """
        wanted = named(table, columns)
        if any(kept_form(column.type, "") is None for column in wanted):
            with rows_of(table, segment) as (relation, _):
                yield f"(SELECT {listed(wanted)} FROM {relation})"
            return
        further = [c for c in named(table, also) if kept_form(c.type, "") is not None]
        with self._held(table, segment, wanted, further, stop) as file:
            yield relation_of(table, wanted, [file.path])

    @contextmanager
    def complete(self, table: Table, columns: Iterable[str]) -> Iterator[str | None]:
        """SQL for these columns of a whole table, in its order, from what is kept; else None.

        It holds as long as the context lasts.
        """
        with self.complete_files(table, columns) as found:
            yield None if found is None else found[0]

    @contextmanager
    def complete_files(
        self, table: Table, columns: Iterable[str]
    ) -> Iterator[tuple[str, tuple[str, ...]] | None]:
        """The same, and the paths of the files that it reads."""
        wanted = named(table, columns)
        if any(kept_form(column.type, "") is None for column in wanted):
            yield None
            return
        names = [column.name for column in wanted]
        segments = known_segments(table, self.target_bytes)
        files = None if segments is None else self._kept.all_leased(map(key_of, segments), names)
        if files is None:
            yield None
            return
        try:
            paths = tuple(file.path for file in files)
            yield relation_of(table, wanted, paths), paths
        finally:
            for file in files:
                self._kept.release(file)

    def rode(self, table: Table, segment: Segment, seconds: float) -> None:
        """A reader took so many processor seconds for what it did with a segment that is kept."""
        file = self._kept.leased(key_of(segment))
        if file is not None:
            self._kept.release(file)
            with self._lock:
                self._costs_of(table).saw_ride(file.rows, 1, seconds)

    def has(self, segment: Segment, columns: Iterable[str]) -> bool:
        """Whether these columns of a segment are kept, so that reading them parses nothing."""
        file = self._kept.leased(key_of(segment), columns)
        if file is not None:
            self._kept.release(file)
        return file is not None

    def share_kept(self, segments: Segments, columns: Iterable[str] = ()) -> float:
        """Of how large a part of the segments all of these columns are kept."""
        return self._kept.count_of(map(key_of, segments), columns) / max(1, len(segments))

    # ------------------------------------------------------------------ what is known, and the end

    def costs(self, table: Table) -> SharingCosts:
        """What making and riding took so far, per byte, column and row of the table."""
        with self._lock:
            return self._costs_of(table)

    def scanned(
        self, table: str, size_bytes: float, rows: float, columns: Collection[str], seconds: float
    ) -> None:
        """A query has read these columns of a table, by its key, without this store."""
        with self._lock:
            if (costs := self._costs.get(table)) is not None:
                costs.saw_scan(size_bytes, rows, columns, seconds)

    def learnt(self) -> dict[str, Any]:
        """What was learnt of the costs of tables, as plain data by their keys."""
        with self._lock:
            mine = {key: costs.to_state() for key, costs in self._costs.items()}
            return dict(list({**self._recalled, **mine}.items())[-_COSTS_KEPT:])

    def recall(self, learnt: Mapping[str, Any]) -> None:
        """Go on from the costs that earlier sessions have learnt, where nothing is known yet."""
        with self._lock:
            self._recalled = dict(learnt)
            for key, costs in self._costs.items():
                if not (costs.makes or costs.scans or costs.rides):
                    costs.take_state(learnt.get(key))

    def learn_anew(self) -> Callable[[], None]:
        """Forget what was learnt of costs; what it returns gives that back."""
        with self._lock:
            before = self._costs, self._recalled
            self._costs, self._recalled = {}, {}

        def give_back() -> None:
            with self._lock:
                self._costs, self._recalled = before

        return give_back

    @property
    def used_bytes(self) -> tuple[int, int]:
        """What is kept in memory and on disk."""
        return self._kept.used_bytes

    @property
    def problem(self) -> str:
        """Why nothing can be kept, or ""."""
        return self._places.problem

    def forget(self, table: str) -> None:
        """Drop what is kept of a table, by its key."""
        self._kept.drop(lambda key: isinstance(key, tuple) and key[0] == table)

    def close(self) -> None:
        """Drop everything. No reader may be left."""
        with self._lock:
            self._closed = True
        self._kept.drop(lambda key: True)
        self._places.close()
        self._maker.close()

    # ------------------------------------------------------------------ making

    @contextmanager
    def _held(
        self,
        table: Table,
        segment: Segment,
        wanted: Sequence[Column],
        further: Sequence[Column],
        stop: Stop | None,
    ) -> Iterator[KeptFile]:
        """The file of a segment that has the wanted columns."""
        self._drop_other_versions(segment)
        file = self._found_or_made(table, segment, wanted, further, stop)
        try:
            yield file
        finally:
            self._kept.release(file)

    def _found_or_made(
        self,
        table: Table,
        segment: Segment,
        wanted: Sequence[Column],
        further: Sequence[Column],
        stop: Stop | None,
    ) -> KeptFile:
        key = key_of(segment)
        names = frozenset(column.name for column in wanted)
        more = list(further)
        while True:
            if stop is not None:
                stop.check()
            with self._lock:
                if self._closed:
                    raise QueryardError("the store of segments is closed")
                if (file := self._kept.leased(key, names)) is not None:
                    return file
                making = self._making.get(key)
                if is_mine := making is None:
                    making = _Making(names.union(column.name for column in more))
                    self._making[key] = making
            assert making is not None
            if not is_mine:
                if not making.done.wait(_LOOK_S):
                    continue
                if making.error is not None and making.columns <= names:
                    raise type(making.error)(*making.error.args) from making.error
                continue
            try:
                return self._made(table, segment, making.columns, stop)
            except QueryCancelled:
                raise
            except QueryFailed as error:
                making.error = error
                if making.columns <= names:
                    raise
                # The bad value may be in a column that only others want.
                more = []
            finally:
                with self._lock:
                    del self._making[key]
                making.done.set()

    def _made(
        self, table: Table, segment: Segment, names: frozenset[str], stop: Stop | None
    ) -> KeptFile:
        """Parse the columns that are missing, and keep them beside those that are kept."""
        old = self._kept.leased(key_of(segment))
        had: frozenset[str] = frozenset() if old is None else old.columns
        new = [column for column in table.columns if column.name in names - had]
        try:
            began_s = time.thread_time()
            file = self._maker.made(table, segment, new, old, stop)
            took_s = time.thread_time() - began_s
        finally:
            if old is not None:
                self._kept.release(old)
        with self._lock:
            self.makes += 1
            self._costs_of(table).saw_make(
                segment.bytes, file.rows, [column.name for column in new], took_s
            )
        self._kept.put(key_of(segment), file)
        return file

    def _drop_other_versions(self, segment: Segment) -> None:
        with self._lock:
            if self._versions.get(segment.table) == segment.version:
                return
            self._versions[segment.table] = segment.version
        self._kept.drop(
            lambda key: (
                isinstance(key, tuple) and key[0] == segment.table and key[1] != segment.version
            )
        )

    def _costs_of(self, table: Table) -> SharingCosts:
        found = self._costs.get(table.key)
        if found is None:
            kind: str = table.kind
            if isinstance(table, CsvTable) and not is_usual(table):
                kind = "odd csv"
            if isinstance(table, CsvTable | JsonTable) and any(
                table.compression_of(file.uri) != "none" for file in table.files
            ):
                kind = f"{kind}.gz"
            found = self._costs[table.key] = SharingCosts.of(kind)
            found.take_state(self._recalled.get(table.key))
        return found


def _after_fork() -> None:
    """A child has none of the files and instances of its parent, and leaves them alone."""
    for store in list(_stores):
        # An instance of the parent cannot even be closed here.
        _instances_of_parents.append(store._maker.abandon())
        store._kept.abandon()
        store._start()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
