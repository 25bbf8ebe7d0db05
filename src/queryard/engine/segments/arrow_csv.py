"""Segments of CSV that Arrow parses, for half of what DuckDB takes, where both read the same.

What Arrow is asked for is what it reads as DuckDB does: a usual dialect, a segment whose quotes and
line breaks are all proven, and columns of a few types. Of these types Arrow takes fewer spellings
than DuckDB, and gives the same value for those it takes; the exceptions are looked for afterwards
(numbers that are not finite, and hexadecimal ones, whose highest bit is a sign for Arrow alone).
Whatever Arrow refuses is left to DuckDB, and so are its errors.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from queryard.sql.catalog.csv_files import CsvTable
from queryard.sql.catalog.model import Column, Table
from queryard.sql.catalog.segments import Segment, whole_text

_TYPES: Mapping[str, pa.DataType] = {
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "BOOLEAN": pa.bool_(),
    "VARCHAR": pa.string(),
}
# What else may be said of a file changes what its text means.
_USUAL = frozenset(
    {
        "delim",
        "quote",
        "escape",
        "skip",
        "header",
        "dateformat",
        "timestampformat",
        "compression",
    }
)
_ISO_DATE = "%Y-%m-%d"
# DuckDB refuses lines above 2 MB: where so many bytes have no line break, it is asked.
_LINE_BYTES = 1 << 19
# So many values tell whether those of a column come again.
_SAMPLE = 8192


def parsed(table: Table, segment: Segment, columns: Sequence[Column]) -> pa.Table | None:
    """Some columns of a segment, in this order; None where DuckDB must read it."""
    reading = _reading(table, segment, columns)
    if reading is None:
        return None
    import pyarrow.csv as csv  # not every session parses text

    text = whole_text(segment)
    if b"\0" in text or _has_long_line(text):
        return None
    names, types, parse_options = reading
    wanted = [column.name for column in columns]
    try:
        found = csv.read_csv(
            pa.BufferReader(text),
            read_options=csv.ReadOptions(
                use_threads=False,
                block_size=len(text) + 1,
                column_names=names,
                skip_rows_after_names=1 if _has_header(table, segment) else 0,
            ),
            parse_options=parse_options,
            convert_options=csv.ConvertOptions(
                # To count rows, any column will do.
                include_columns=wanted or names[:1],
                column_types=types if wanted else {names[0]: pa.binary()},
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )
    except (pa.ArrowException, MemoryError):
        return None
    if not wanted:
        return pa.table({"is_row": pa.repeat(True, found.num_rows)})
    return found if all(_is_same(each, text) for each in found.columns) else None


def is_usual(table: CsvTable) -> bool:
    """Whether Arrow is expected to parse the segments of a table, whatever columns are wanted."""
    columns, dialect = table.columns, table.dialect_of(table.files[0].uri)
    return _is_understood(dialect) and all(column.type in _TYPES for column in columns)


def write(rows: pa.Table, path: str) -> None:
    """Write columns down as Parquet: values that come again by number, and as they are."""
    import pyarrow.parquet as pq

    repeated = [name for name in rows.column_names if _come_again(rows.column(name))]
    ordered = [
        field.name for field in rows.schema if not pa.types.is_string(field.type)
    ]  # to find the least string takes longer than to write all down
    pq.write_table(
        rows,
        path,
        compression="none",
        use_dictionary=repeated,
        write_statistics=ordered,
        store_schema=False,
    )


def _reading(
    table: Table, segment: Segment, columns: Collection[Column]
) -> tuple[list[str], Mapping[str, pa.DataType], object] | None:
    """The columns of the file, the types of those that are wanted, and how the file is written."""
    if not isinstance(table, CsvTable) or not segment.is_proven:
        return None
    dialect = table.dialect_of(segment.file.uri)
    if not _is_understood(dialect):
        return None
    layout = table.layout(segment.file.uri)
    names = [column.name for column in layout]
    # A line of one column may be empty; other columns are not in the file.
    if len(names) < 2 or not {column.name for column in columns} <= set(names):
        return None
    if any(column.type not in _TYPES for column in columns):
        return None
    import pyarrow.csv as csv

    written = csv.ParseOptions(
        delimiter=dialect["delim"],
        quote_char=dialect["quote"],
        double_quote=True,
        newlines_in_values=True,
    )
    return names, {column.name: _TYPES[column.type] for column in columns}, written


def _is_understood(dialect: Mapping[str, object]) -> bool:
    """Whether Arrow reads files that are written in this way as DuckDB does."""
    delimiter, quote = str(dialect.get("delim") or ""), str(dialect.get("quote") or "")
    return (
        _USUAL.issuperset(dialect)
        and delimiter.isascii()
        and len(delimiter) == 1
        and quote.isascii()
        and len(quote) == 1
        and dialect.get("escape") == quote
        and not dialect.get("skip")
        and dialect.get("dateformat", _ISO_DATE) == _ISO_DATE
    )


def _has_header(table: Table, segment: Segment) -> bool:
    assert isinstance(table, CsvTable)
    return segment.start == 0 and table.dialect_of(segment.file.uri).get("header") is True


def _has_long_line(text: bytes) -> bool:
    return any(
        text.find(b"\n", start, start + _LINE_BYTES) < 0
        for start in range(0, len(text) - _LINE_BYTES, _LINE_BYTES)
    )


def _is_same(values: pa.ChunkedArray, text: bytes) -> bool:
    """Whether DuckDB surely has these values, too."""
    if pa.types.is_floating(values.type):
        return pc.all(pc.is_finite(values)).as_py() is not False
    if pa.types.is_integer(values.type):
        least = pc.min(values).as_py()
        return bool(least is None or least >= 0 or (b"0x" not in text and b"0X" not in text))
    return True


def _come_again(values: pa.ChunkedArray) -> bool:
    some = values.slice(0, _SAMPLE)
    return bool(pc.count_distinct(some).as_py() <= len(some) / 2)
