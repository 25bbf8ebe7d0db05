"""A shuffled copy on its way: about 100 Parquet files by a hash of the row number.

DuckDB divides all rows in one pass over the table. Each thread gathers rows per file and writes
them as a row group once there are so many that those of all files take half the memory it is given:
to spill them would make a copy up to four times dearer. Within a file rows stay about in the
table's order.

The copy is written to a temporary folder and appears by a rename. What a killed process leaves
there is removed by the next copy that is made.
"""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq

from queryard.engine.instances.instance import Connection, Instance
from queryard.engine.temp import TempSpace
from queryard.results.errors import QueryCancelled
from queryard.sql.catalog.database import DatabaseTable
from queryard.sql.catalog.locations import local_file
from queryard.sql.catalog.model import CatalogError, Table
from queryard.sql.catalog.open_files import Claims
from queryard.sql.catalog.parquet import ROW_NUMBER, ParquetTable
from queryard.sql.catalog.quoting import identifier, literal
from queryard.sql.statistics.store import data_fingerprint, file_name

from . import kept_types
from .copies import ShuffledCopy, write_manifest
from .lent_threads import run
from .model import Part, SampleError, part_column
from .space import expected_bytes

SCAN_SHARE = 0.5
"""Of the time that a copy takes, about this goes into reading and dividing the rows."""

GATHERED_SHARE = 0.5
"""Of the memory, this goes to rows that are gathered."""

# A gathered value takes about this much, DuckDB's own bookkeeping included (TPC-H's lineitem). A
# row group has at least as many rows as DuckDB handles at a time, at most as many as usually.
_VALUE_BYTES = 34
_LEAST_GROUP, _USUAL_GROUP = 2_048, 122_880


class Writing:
    """One copy on its way, in a temporary folder."""

    def __init__(self, table: Table, place: Path, buckets: int, seed: int) -> None:
        self._table = table
        self._place = place
        self._space = TempSpace(place)
        self._seed = seed
        self._buckets = buckets
        self._folder = self._space.path / "copy"
        self._bucket = part_column(table.columns)
        self._cast: frozenset[str] = frozenset()

    def close(self) -> None:
        """Remove all that has not become a copy."""
        self._space.close()

    def write(
        self,
        threads: int,
        memory_bytes: int,
        spill_bytes: int,
        progress: Callable[[float], None],
        cancelled: Callable[[], bool],
        allowed: Callable[[], bool],
    ) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        with self._connected(threads, memory_bytes, spill_bytes) as connection:
            self._cast = self._probe(connection)
            run(connection, self._sql, self._control(threads, progress, cancelled, allowed))

    @contextmanager
    def _connected(self, threads: int, memory_bytes: int, spill_bytes: int) -> Iterator[Connection]:
        """An instance whose threads are lent to it, and which can read the table."""
        table = self._table
        claims = Claims()
        spill = self._space.path / "spill"
        spill.mkdir(exist_ok=True)
        instance = Instance(threads, memory_bytes, spill)
        try:
            connection = Connection(instance)
            try:
                connection.set(
                    {
                        "max_temp_directory_size": literal(f"{max(0, spill_bytes)} bytes"),
                        # Else a file would be closed and another begun in its place.
                        "partitioned_write_max_open_files": str(self._buckets + 1),
                        "partitioned_write_flush_threshold": str(
                            self._gathered_rows(threads, memory_bytes)
                        ),
                    }
                )
                if isinstance(table, DatabaseTable):
                    claims.claim(table.database.path, writes=False)
                    alias = identifier(table.database.alias)
                    connection.run(f"ATTACH {literal(table.database.path)} AS {alias} (READ_ONLY)")
                yield connection
            finally:
                connection.close()
        finally:
            instance.close()
            claims.release()

    def _gathered_rows(self, threads: int, memory_bytes: int) -> int:
        """How many rows of a file a thread may gather."""
        row_bytes = _VALUE_BYTES * (len(self._table.columns) + 1)
        rows = int(GATHERED_SHARE * memory_bytes / (threads * self._buckets * row_bytes))
        return max(_LEAST_GROUP, min(rows, _USUAL_GROUP))

    def _probe(self, connection: Connection) -> frozenset[str]:
        """The columns that Parquet keeps as another type, found by writing no row."""
        file = literal(str(self._space.path / "probe.parquet"))
        items = ", ".join(self._items())
        connection.run(f"COPY (SELECT {items} FROM {self._table.relation} LIMIT 0) TO {file}")
        rows = connection.rows(f"SELECT column_name, column_type FROM (DESCRIBE FROM {file})")
        stored = {row["column_name"]: row["column_type"] for row in rows}
        return kept_types.to_cast(self._table.columns, stored, self._table.key)

    @property
    def _sql(self) -> str:
        """Reads the table once and writes each row to the file of its bucket."""
        items = [
            *self._items(),
            f"CAST(hash({_row_number(self._table)}, {self._seed}) % {self._buckets} AS INTEGER) "
            f"AS {identifier(self._bucket)}",
        ]
        return (
            f"COPY (SELECT {', '.join(items)} FROM {self._table.relation}) "
            f"TO {literal(str(self._folder))} (FORMAT parquet, COMPRESSION snappy, "
            f"PARTITION_BY ({identifier(self._bucket)}), FILENAME_PATTERN 'rows_{{i}}')"
        )

    def _items(self) -> list[str]:
        return [kept_types.written(column, self._table.key) for column in self._table.columns]

    def _control(
        self,
        width: int,
        progress: Callable[[float], None],
        cancelled: Callable[[], bool],
        allowed: Callable[[], bool],
    ) -> Callable[[float], int]:
        """How many threads work: all, or none while the work is not allowed."""
        expected = max(1.0, expected_bytes(self._table)[0])

        def threads(scanned: float) -> int:
            if cancelled():
                raise QueryCancelled(f"table {self._table.key}: the copy was cancelled")
            written = min(1.0, _bytes_below(self._folder) / expected)
            progress(min(0.99, SCAN_SHARE * scanned + (1 - SCAN_SHARE) * written))
            return width if allowed() else 0

        return threads

    def finish(self) -> ShuffledCopy:
        """Let the copy appear, if the table is still as it was."""
        table = self._table
        copy = ShuffledCopy(
            table.key,
            self._place / file_name(table, f".{uuid.uuid4().hex[:8]}"),
            data_fingerprint(table),
            self._seed,
            self._buckets,
            table.columns,
            self._cast,
            self._named_parts(),
            time.time(),
        )
        _check_unchanged(table)
        write_manifest(copy, self._folder)
        self._folder.rename(copy.folder)
        return copy

    def _named_parts(self) -> tuple[Part, ...]:
        """Give the files their names; the parts they are, in the order of their hash."""
        self._folder.mkdir(exist_ok=True)  # a table without rows has no file
        self._folder.chmod(0o700)  # it holds data
        parts = []
        total = 0
        for number in range(self._buckets):
            folder = self._folder / f"{self._bucket}={number}"
            written = sorted(folder.glob("*.parquet"))
            if not written:
                continue
            if len(written) > 1:
                raise SampleError(
                    f"{folder}: DuckDB wrote {len(written)} files in the place of one; give more "
                    "memory or ask for fewer files"
                )
            file = self._folder / f"part-{number:04}.parquet"
            written[0].rename(file)
            file.chmod(0o600)
            folder.rmdir()
            rows = pq.read_metadata(file).num_rows
            parts.append(Part(number, rows, float(file.stat().st_size), file.name))
            total += rows
        if isinstance(self._table, ParquetTable) and total != self._table.rows:
            raise SampleError(
                f"table {self._table.key}: {total:,} rows were copied, but its files say "
                f"{self._table.rows:,.0f}; they have changed meanwhile, so try again"
            )
        return tuple(parts)


def _row_number(table: Table) -> str:
    """What tells the rows of a table apart, the same each time that it is read."""
    names = {column.name.lower() for column in table.columns}
    if isinstance(table, ParquetTable) and not names & {ROW_NUMBER, "file_index"}:
        return f"file_index, {ROW_NUMBER}"
    if isinstance(table, DatabaseTable) and table.rows is not None and "rowid" not in names:
        return "rowid"  # views have none
    return "row_number() OVER ()"


def _check_unchanged(table: Table) -> None:
    try:
        same = all(local_file(Path(f.uri)).fingerprint == f.fingerprint for f in table.files)
    except CatalogError:
        same = False
    if not same:
        raise SampleError(
            f"table {table.key}: its files have changed while they were copied; try again"
        )


def _bytes_below(folder: Path) -> int:
    total = 0
    for file in folder.glob("*/*.parquet"):
        try:
            total += file.stat().st_size
        except OSError:
            continue
    return total
