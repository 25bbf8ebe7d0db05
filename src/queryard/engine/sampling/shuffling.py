"""Making a shuffled copy of a table: about 100 Parquet files by a hash of the row number.

DuckDB divides all rows in one pass over the table. Each thread gathers rows per file and writes
them as a row group once there are so many that those of all files take half the memory it is given:
to spill them would make a copy up to four times dearer. Within a file rows stay about in the
table's order.

The copy is written to a temporary folder and appears by a rename. What a killed process leaves
there is removed by the next copy that is made.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq

from queryard.core.readable import size
from queryard.engine.budget import machine_bytes
from queryard.engine.instance import Connection, Instance
from queryard.engine.temp import TempSpace
from queryard.results.errors import OutOfMemory, QueryCancelled, QueryFailed
from queryard.sql.catalog.database import DatabaseTable
from queryard.sql.catalog.formats import COMPRESSIONS
from queryard.sql.catalog.locations import local_file
from queryard.sql.catalog.model import CatalogError, Table
from queryard.sql.catalog.open_files import Claims
from queryard.sql.catalog.parquet import ROW_NUMBER, ParquetTable
from queryard.sql.catalog.quoting import identifier, literal
from queryard.sql.statistics.store import data_fingerprint, file_name

from . import kept_types
from .copies import ShuffledCopy, fcntl, find_copy, remove_copy, sweep, write_manifest
from .lent_threads import run
from .model import Part, SampleError, part_column
from .space import check_room, expected_bytes, writable_place

MOST_FILES, FEWEST_FILES = 100, 20
FILE_ROWS, SMALL_FILE_ROWS = 10_000, 1_000
LEAST_MEMORY_BYTES = 128 << 20
SCAN_SHARE = 0.5
"""Of the time that a copy takes, about this goes into reading and dividing the rows."""

TURN_S = 0.2
GATHERED_SHARE = 0.5
"""Of the memory, this goes to rows that are gathered."""

# A gathered value takes about this much, DuckDB's own bookkeeping included (TPC-H's lineitem). A
# row group has at least as many rows as DuckDB handles at a time, at most as many as usually.
_VALUE_BYTES = 34
_LEAST_GROUP, _USUAL_GROUP = 2_048, 122_880
_LINE_BYTES = 100.0


class BeingMade(SampleError):
    """Another process, or another thread of this one, makes a copy of the same table."""


def default_files(rows: float) -> int:
    """How many files a copy of so many rows has.

    100, if each then has 10,000 rows; else fewer of 10,000 rows, but 20; a table for which those
    would have fewer than 1,000 rows has fewer again.

    >>> [default_files(rows) for rows in (30e6, 500e3, 150e3, 8e3, 10)]
    [100, 50, 20, 8, 1]
    """
    files = min(MOST_FILES, int(rows // FILE_ROWS))
    return (
        files if files >= FEWEST_FILES else max(1, min(FEWEST_FILES, int(rows // SMALL_FILE_ROWS)))
    )


def shuffle(
    table: Table,
    places: Sequence[Path],
    *,
    files: int | None = None,
    seed: int = 0,
    memory_bytes: int | None = None,
    threads: int | None = None,
    progress: Callable[[float], None] = lambda share: None,
    cancelled: Callable[[], bool] = lambda: False,
    allowed: Callable[[], bool] = lambda: True,
) -> ShuffledCopy:
    """A shuffled copy of a table in the first of the places that can be written to.

    One that is there and still holds is taken, unless its seed or the number of files is another.
    Copies that it replaces are removed. The same seed puts the same rows into the same files.

    `progress` hears the share that is done. `cancelled` ends the work with `QueryCancelled`, and
    nothing is left of it. While `allowed` says no, the work pauses. All are called from the calling
    thread.
    """
    _check(table, files)
    found = find_copy(table, places)
    if found is not None and found.seed == seed and files in (None, found.buckets):
        return found
    place = writable_place(table, places)
    with _only_one(table, place):
        memory = max(LEAST_MEMORY_BYTES, memory_bytes or _default_memory())
        spill_bytes = check_room(table, place, memory)
        making = _Making(table, place, files or default_files(_rows(table)), seed)
        try:
            width = threads or os.cpu_count() or 1
            try:
                making.write(width, memory, spill_bytes, progress, cancelled, allowed)
            except OutOfMemory:
                if width == 1:
                    raise
                # Each thread has a row group of the table in memory: one needs least.
                making.write(1, memory, spill_bytes, progress, cancelled, allowed)
            copy = making.finish()
        except QueryCancelled:
            raise
        except OutOfMemory as error:
            raise SampleError(
                f"table {table.key}: the shuffled copy needs more memory than {size(memory)}; give "
                f"more (--memory), or ask for fewer files (--files): {str(error).splitlines()[0]}"
            ) from error
        except QueryFailed as error:
            raise SampleError(
                f"table {table.key}: the shuffled copy cannot be written to {place}: {error}"
            ) from error
        except OSError as error:
            raise SampleError(
                f"table {table.key}: the shuffled copy cannot be written to {place} "
                f"({error.strerror or error}); free some space there, or make it writable"
            ) from error
        finally:
            making.close()
        sweep(place)
        _remove_former(table, places, copy)
    progress(1.0)
    return copy


def shuffle_in_turn(
    table: Table,
    places: Sequence[Path],
    *,
    files: int | None = None,
    seed: int = 0,
    memory_bytes: int | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> ShuffledCopy:
    """The same; while a copy of the table is being made already, wait for that one."""
    while True:
        try:
            return shuffle(
                table, places, files=files, seed=seed, memory_bytes=memory_bytes, progress=progress
            )
        except BeingMade:
            time.sleep(TURN_S)


class _Making:
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


def _rows(table: Table) -> float:
    """How many rows there are, about."""
    if table.rows is not None:
        return table.rows
    text = 4.0 if table.files[0].uri.endswith(COMPRESSIONS) else 1.0
    return table.bytes * text / _LINE_BYTES


def _default_memory() -> int:
    """A quarter of the machine's."""
    return (machine_bytes() or (4 << 30)) // 4


def _check(table: Table, files: int | None) -> None:
    if files is not None and not 1 <= files <= 10_000:
        raise SampleError(f"a copy of {files} files: give a number from 1 to 10,000")
    if not table.files:
        raise SampleError(
            f"table {table.key}: is a frame in memory, of which no copy is kept; write it to a "
            "Parquet file, and make a copy of that"
        )
    if table.elsewhere:
        raise SampleError(
            f"table {table.key}: lies at {table.elsewhere}; only tables on this machine are "
            "copied, so bring its files here first"
        )


def _check_unchanged(table: Table) -> None:
    try:
        same = all(local_file(Path(f.uri)).fingerprint == f.fingerprint for f in table.files)
    except CatalogError:
        same = False
    if not same:
        raise SampleError(
            f"table {table.key}: its files have changed while they were copied; try again"
        )


def _remove_former(table: Table, places: Sequence[Path], copy: ShuffledCopy) -> None:
    try:
        remove_copy(table, places, keep=copy)
    except SampleError:
        return  # one that is read now, or is another user's, goes with the next copy


@contextmanager
def _only_one(table: Table, place: Path) -> Iterator[None]:
    """One process at a time makes a copy of a table in a place."""
    handle = os.open(place / file_name(table, ".lock"), os.O_WRONLY | os.O_CREAT, 0o600)
    with os.fdopen(handle, "wb") as lock:
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise BeingMade(
                    f"table {table.key}: a shuffled copy is being made in {place} already; wait "
                    "until it is there"
                ) from error
        yield


def _bytes_below(folder: Path) -> int:
    total = 0
    for file in folder.glob("*/*.parquet"):
        try:
            total += file.stat().st_size
        except OSError:
            continue
    return total
