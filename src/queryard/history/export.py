"""A history as Parquet files, one per table, a chunk of rows at a time."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from .errors import HistoryError
from .opening import reason_of
from .schema import COLUMNS

CHUNK = 10_000


def export(connection: sqlite3.Connection, folder: Path) -> dict[str, int]:
    """Write all tables as they are at one moment; how many rows each has."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HistoryError(
            f"{folder}: no folder can be made there ({error.strerror}); name another"
        ) from error
    try:
        with connection:
            connection.execute("BEGIN")
            return {table: _write(connection, table, folder) for table in sorted(COLUMNS)}
    except OSError as error:
        reason = error.strerror or str(error)
        raise HistoryError(
            f"{folder}: cannot be written to ({reason}); make room there, or name another folder"
        ) from error
    except sqlite3.Error as error:
        raise HistoryError(reason_of(error, "the history")) from error


def _write(connection: sqlite3.Connection, table: str, folder: Path) -> int:
    """One file; it appears whole or not at all."""
    import pyarrow as pa
    from pyarrow import parquet

    types = {"FLOAT": pa.float64(), "INTEGER": pa.int64(), "TEXT": pa.string()}
    declared = connection.execute(f"PRAGMA table_info({table})")
    columns = pa.schema([(column["name"], types[column["type"]]) for column in declared])
    file, unfinished = folder / f"{table}.parquet", folder / f".{table}.parquet.part"
    rows = 0
    try:
        with parquet.ParquetWriter(unfinished, columns, compression="zstd") as out:
            # In the order they were written, which keeps equal values together.
            found = connection.execute(f"SELECT {COLUMNS[table]} FROM {table}")
            while part := found.fetchmany(CHUNK):
                values = zip(*part, strict=True)
                arrays = [
                    pa.array(column, field.type)
                    for column, field in zip(values, columns, strict=True)
                ]
                out.write_batch(pa.record_batch(arrays, schema=columns))
                rows += len(part)
        os.replace(unfinished, file)
    finally:
        unfinished.unlink(missing_ok=True)
    return rows
