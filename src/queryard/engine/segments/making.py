"""Parses a segment and writes columns of it down as a Parquet file."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress

import duckdb
import pyarrow as pa

from queryard.engine.errors import NoRoom
from queryard.sql.catalog.model import Column, Table
from queryard.sql.catalog.quoting import identifier, literal
from queryard.sql.catalog.segments import Segment

from .arrow_csv import parsed, write
from .forms import kept_form
from .kept import KeptFile
from .places import MemoryFile, Places, has_memory_files, removed
from .relations import numbers
from .text import Stop, check_version, rows_of, told

_MAKING_BYTES = 2**30


class Maker:
    """Makes files in some places; any thread may call any method, and works itself."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._lock = threading.Lock()
        self._instance: duckdb.DuckDBPyConnection | None = None

    def made(
        self,
        table: Table,
        segment: Segment,
        new: Sequence[Column],
        old: KeptFile | None,
        stop: Stop | None,
    ) -> KeptFile:
        """A file of the new columns, and of those that an old one has.

        Raises `QueryFailed` for bad data, and what `stop` raises.
        """
        columns = frozenset(column.name for column in new) | (old.columns if old else frozenset())
        check_version(segment)
        rows = parsed(table, segment, new)
        if stop is not None:
            stop.check()
        if rows is not None:
            number = numbers(table)
            rows = rows.rename_columns([f"c{number[column.name]}" for column in new] or ["is_row"])
            if old is None:
                return self._written(segment, rows, columns)
        return self._copied(table, segment, new, rows, old, columns, stop)

    def close(self) -> None:
        with self._lock:
            instance, self._instance = self._instance, None
        if instance is not None:
            instance.close()

    def abandon(self) -> duckdb.DuckDBPyConnection | None:
        """After a fork, in the child: what cannot even be closed here."""
        return self._instance

    def _written(self, segment: Segment, rows: pa.Table, columns: frozenset[str]) -> KeptFile:
        """What Arrow has parsed, written down by Arrow."""
        with _target(self._places) as target:
            try:
                write(rows, target.path)
            except (OSError, MemoryError, pa.ArrowException) as error:
                raise NoRoom(f"{segment}: what was parsed cannot be kept ({error})") from error
            check_version(segment)
            return target.finished(columns, rows.num_rows)

    def _copied(
        self,
        table: Table,
        segment: Segment,
        new: Sequence[Column],
        rows: pa.Table | None,
        old: KeptFile | None,
        columns: frozenset[str],
        stop: Stop | None,
    ) -> KeptFile:
        """What is missing beside what is there, by DuckDB; it parses unless `rows` are parsed."""
        with ExitStack() as stack:
            cursor = stack.enter_context(self._cursor())
            text_path = ""
            if rows is None:
                relation, text_path = stack.enter_context(rows_of(table, segment))
                select = f"SELECT {_items(table, new)} FROM {relation}"
            else:
                cursor.register("parsed", rows)
                select = "FROM parsed"
            if old is not None:
                kept = f"read_parquet({literal(old.path)})"
                select = f"SELECT old.*, new.* FROM {kept} AS old POSITIONAL JOIN ({select}) AS new"
            stack.enter_context(nullcontext() if stop is None else stop.interrupting(cursor))
            target = stack.enter_context(_target(self._places))
            try:
                copied = cursor.execute(
                    f"COPY ({select}) TO {literal(target.path)} "
                    "(FORMAT parquet, COMPRESSION snappy, USE_TMP_FILE false)"
                ).fetchone()
            except duckdb.Error as error:
                if stop is not None:
                    stop.check()
                raise told(error, segment, text_path) from error
            assert copied is not None
            check_version(segment)
            return target.finished(columns, int(copied[0]))

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor of an instance without threads: what is parsed is parsed by the caller."""
        with self._lock:
            if self._instance is None:
                self._instance = duckdb.connect(
                    ":memory:",
                    config={"threads": 1, "memory_limit": f"{_MAKING_BYTES} bytes"},
                )
                # Paths of files in memory come again for other files.
                self._instance.execute("SET enable_external_file_cache = false")
            cursor = self._instance.cursor()
        try:
            yield cursor
        finally:
            cursor.close()


def _items(table: Table, new: Sequence[Column]) -> str:
    number = numbers(table)
    items = [
        f"{kept_form(column.type, identifier(column.name))} AS c{number[column.name]}"
        for column in new
    ]
    return ", ".join(items) or "true AS is_row"


class _Target:
    """The file that is being written: in memory, or on disk where there is no such memory."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._memory = None
        if has_memory_files():
            with suppress(OSError):  # too many files are open
                self._memory = MemoryFile()
        if self._memory is not None:
            self.path = self._memory.path
        else:
            path = places.new_path()
            if path is None:
                raise NoRoom(places.problem)
            self.path = path

    def finished(self, columns: frozenset[str], rows: int) -> KeptFile:
        if self._memory is None:
            return KeptFile(self.path, columns, rows, os.stat(self.path).st_size, None)
        link = self._places.link(self._memory)
        path = link or self._memory.path
        return KeptFile(
            path, columns, rows, self._memory.size_bytes, self._memory, link is not None
        )

    def give_up(self) -> None:
        if self._memory is None:
            removed(self.path)
        else:
            self._memory.close()


@contextmanager
def _target(places: Places) -> Iterator[_Target]:
    """A file to be written; it is gone if that fails."""
    target = _Target(places)
    try:
        yield target
    except BaseException:
        target.give_up()
        raise
