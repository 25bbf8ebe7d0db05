"""Frames of the user's, copied into the session's instance.

DuckDB can scan Arrow data in place, but through its C API such a view ignores projections and
filters, can be read only once and may crash. So it is read exactly once, whole, into a table.
"""

from __future__ import annotations

import ctypes as c
import itertools
from typing import Any

import pyarrow as pa

from queryard.sql.catalog.quoting import identifier

from .capi import ArrowArrayStream, library
from .errors import failure
from .instance import Connection

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
        raise failure(f"DuckDB cannot read the frame for table {place}")
    try:
        connection.run(f"CREATE OR REPLACE TABLE {place} AS SELECT * FROM {identifier(view)}")
    finally:
        connection.run(f"DROP VIEW IF EXISTS {identifier(view)}")
