"""A history as Parquet files, one a table, a chunk of rows at a time."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Float, Integer, Table, select
from sqlalchemy.exc import DatabaseError

from . import schema
from .errors import HistoryError
from .opening import reason_of

CHUNK = 10_000


def export(connection: Connection, folder: Path) -> dict[str, int]:
    """Write all tables as they are at one moment; how many rows each has."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HistoryError(
            f"{folder}: no folder can be made there ({error.strerror}); name another"
        ) from error
    tables = schema.metadata.sorted_tables
    try:
        with connection.begin():
            return {table.name: _write(connection, table, folder) for table in tables}
    except OSError as error:
        reason = error.strerror or str(error)
        raise HistoryError(
            f"{folder}: cannot be written to ({reason}); make room there, or name another folder"
        ) from error
    except DatabaseError as error:
        raise HistoryError(reason_of(error, "the history")) from error


def _write(connection: Connection, table: Table, folder: Path) -> int:
    """One file; it appears whole or not at all."""
    import pyarrow as pa
    from pyarrow import parquet

    columns = pa.schema([(column.name, _type(column.type)) for column in table.columns])
    file, unfinished = folder / f"{table.name}.parquet", folder / f".{table.name}.parquet.part"
    rows = 0
    try:
        with parquet.ParquetWriter(unfinished, columns, compression="zstd") as out:
            # In the order they were written, which keeps equal values together.
            chosen = select(table).execution_options(yield_per=CHUNK)
            for part in connection.execute(chosen).partitions():
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


def _type(kind: Any) -> Any:
    import pyarrow as pa

    if isinstance(kind, Float):
        return pa.float64()
    return pa.int64() if isinstance(kind, Integer) else pa.string()
