"""Tables in memory: Arrow tables, pandas and Polars frames, and whatever speaks Arrow's protocol.

A frame becomes a pyarrow.Table once, without copying where the library allows it (Arrow and Polars
do; pandas does for numbers). Later changes of a pandas frame in place may or may not be seen:
register it anew.
"""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Any

import pyarrow as pa

from .metadata import MetadataReader
from .model import (
    CatalogError,
    Column,
    DataFile,
    SourceSplit,
    Table,
    checked_target,
    combined_fingerprint,
)
from .quoting import identifier

SMALLEST_SPLIT_ROWS = 2048
"""DuckDB works in vectors of so many rows; smaller slices would only cost."""

_registrations = itertools.count(1)


def is_frame(value: object) -> bool:
    """Whether something is a table in memory.

    >>> is_frame(pa.table({"a": [1]})), is_frame("a.csv")
    (True, False)
    """
    return (
        hasattr(value, "__arrow_c_stream__")
        or hasattr(value, "to_arrow")
        or _is_pandas(value)
        or _is_lazy(value)
    )


class FrameTable(Table):
    """A registered frame. `relation` is its name: it must be registered under it."""

    kind = "frame"

    def __init__(self, name: str, schema: str, frame: object, metadata: MetadataReader) -> None:
        super().__init__(name, schema)
        self.frame = as_arrow(frame, self.key)
        self._metadata = metadata
        self._fingerprint = combined_fingerprint(
            [f"frame {next(_registrations)}", str(self.frame.num_rows), str(self.frame.schema)]
        )

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        with self._opening:
            return self._metadata.frame_columns(self.frame.slice(0, 0), f"table {self.key}")

    @property
    def files(self) -> tuple[DataFile, ...]:
        return ()

    @property
    def bytes(self) -> float:
        return float(self.frame.nbytes)

    @property
    def rows(self) -> float | None:
        return float(self.frame.num_rows)

    @property
    def relation(self) -> str:
        name = identifier(self.name)
        return f"{identifier(self.schema)}.{name}" if self.schema else name

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def splits(self, target_bytes: float) -> tuple[SourceSplit, ...]:
        """Slices of equal numbers of rows."""
        pieces = max(1, round(self.bytes / checked_target(target_bytes)))
        rows = self.frame.num_rows
        step = max(SMALLEST_SPLIT_ROWS, -(-rows // pieces))
        starts = range(0, rows, step) if rows else [0]
        return tuple(
            self._slice(i, start, min(step, rows - start)) for i, start in enumerate(starts)
        )

    def row_group_splits(self) -> tuple[SourceSplit, ...]:
        """One a chunk of the frame."""
        slices = []
        start = 0
        for batch in self.frame.to_batches():
            if batch.num_rows:
                slices.append((start, batch.num_rows))
            start += batch.num_rows
        return tuple(self._slice(i, *rows) for i, rows in enumerate(slices or [(0, 0)]))

    def _slice(self, index: int, start: int, rows: int) -> SourceSplit:
        part = self.frame.slice(start, rows)
        name = f"qy_frame_{self._fingerprint[:12]}_{start}_{rows}"
        share = rows / self.frame.num_rows if rows else 0.0
        return SourceSplit(self.key, index, self.bytes * share, float(rows), name, part)


def as_arrow(frame: Any, name: str) -> pa.Table:
    """The frame as an Arrow table; errors name the table."""
    try:
        if isinstance(frame, pa.RecordBatchReader):
            raise CatalogError(
                f"table {name}: a reader of record batches can be read once only; "
                "give it as a table (reader.read_all())"
            )
        if isinstance(frame, pa.Table):
            table = frame
        elif isinstance(frame, pa.RecordBatch):
            table = pa.Table.from_batches([frame])
        elif _is_pandas(frame):
            table = pa.Table.from_pandas(frame, preserve_index=False)
        elif _is_lazy(frame):
            return as_arrow(frame.collect(), name)
        elif hasattr(frame, "to_arrow"):
            _check_objects(frame, name)
            table = frame.to_arrow()
        else:
            table = pa.table(frame)
    except CatalogError:
        raise
    except Exception as error:  # each library has errors of its own
        kind = f"{type(frame).__module__}.{type(frame).__name__}"
        reason = "; ".join(map(str, error.args)) or type(error).__name__
        raise CatalogError(
            f"table {name}: the {kind} cannot be made an Arrow table, give a frame with columns "
            f"that Arrow knows: {reason}"
        ) from error
    if not isinstance(table, pa.Table):
        raise CatalogError(
            f"table {name}: {type(frame).__name__} is one column; give a whole frame"
        )
    return _checked(table, name)


def _check_objects(frame: Any, name: str) -> None:
    """Polars exports Python objects as their addresses."""
    for column, kind in zip(
        getattr(frame, "columns", ()), getattr(frame, "dtypes", ()), strict=False
    ):
        if str(kind) == "Object":
            raise CatalogError(
                f"table {name}: the column {column!r} holds Python objects, which SQL does not "
                "know; convert it, or leave it out"
            )


def _checked(table: pa.Table, name: str) -> pa.Table:
    if not table.num_columns:
        raise CatalogError(f"table {name}: the frame has no columns")
    seen: set[str] = set()
    for column in table.column_names:
        if column.lower() in seen:
            raise CatalogError(
                f"table {name}: two columns are called {column!r} (SQL does not tell upper from "
                "lower case); rename one"
            )
        seen.add(column.lower())
    schema = pa.schema([field.with_type(_known_type(field.type)) for field in table.schema])
    return table if schema.equals(table.schema) else table.cast(schema)


def _known_type(type_: pa.DataType) -> pa.DataType:
    """The type under which DuckDB reads a column."""
    if pa.types.is_null(type_):
        return pa.int32()  # nothing but nulls: no type in Arrow, INTEGER in SQL
    return pa.float32() if pa.types.is_float16(type_) else type_


def _is_lazy(value: object) -> bool:
    """A Polars frame that is not computed yet."""
    return hasattr(value, "collect") and hasattr(value, "lazy")


def _is_pandas(value: object) -> bool:
    # Not imported: pandas is there if a frame is given, and need not be there otherwise.
    kind = type(value)
    return kind.__module__.partition(".")[0] == "pandas" and kind.__name__ == "DataFrame"
