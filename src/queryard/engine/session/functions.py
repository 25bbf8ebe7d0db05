"""Python functions that SQL can call, on the session's instance.

DuckDB hands over whole vectors; they travel through Arrow, and the function sees either Python
values, row by row, or Arrow arrays.
"""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable, Sequence
from typing import Any, Literal

import pyarrow as pa

from queryard.core.errors import QueryardError, unknown_name

from ..capi import (
    ArrowArray,
    ArrowSchema,
    Handle,
    Result,
    ScalarCallback,
    error_of,
    library,
)
from ..errors import failure
from ..instances.instance import Connection

Style = Literal["rows", "arrow"]


class ScalarFunction:
    """A function registered with one instance; it must be kept for as long as the instance."""

    def __init__(
        self,
        connection: Connection,
        name: str,
        function: Callable[..., Any],
        parameters: Sequence[str],
        returns: str,
        style: Style,
        side_effects: bool,
    ) -> None:
        if not callable(function):
            raise QueryardError(f"function {name!r}: {function!r} cannot be called")
        if isinstance(parameters, str) or not isinstance(parameters, Sequence):
            raise QueryardError(
                f"function {name!r}: parameters must be a list of SQL types, got {parameters!r}"
            )
        if style not in ("rows", "arrow"):
            raise QueryardError(unknown_name("style of function", style, ("rows", "arrow")))
        self.name = name
        self._connection = connection
        self._function = function
        self._style = style
        self._side_effects = side_effects
        self._callback = ScalarCallback(self._call)
        self._input = _Types(connection, parameters)
        self._output = _Types(connection, [returns])
        self._register()

    def _register(self) -> None:
        duck = library()
        made = Handle(duck.create_scalar_function())
        try:
            duck.scalar_function_set_name(made, self.name.encode())
            for kind in self._input.handles:
                duck.scalar_function_add_parameter(made, kind)
            duck.scalar_function_set_return_type(made, self._output.handles[0])
            duck.scalar_function_set_function(made, self._callback)
            duck.scalar_function_set_special_handling(made)
            if self._side_effects:
                duck.scalar_function_set_volatile(made)
            if duck.register_scalar_function(self._connection.handle, made):
                raise failure(f"DuckDB does not take the function {self.name!r}: is the name free?")
        finally:
            duck.destroy_scalar_function(c.byref(made))

    def _call(self, info: int, chunk: int, out: int) -> None:
        """From a slot's thread, for one vector of rows."""
        duck = library()
        try:
            rows = int(duck.data_chunk_get_size(chunk))
            answer = self._answer(self._input.to_arrow(chunk), rows)
            self._output.fill(out, answer)
        except BaseException as error:
            text = f"function {self.name}: {type(error).__name__}: {error}"
            duck.scalar_function_set_error(info, text.encode())

    def _answer(self, columns: list[Any], rows: int) -> Any:
        kind = self._output.schema.field(0).type
        if self._style == "arrow":
            made = self._function(*columns)
            array = made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made
            if not isinstance(array, pa.Array) or len(array) != rows:
                raise TypeError(f"must return an Arrow array of {rows} values, got {made!r:.80}")
            return array.cast(kind)
        given = zip(*(column.to_pylist() for column in columns), strict=True)
        values = given if columns else [()] * rows
        # As everywhere in SQL, an unknown argument makes an unknown answer.
        return pa.array([None if None in row else self._function(*row) for row in values], kind)


class _Types:
    """SQL types by name, as DuckDB's handles and as an Arrow schema."""

    def __init__(self, connection: Connection, names: Sequence[str]) -> None:
        duck = library()
        self._connection = connection
        self.handles: list[Handle] = []
        columns = ", ".join(f"NULL::{name} AS c{i}" for i, name in enumerate(names)) or "1 AS c0"
        result = Result()
        try:
            if duck.query(connection.handle, f"SELECT {columns}".encode(), c.byref(result)):
                text = duck.result_error(c.byref(result)) or b""
                raise failure(text.decode("utf-8", "replace"))
            count = len(names)
            self.handles = [
                Handle(duck.column_logical_type(c.byref(result), i)) for i in range(count)
            ]
            self._options = Handle(duck.result_get_arrow_options(c.byref(result)))
            labels = (c.c_char_p * count)(*(f"c{i}".encode() for i in range(count)))
            types = (Handle * count)(*self.handles)
            raw = ArrowSchema()
            error = error_of(
                duck.to_arrow_schema(self._options, types, labels, count, c.byref(raw))
            )
            if error is not None:
                raise failure(error)
            self.schema = pa.Schema._import_from_c(c.addressof(raw))
        finally:
            duck.destroy_result(c.byref(result))

    def to_arrow(self, chunk: int) -> list[Any]:
        if not self.handles:
            return []
        raw = ArrowArray()
        error = error_of(library().data_chunk_to_arrow(self._options, chunk, c.byref(raw)))
        if error is not None:
            raise failure(error)
        batch = pa.RecordBatch._import_from_c(c.addressof(raw), self.schema)
        return list(batch.columns)

    def fill(self, out: int, array: Any) -> None:
        """Put an Arrow array into an output vector."""
        duck = library()
        batch = pa.RecordBatch.from_arrays([array], schema=self.schema)
        raw, raw_schema = ArrowArray(), ArrowSchema()
        batch._export_to_c(c.addressof(raw), c.addressof(raw_schema))
        converted, chunk = Handle(), Handle()
        handle = self._connection.handle
        try:
            error = error_of(
                duck.schema_from_arrow(handle, c.byref(raw_schema), c.byref(converted))
            ) or error_of(
                duck.data_chunk_from_arrow(handle, c.byref(raw), converted, c.byref(chunk))
            )
            if error is not None:
                raise failure(error)
            duck.vector_reference_vector(out, duck.data_chunk_get_vector(chunk, 0))
        finally:
            duck.destroy_data_chunk(c.byref(chunk))
            duck.destroy_arrow_converted_schema(c.byref(converted))
            pa.Schema._import_from_c(c.addressof(raw_schema))  # takes it over, and frees it


def function_name(name: object) -> str:
    """A name as SQL takes it without quotes, or an error."""
    if not isinstance(name, str) or not name.isidentifier():
        raise QueryardError(f"{name!r} cannot be the name of a function; use letters, digits and _")
    return name
