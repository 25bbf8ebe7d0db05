"""Statistics that collect themselves, on a thread of low priority beside the queries of a session.

First every table is sampled, those first that queries have named; then one table after the other is
analysed, at a fraction of the time, so that disks and cores belong to the queries. What is found
is kept with the data, and other sessions need not look again.
"""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import duckdb

from queryard.core.errors import QueryardError
from queryard.sql.catalog.canonical import is_text_table
from queryard.sql.catalog.catalog import Catalog
from queryard.sql.catalog.database import DatabaseTable
from queryard.sql.catalog.model import Table
from queryard.sql.catalog.open_files import is_writable, was_written

from .analyse import analyse_table
from .quick import quick_statistics, small_instance

START_S = 0.25
"""A program that only asks something short ends before."""

AGAIN_S = 5.0
"""How often tables are looked for that are new or have changed."""

WORKING_SHARE = 0.25
"""The share of the time in which a table is analysed; for the rest the thread sleeps."""

BUSY_FACTOR = 9.0
"""While queries are active, samples have a tenth of the time."""

LATEST_S = 600.0
"""For so long the analysis of a table makes way for queries; then it has its share in any case."""

QUIET_S = 10.0
"""For so long no query must have been active before a large table of text is sampled: that takes as
long as a query over all of it."""

DETACHED_S = 60.0
"""For so long a database that this process wrote is left alone."""

LARGE_TEXT_BYTES = 16e6
LOOK_S = 0.1
MOST_BYTES = 1e9
"""As much of a table is analysed at most."""

CLOSE_S, STOP_EVERY_S = 5.0, 0.01
NICENESS = 10
"""Not the lowest priority: a thread that holds Python's lock and gets no core stops all others."""

Arrived = Callable[[frozenset[str]], None]


class Stopped(Exception):
    """The collection is to end."""


class Collector:
    """Collects until it is closed; a table that cannot be read is left alone until it changes.

    `arrived` hears the keys of tables of which more is known, `failed` what went wrong.
    """

    def __init__(
        self,
        catalog: Catalog,
        memory_bytes: int,
        arrived: Arrived,
        failed: Callable[[BaseException], None],
        busy: Callable[[], bool] = lambda: False,
        temp: Path | None = None,
    ) -> None:
        """`temp` is a folder for what does not fit into memory: the system's, if None."""
        self._catalog = catalog
        self._memory_bytes = memory_bytes
        self._temp = temp
        self._arrived = arrived
        self._failed = failed
        self._busy = busy
        self._stop = threading.Event()
        self._names = self._table_names()
        self._wanted: frozenset[str] = frozenset()
        self._lock = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        # By what was done; a table that has changed is another object.
        self._done: dict[str, dict[str, Table]] = {"quick": {}, "slow": {}}
        # Tables of which more is known, and when that was told last.
        self._news: set[str] = set()
        self._told_s = 0.0
        # When queries were last seen to be active.
        self._busy_s = -math.inf
        self._thread = threading.Thread(target=self._run, name="queryard-statistics", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def want(self, names: Iterable[str]) -> None:
        """Words of a statement, in lower case: tables that are called so come first.

        Any word may be given, a text of a query too: those that name no table are not kept.
        """
        self._wanted |= self._names.intersection(names)

    def stop(self) -> None:
        """Begin to stop: a statement that runs is interrupted."""
        self._stop.set()
        with self._lock:
            if self._connection is not None:
                self._connection.interrupt()

    def close(self) -> None:
        """Stop, and wait for the thread, which takes a moment.

        A thread that is in DuckDB when the program ends would bring it down.
        """
        until_s = time.monotonic() + CLOSE_S
        while self._thread.is_alive() and threading.current_thread() is not self._thread:
            # Again and again: an interrupt between two statements is forgotten by the next one.
            self.stop()
            self._thread.join(STOP_EVERY_S)
            if time.monotonic() > until_s:
                return
        self.stop()

    def _run(self) -> None:
        lower_priority()
        wait_s = START_S
        while not self._stop.wait(wait_s):
            wait_s = AGAIN_S
            try:
                self._quick_pass()
                self._slow_pass()
            except Stopped:
                return
            except Exception as error:  # of a file system, of a full disk: the session goes on
                if self._stop.is_set():
                    return
                self._failed(error)

    def _table_names(self) -> frozenset[str]:
        return frozenset(table.name.lower() for table in self._catalog.tables.values())

    def _quick_pass(self) -> None:
        self._names = self._table_names()
        while (table := self._next("quick")) is not None:
            began_s = time.monotonic()
            with self._connected() as connection:

                @contextlib.contextmanager
                def same(
                    catalog: Catalog, connection: duckdb.DuckDBPyConnection = connection
                ) -> Iterator[duckdb.DuckDBPyConnection]:
                    yield connection

                with self._guarded("quick", table):
                    quick_statistics(self._catalog, table.key, same)
                    self._news.add(table.key)
            self._make_way(BUSY_FACTOR * (time.monotonic() - began_s))
        self._tell()

    def _make_way(self, most_s: float) -> None:
        """Leave the cores to queries, for so long at most."""
        until_s = time.monotonic() + most_s
        while self._busy() and time.monotonic() < until_s:
            if self._stop.wait(LOOK_S):
                raise Stopped

    def _slow_pass(self) -> None:
        while (table := self._next("slow")) is not None:
            self._make_way(LATEST_S)
            with self._guarded("slow", table):
                share = min(1.0, MOST_BYTES / max(table.bytes, 1.0))
                pace = _Pace(self._stop, self._make_way)
                analyse_table(self._catalog, table, share, self._connected, pace.rest)
                self._news.add(table.key)
            if time.monotonic() - self._told_s > AGAIN_S:
                self._tell()
            if self._next("quick") is not None:  # files have changed: samples first
                return
        self._tell()

    def _tell(self) -> None:
        """Not for every table by itself: each time all that waits is estimated anew."""
        if self._news:
            self._arrived(frozenset(self._news))
            self._news.clear()
            self._told_s = time.monotonic()

    @contextlib.contextmanager
    def _guarded(self, what: str, table: Table) -> Iterator[None]:
        """What goes wrong with a table, which a query that reads it says as well, is no matter."""
        if self._stop.is_set():
            raise Stopped
        try:
            yield
        except QueryardError as error:
            if self._stop.is_set():
                raise Stopped from error
            self._failed(error)
        self._done[what][table.key] = table

    def _next(self, what: str) -> Table | None:
        """The table to look at next: named by a query, then small ones first."""
        done = self._done[what]
        found = []
        for key, table in self._catalog.tables.items():
            # Other machines are not read unasked, and a long look keeps writers of a database out.
            if table.elsewhere or (what == "slow" and table.kind == "database"):
                continue
            if isinstance(table, DatabaseTable) and _is_left_alone(table.database.path):
                continue
            if done.get(key) is not table and not self._must_wait(table):
                found.append((table.name.lower() not in self._wanted, table.bytes, key, table))
        return min(found, key=lambda one: one[:3])[3] if found else None

    def _must_wait(self, table: Table) -> bool:
        """Whether to leave a table until the session has been quiet for a while."""
        if table.bytes < LARGE_TEXT_BYTES or not is_text_table(table):
            return False
        now = time.monotonic()
        if self._busy():
            self._busy_s = now
        return now - self._busy_s < QUIET_S

    @contextlib.contextmanager
    def _connected(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """An instance that `close` can interrupt."""
        with (
            tempfile.TemporaryDirectory(prefix="queryard-statistics-", dir=self._temp) as spill,
            small_instance(self._catalog) as connection,
        ):
            connection.execute(f"SET temp_directory = '{spill}'")
            connection.execute(f"SET memory_limit = '{self._memory_bytes} B'")
            with self._lock:
                if self._stop.is_set():
                    raise Stopped
                self._connection = connection
            try:
                yield connection
            finally:
                with self._lock:
                    self._connection = None


def _is_left_alone(database: str) -> bool:
    """Where clients of a server write, every write would be followed by a look.

    A database that was just detached is wanted by another program, which must not find the file
    locked by a look.
    """
    return is_writable(database) or was_written(database, DETACHED_S)


class _Pace:
    """Sleeps after each step, in proportion to what it took, and while queries are active."""

    def __init__(self, stop: threading.Event, make_way: Callable[[float], None]) -> None:
        self._stop = stop
        self._make_way = make_way
        self._began_s = time.monotonic()

    def rest(self, share: float) -> None:
        worked_s = time.monotonic() - self._began_s
        if self._stop.wait(worked_s * (1 / WORKING_SHARE - 1)):
            raise Stopped
        self._make_way(LATEST_S)
        self._began_s = time.monotonic()


def lower_priority() -> None:
    """Let the calling thread, and those that it starts, make way for others."""
    with contextlib.suppress(AttributeError, OSError):  # Linux lets a thread have its own
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
