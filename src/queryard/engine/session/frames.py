"""Frames of the user's, copied into the session's instance.

DuckDB can scan Arrow data in place, but through its C API such a view ignores projections and
filters, can be read only once and may crash. So it is read exactly once, whole, into a table.
"""

from __future__ import annotations

import ctypes as c
import itertools
import json
from typing import Any

import pyarrow as pa

from queryard.sql.catalog.quoting import identifier

from ..capi import ArrowArray, ArrowArrayStream, ArrowSchema, Handle, error_of, library
from ..errors import failure
from ..instances.instance import Connection
from ..types import type_name

_numbers = itertools.count(1)


def copy_in(connection: Connection, place: str, frame: Any) -> None:
    """Make the table `place` (a quoted name) from a pyarrow.Table."""
    stream = ArrowArrayStream()
    # The reader must outlive the scan: DuckDB keeps no reference to it.
    reader = frame.to_reader()
    reader._export_to_c(c.addressof(stream))
    view = f"queryard_frame_{next(_numbers)}"
    if library().arrow_scan(connection.handle, view.encode(), c.byref(stream)):
        pa.RecordBatchReader._import_from_c(c.addressof(stream))  # takes it over, and frees it
        reason = _reason(connection, frame.schema)
        raise failure(f"DuckDB cannot read the frame for table {place}{reason}")
    try:
        connection.run(f"CREATE OR REPLACE TABLE {place} AS SELECT * FROM {identifier(view)}")
    finally:
        connection.run(f"DROP VIEW IF EXISTS {identifier(view)}")


def _reason(connection: Connection, schema: pa.Schema) -> str:
    """The first column of a type that DuckDB does not know, with its type and what DuckDB says."""
    duck = library()
    for field in schema:
        raw, converted = ArrowSchema(), Handle()
        pa.schema([field])._export_to_c(c.addressof(raw))
        try:
            error = error_of(
                duck.schema_from_arrow(connection.handle, c.byref(raw), c.byref(converted))
            )
        finally:
            duck.destroy_arrow_converted_schema(c.byref(converted))
            pa.Schema._import_from_c(c.addressof(raw))  # takes it over, and frees it
        if error is not None:
            return (
                f": column {field.name!r} is of Arrow's type {field.type}; convert it before "
                f"({_plain(error)})"
            )
    return ""


def put_in(connection: Connection, name: str, rows: Any) -> None:
    """Make a temporary table from a record batch of a few rows, whatever transaction is open.

    Within a transaction that writes a database only temporary tables can be written besides; a
    view, as `copy_in` has it, cannot.
    """
    duck = library()
    raw, raw_schema = ArrowArray(), ArrowSchema()
    rows._export_to_c(c.addressof(raw), c.addressof(raw_schema))
    converted, chunk = Handle(), Handle()
    handle = connection.handle
    try:
        error = error_of(
            duck.schema_from_arrow(handle, c.byref(raw_schema), c.byref(converted))
        ) or error_of(duck.data_chunk_from_arrow(handle, c.byref(raw), converted, c.byref(chunk)))
        if error is not None:
            raise failure(_plain(error))
        vectors = (duck.data_chunk_get_vector(chunk, i) for i in range(rows.num_columns))
        types = [type_name(duck.vector_get_column_type(vector)) for vector in vectors]
        columns = ", ".join(f"c{place} {kind}" for place, kind in enumerate(types))
        connection.run(f"CREATE OR REPLACE TEMP TABLE {identifier(name)}({columns})")
        _append(connection, name, chunk)
    finally:
        duck.destroy_data_chunk(c.byref(chunk))
        duck.destroy_arrow_converted_schema(c.byref(converted))
        pa.Schema._import_from_c(c.addressof(raw_schema))  # takes it over, and frees it


def _plain(error: str) -> str:
    """What DuckDB says of data that it cannot convert, which is JSON.

    >>> _plain('{"exception_type": "Invalid Input", "exception_message": "no key"}')
    'Invalid Input Error: no key'
    """
    try:
        said = json.loads(error)
        return f"{said['exception_type']} Error: {said['exception_message']}"
    except (ValueError, KeyError, TypeError):
        return error


def _append(connection: Connection, name: str, chunk: Handle) -> None:
    duck = library()
    appender = Handle()
    try:
        failed = (
            duck.appender_create_ext(
                connection.handle, b"temp", b"main", name.encode(), c.byref(appender)
            )
            or duck.append_data_chunk(appender, chunk)
            or duck.appender_close(appender)
        )
        if failed:
            said = duck.appender_error(appender) or b"DuckDB cannot take the rows"
            raise failure(said.decode("utf-8", "replace"))
    finally:
        duck.appender_destroy(c.byref(appender))
