"""DuckDB's results as Arrow record batches, through Arrow's C data interface."""

from __future__ import annotations

import ctypes as c
from typing import Any

import pyarrow as pa

from .capi import ArrowArray, ArrowSchema, Handle, Result, error_of, library
from .errors import failure
from .types import type_name

# DuckDB looks coordinate systems up in its catalog: too late for a statement that has ended.
_NO_TRANSACTION = "ActiveTransaction called without active transaction"
_NO_CRS = (
    "Not implemented Error: a GEOMETRY with a coordinate system cannot be handed over here; cast "
    "it to GEOMETRY"
)


class ArrowReader:
    """Turns the chunks of one result into record batches.

    Types that Arrow lacks (HUGEINT, TIME WITH TIME ZONE …) become what DuckDB's own Arrow export
    makes of them, so that answers look the same as DuckDB's.
    """

    def __init__(self, result: Result) -> None:
        self._result = result
        duck = library()
        self._options = Handle(duck.result_get_arrow_options(c.byref(result)))
        try:
            self.schema = self._read_schema()
        except BaseException:
            self.close()
            raise
        self.types = tuple(
            type_name(duck.column_logical_type(c.byref(result), i)) for i in range(len(self.schema))
        )

    def _read_schema(self) -> Any:
        duck = library()
        result = c.byref(self._result)
        columns = int(duck.column_count(result))
        types = (Handle * columns)(*(duck.column_logical_type(result, i) for i in range(columns)))
        names = (c.c_char_p * columns)(*(duck.column_name(result, i) for i in range(columns)))
        raw = ArrowSchema()
        try:
            error = error_of(
                duck.to_arrow_schema(self._options, types, names, columns, c.byref(raw))
            )
            if error is not None:
                raise failure(_NO_CRS if _NO_TRANSACTION in error else error)
            return pa.Schema._import_from_c(c.addressof(raw))
        finally:
            for i in range(columns):
                duck.destroy_logical_type(c.byref(Handle(types[i])))

    def next(self) -> Any:
        """The next batch (2,048 rows at most), or None at the end.

        For a streaming result this may run parts of the query on the calling thread.
        """
        duck = library()
        chunk = Handle(duck.fetch_chunk(self._result))
        if chunk.value is None:
            error = duck.result_error(c.byref(self._result))
            if error:
                raise failure(error.decode("utf-8", "replace"))
            return None
        raw = ArrowArray()
        try:
            error = error_of(duck.data_chunk_to_arrow(self._options, chunk, c.byref(raw)))
        finally:
            duck.destroy_data_chunk(c.byref(chunk))
        if error is not None:
            raise failure(error)
        return pa.RecordBatch._import_from_c(c.addressof(raw), self.schema)

    def close(self) -> None:
        if self._options.value is not None:
            library().destroy_arrow_options(c.byref(self._options))


def read_all(result: Result) -> tuple[Any, tuple[str, ...]]:
    """A whole result as a table, and the SQL types of its columns."""
    reader = ArrowReader(result)
    try:
        batches = []
        while (batch := reader.next()) is not None:
            batches.append(batch)
        return pa.Table.from_batches(batches, reader.schema), reader.types
    finally:
        reader.close()
