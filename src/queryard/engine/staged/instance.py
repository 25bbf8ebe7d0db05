"""The DuckDB instance of one staged query: every task runs on one core, on a cursor of its own."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import duckdb

from queryard.engine.errors import failure
from queryard.engine.sealing.access import Seal
from queryard.sql.catalog.quoting import literal

from .cancellation import Cancellation
from .exchange import Exchange, Piece

# How often a task that waits for a build side looks whether it is cancelled.
_LOOK_S = 0.05


def open_instance(
    memory_bytes: int, temp: Path, seal: Seal | None = None
) -> duckdb.DuckDBPyConnection:
    """An instance in memory; its limit is a hard one, beyond it DuckDB spills to `temp`.

    With a `seal` it opens nothing else.
    """
    try:
        instance = duckdb.connect(
            ":memory:",
            config={
                "threads": 1,
                "memory_limit": f"{memory_bytes} bytes",
                "temp_directory": str(temp),
            },
        )
        # DuckDB 2.0 fails with an internal error where it fetches columns late from part of a
        # file.
        instance.execute("SET GLOBAL disabled_optimizers = 'late_materialization'")
        # Each task reads a part of a file; the footer is the same for all of them.
        instance.execute("LOAD parquet")
        instance.execute("SET GLOBAL parquet_metadata_cache = true")
        if seal is not None:
            own = literal(str(temp / uuid.uuid4().hex))
            closing = {"temp_directory": own, "python_enable_replacements": "false"}
            for name, value in {**closing, **seal.settings()}.items():
                instance.execute(f"SET GLOBAL {name} = {value}")
    except duckdb.Error as error:
        raise failure(str(error)) from error
    return instance


class Build(NamedTuple):
    """A build side: the whole result of a job, made a table once per instance.

    `select` is the select list that gives the columns their types again. The rows under the keys
    of `drop` are dropped once the table stands: no other node will ask for them.
    """

    job: str
    select: str
    pieces: tuple[Piece, ...]
    drop: tuple[str, ...] = ()


class TaskInstance:
    """An instance as the tasks of one query use it; others may use it at the same time.

    Build sides are tables of a schema of its own, which `close` drops. Each task has a cursor, so
    `threads=1` in the instance is one core for each.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._schema = f"staged_{uuid.uuid4().hex}"
        self._lock = threading.Lock()
        self._free: list[duckdb.DuckDBPyConnection] = []
        self._building: dict[str, threading.Lock] = {}
        self._built: set[str] = set()
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE SCHEMA {self._schema}")

    @contextmanager
    def cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor that nothing else uses meanwhile."""
        with self._lock:
            cursor = self._free.pop() if self._free else None
        if cursor is None:
            cursor = self._connection.cursor()
            cursor.execute(f"USE {self._schema}")
        try:
            yield cursor
        finally:
            with self._lock:
                self._free.append(cursor)

    def build(
        self,
        build: Build,
        cursor: duckdb.DuckDBPyConnection,
        exchange: Exchange,
        cancelled: Cancellation,
    ) -> float:
        """Make a build side a table, unless it is one; one task makes it, others wait for it.

        Returns how many seconds its rows took to fetch.
        """
        with self._lock:
            building = self._building.setdefault(build.job, threading.Lock())
        while not building.acquire(timeout=_LOOK_S):
            cancelled.check()
        try:
            if build.job in self._built:
                return 0.0
            cancelled.check()
            began_s = time.perf_counter()
            rows = exchange.fetch(build.pieces, cancelled)
            fetch_s = time.perf_counter() - began_s
            cursor.register(f"rows_{build.job}", rows)
            del rows  # they are to be freed with the view
            try:
                cursor.execute(
                    f"CREATE OR REPLACE TABLE {self._schema}.build_{build.job} AS "
                    f"SELECT {build.select} FROM rows_{build.job}"
                )
            finally:
                cursor.unregister(f"rows_{build.job}")
            self._built.add(build.job)
            # The table counts against the instance's limit: keep no second copy of the rows.
            exchange.drop(build.drop)
            return fetch_s
        finally:
            building.release()

    def close(self) -> None:
        """Drop the build sides; no task may run any more."""
        with self._lock:
            cursors, self._free = self._free, []
        for cursor in cursors:
            cursor.close()
        with self._connection.cursor() as cursor:
            cursor.execute(f"DROP SCHEMA IF EXISTS {self._schema} CASCADE")
