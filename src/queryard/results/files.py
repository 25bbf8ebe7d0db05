"""Rows in the formats of files, as they come: never more than a few batches in memory."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import IO, Any, Literal, get_args

import pyarrow as pa

from queryard.core.errors import QueryardError

from .answer import Answer
from .row_text import csv_header, csv_rows, json_lines
from .values import written_values

Format = Literal["table", "csv", "tsv", "json", "jsonl", "parquet", "arrow"]
FORMATS: tuple[Format, ...] = get_args(Format)
DELIMITERS = {"csv": ",", "tsv": "\t"}
BINARY = ("parquet", "arrow")
# Readers of these find columns by their names.
BY_NAME = ("json", "jsonl", "parquet", "arrow")
# Parquet is read best in row groups of about this many rows.
GROUP_ROWS = 122_880
GROUP_BYTES = 128 << 20
_INTERVAL = pa.month_day_nano_interval()


def write_rows(rows: Answer, batches: Iterable[Any], form: Format, file: IO[bytes]) -> int:
    """Write batches of an answer; the number of rows."""
    check_columns(rows.schema, form)
    counted = _Counted(batches)
    match form:
        case "csv" | "tsv":
            file.write(csv_header(rows.schema.names, DELIMITERS[form]))
            for batch in counted:
                file.write(csv_rows(batch, rows.types, DELIMITERS[form]))
        case "json":
            before = b"[\n"
            for batch in counted:
                if lines := json_lines(batch, rows.types):
                    # No text has an end of line in it: JSON writes those as two signs.
                    file.write(before + lines[:-1].replace(b"}\n", b"},\n"))
                    before = b",\n"
            file.write(b"[]\n" if before == b"[\n" else b"\n]\n")
        case "jsonl":
            for batch in counted:
                file.write(json_lines(batch, rows.types))
        case "parquet":
            _write_parquet(rows.schema, counted, file)
        case "arrow":
            _write_arrow(rows.schema, counted, file)
        case "table":
            raise AssertionError("tables are not written in batches")
    return counted.rows


def check_columns(schema: Any, form: Format) -> None:
    """Complain about columns that a format cannot hold, before anything is computed for it."""
    if form in BY_NAME:
        for name, count in Counter(schema.names).items():
            if count > 1:
                raise QueryardError(
                    f"{count} columns are called {name!r}, and readers of {form} would find only "
                    f"one; give each a name of its own (SELECT … AS {name}_1), or write csv"
                )
    if form == "parquet":
        for field in schema:
            if field.type != _INTERVAL and _holds_interval(field.type):
                raise QueryardError(
                    f"column {field.name!r} holds INTERVALs inside of {field.type}, which cannot "
                    "be written to Parquet; cast it to VARCHAR, or write arrow"
                )


def intervals_as_text(schema: Any, form: Format) -> list[str]:
    """The columns that are written as text because the format has no such values."""
    return [f.name for f in schema if form == "parquet" and f.type == _INTERVAL]


def _holds_interval(kind: Any) -> bool:
    inner = [kind.field(i).type for i in range(kind.num_fields)]
    return kind == _INTERVAL or any(map(_holds_interval, inner))


class _Counted:
    def __init__(self, batches: Iterable[Any]) -> None:
        self._batches = batches
        self.rows = 0

    def __iter__(self) -> Iterator[Any]:
        for batch in self._batches:
            self.rows += batch.num_rows
            yield batch


def _write_parquet(schema: Any, batches: Iterable[Any], file: IO[bytes]) -> None:
    import pyarrow.parquet as pq

    kept = pa.schema([field.with_type(_parquet_type(field.type)) for field in schema])
    with pq.ParquetWriter(file, kept, compression="zstd") as writer:
        for group in _groups(batches):
            table = pa.Table.from_batches(group, schema)
            if kept != schema:
                table = _with_intervals_as_text(table, kept)
            writer.write_table(table, row_group_size=GROUP_ROWS)


def _parquet_type(kind: Any) -> Any:
    """Arrow writes no intervals to Parquet; they become DuckDB's text, which can be cast back."""
    return pa.string() if kind == _INTERVAL else kind


def _with_intervals_as_text(table: Any, kept: Any) -> Any:
    columns = []
    for field, column in zip(kept, table.columns, strict=True):
        if column.type != field.type:
            column = pa.array(written_values(column, "INTERVAL"), pa.string())
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=kept)


def _groups(batches: Iterable[Any]) -> Iterator[list[Any]]:
    """Small batches together, so that row groups are not tiny."""
    group: list[Any] = []
    rows = size = 0
    for batch in batches:
        group.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= GROUP_ROWS or size >= GROUP_BYTES:
            yield group
            group, rows, size = [], 0, 0
    if group:
        yield group


def _write_arrow(schema: Any, batches: Iterable[Any], file: IO[bytes]) -> None:
    """A file if one can go back in it, else a stream; readers tell them apart."""
    make = pa.ipc.new_file if file.seekable() and file is not _stdout() else pa.ipc.new_stream
    with make(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _stdout() -> IO[bytes] | None:
    return getattr(sys.stdout, "buffer", None)
