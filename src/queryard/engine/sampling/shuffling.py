"""Making a shuffled copy of a table: one process at a time, in a place that can be written to."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from queryard.core.readable import size
from queryard.engine.instances.budget import machine_bytes
from queryard.results.errors import OutOfMemory, QueryCancelled, QueryFailed
from queryard.sql.catalog.formats import COMPRESSIONS
from queryard.sql.catalog.model import Table
from queryard.sql.statistics.store import file_name

from .copies import ShuffledCopy, fcntl, find_copy, remove_copy, sweep
from .model import SampleError
from .space import check_room, writable_place
from .writing import Writing

MOST_FILES, FEWEST_FILES = 100, 20
FILE_ROWS, SMALL_FILE_ROWS = 10_000, 1_000
LEAST_MEMORY_BYTES = 128 << 20
TURN_S = 0.2
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
        writing = Writing(table, place, files or default_files(_rows(table)), seed)
        try:
            width = threads or os.cpu_count() or 1
            try:
                writing.write(width, memory, spill_bytes, progress, cancelled, allowed)
            except OutOfMemory:
                if width == 1:
                    raise
                # Each thread has a row group of the table in memory: one needs least.
                writing.write(1, memory, spill_bytes, progress, cancelled, allowed)
            copy = writing.finish()
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
            writing.close()
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
