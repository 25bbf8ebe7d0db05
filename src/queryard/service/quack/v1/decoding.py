"""Data chunks of a client as rows of Arrow, in the forms that DuckDB reads from Arrow.

Vectors come flat, as one constant, as places in a dictionary, or as a sequence.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import CannotSend, Malformed
from ..wire import Reader
from .chunks import CHUNK_ROWS
from .encoding import is_something
from .types import LISTS, STRUCTS, TEXTS, Id, LogicalType, read_type
from .values import ARROW, BY_TEXT, bitmap_of, read_fixed, read_texts, sized

_FLAT, _CONSTANT, _DICTIONARY, _SEQUENCE = 0, 2, 3, 4
_INTEGERS = frozenset(
    {
        *(Id.TINYINT, Id.SMALLINT, Id.INTEGER, Id.BIGINT),
        *(Id.UTINYINT, Id.USMALLINT, Id.UINTEGER, Id.UBIGINT),
    }
)
# What tells DuckDB that bytes of Arrow are geometries.
_IS_GEOMETRY = {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": "{}"}


def read_chunk(reader: Reader) -> tuple[list[LogicalType], Any]:
    """The types of a chunk, and its rows as a record batch with the columns c0, c1 …"""
    reader.expect(100)
    rows = reader.unsigned()
    if rows > CHUNK_ROWS:
        raise Malformed(f"a chunk has {rows} rows, and {CHUNK_ROWS} are the most")
    reader.expect(101)
    types = [read_type(reader) for _ in range(reader.count())]
    reader.expect(102)
    if reader.count() != len(types):
        raise Malformed("a chunk has other numbers of columns and of types")
    columns = []
    for kind in types:
        columns.append(read_vector(reader, kind, rows))
        reader.end()
    reader.end()
    fields = [
        _field(f"c{place}", kind, column)
        for place, (kind, column) in enumerate(zip(types, columns, strict=True))
    ]
    return types, pa.record_batch(columns, schema=pa.schema(fields))


def _field(name: str, kind: LogicalType, values: Any, nullable: bool = True) -> Any:
    metadata = _IS_GEOMETRY if kind.id is Id.GEOMETRY else None
    return pa.field(name, values.type, nullable=nullable, metadata=metadata)


def read_vector(reader: Reader, kind: LogicalType, rows: int) -> Any:
    """The fields of a vector, without the end of its object."""
    reader.deeper()
    reader.rows(rows)
    form = reader.unsigned() if reader.has(90) else _FLAT
    if form == _FLAT:
        found = _flat(reader, kind, rows)
    elif form == _CONSTANT:
        one = read_vector(reader, kind, 1)
        found = _taken(one, np.zeros(rows, np.int64))
    elif form == _DICTIONARY:
        reader.expect(91)
        places = np.frombuffer(sized(reader, 4 * rows), "<u4").astype(np.int64)
        reader.expect(92)
        count = reader.unsigned()
        reader.rows(count)
        if rows and int(places.max()) >= count:
            raise Malformed("a place in a dictionary lies beyond its end")
        found = _taken(read_vector(reader, kind, count), places)
    elif form == _SEQUENCE:
        found = _sequence(reader, kind, rows)
    else:
        raise Malformed(f"a vector of form {form}")
    reader.back()
    return found


def _taken(values: Any, places: Any) -> Any:
    """Rows by their places; `take` does not know types of extensions."""
    if isinstance(values, pa.ExtensionArray):
        taken = _taken(values.storage, places)
        return pa.ExtensionArray.from_storage(values.type, taken)
    return values.take(pa.array(places))


def _sequence(reader: Reader, kind: LogicalType, rows: int) -> Any:
    if kind.id not in _INTEGERS:
        raise Malformed(f"a sequence of {kind.id.name}")
    reader.expect(91)
    start = reader.signed()
    reader.expect(92)
    step = reader.signed()
    with np.errstate(over="ignore"):
        numbers = np.int64(start) + np.arange(rows, dtype=np.int64) * np.int64(step)
    arrow = ARROW[kind.id]
    return pa.array(numbers.astype(arrow.to_pandas_dtype()), arrow)


def _flat(reader: Reader, kind: LogicalType, rows: int) -> Any:
    if kind.id is Id.GEOMETRY and reader.has(99):
        form = reader.unsigned()
        if form != 1:
            raise CannotSend(f"a GEOMETRY of form {form} is not known here")
    reader.expect(100)
    valid = None
    if reader.flag():
        reader.expect(101)
        mask = np.frombuffer(sized(reader, (rows + 63) // 64 * 8), np.uint8)
        valid = np.unpackbits(mask, bitorder="little")[:rows].astype(bool)
        if valid.all():
            valid = None
    if kind.id is Id.VARIANT:
        raise CannotSend(f"VARIANT cannot be inserted; use JSON instead, or {BY_TEXT}")
    if kind.id is Id.UNION:
        return _union(reader, kind, rows, valid)
    if kind.id in STRUCTS:
        return _structure(reader, kind, rows, valid)
    if kind.id in LISTS:
        return _list(reader, kind, rows, valid)
    if kind.id is Id.ARRAY:
        return _array(reader, kind, rows, valid)
    if kind.id in TEXTS:
        return read_texts(reader, kind, rows, valid)
    return read_fixed(reader, kind, rows, valid)


# --- values with parts ---------------------------------------------------------------------------


def _children(reader: Reader, kind: LogicalType, rows: int) -> list[Any]:
    reader.expect(103)
    if reader.count() != len(kind.children):
        raise Malformed(f"a vector of {kind.id.name} has another number of parts than its type")
    found = []
    for _, child in kind.children:
        found.append(read_vector(reader, child, rows))
        reader.end()
    return found


def _structure(reader: Reader, kind: LogicalType, rows: int, valid: Any) -> Any:
    parts = _children(reader, kind, rows)
    fields = [
        _field(name, child, part) for (name, child), part in zip(kind.children, parts, strict=True)
    ]
    mask = None if valid is None else pa.array(~valid)
    return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)


def _union(reader: Reader, kind: LogicalType, rows: int, valid: Any) -> Any:
    tags, *parts = _children(reader, kind, rows)
    codes = np.asarray(tags.fill_null(0)).astype(np.int8)
    if rows and not 0 <= int(codes.min()) <= int(codes.max()) < len(parts):
        raise Malformed("the tag of a union names no member")
    _check_members(codes, parts, valid)
    if valid is not None:
        # A union that is NULL is one whose member is.
        codes = np.where(valid, codes, 0).astype(np.int8)
        parts[0] = _without(parts[0], ~valid)
    names = [name for name, _ in kind.children[1:]]
    return pa.UnionArray.from_sparse(pa.array(codes), parts, names)


def _check_members(codes: Any, parts: list[Any], valid: Any) -> None:
    """Refuse members that are NULL: DuckDB would read the whole union from Arrow as NULL."""
    is_set = np.zeros(len(codes), bool)
    for place, part in enumerate(parts):
        is_set |= (codes == place) & is_something(part)
    if not (is_set if valid is None else is_set | ~valid).all():
        raise CannotSend(f"a UNION whose member is NULL cannot be inserted; {BY_TEXT}")


def _without(values: Any, hide: Any) -> Any:
    """A column with some rows as NULL."""
    if isinstance(values, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(values.type, _without(values.storage, hide))
    places = pa.array(np.arange(len(values)), mask=hide)
    return values.take(places)


def _list(reader: Reader, kind: LogicalType, rows: int, valid: Any) -> Any:
    reader.expect(104)
    size = reader.unsigned()
    reader.rows(size)
    reader.expect(105)
    if reader.count() != rows:
        raise Malformed("a vector has another number of lists than of rows")
    entries = np.array([_entry(reader, size) for _ in range(rows)], np.int64).reshape(-1, 2)
    if valid is not None:
        entries[~valid] = 0
    reader.expect(106)
    child = read_vector(reader, kind.child, size)
    reader.end()
    offsets, lengths = entries[:, 0], entries[:, 1]
    ends = np.concatenate([[0], np.cumsum(lengths)])
    reader.rows(int(ends[-1]))
    if not np.array_equal(offsets[lengths > 0], ends[:-1][lengths > 0]):
        # Lists that overlap, leave gaps or come in another order.
        starts = np.repeat(offsets - ends[:-1], lengths)
        child = _taken(child, starts + np.arange(int(ends[-1])))
    if kind.id is Id.MAP:
        return _map(child, ends, valid, rows)
    arrow = pa.list_(_field("l", kind.child, child))
    places = pa.py_buffer(ends.astype("<i4").tobytes())
    return pa.Array.from_buffers(arrow, rows, [bitmap_of(valid), places], children=[child])


def _entry(reader: Reader, size: int) -> tuple[int, int]:
    reader.expect(100)
    offset = reader.unsigned()
    reader.expect(101)
    length = reader.unsigned()
    reader.end()
    if length and offset + length > size:
        raise Malformed("a list lies beyond the end of its child")
    return (offset, length) if length else (0, 0)


def _map(entries: Any, ends: Any, valid: Any, rows: int) -> Any:
    keys, values = entries.field(0), entries.field(1)
    if keys.null_count or entries.null_count:
        raise Malformed("a key of a map is NULL")
    arrow = pa.map_(keys.type, values.type)
    inner = pa.StructArray.from_arrays(
        [keys, values],
        fields=[pa.field("key", keys.type, nullable=False), pa.field("value", values.type)],
    )
    places = pa.py_buffer(ends.astype("<i4").tobytes())
    return pa.Array.from_buffers(arrow, rows, [bitmap_of(valid), places], children=[inner])


def _array(reader: Reader, kind: LogicalType, rows: int, valid: Any) -> Any:
    reader.expect(103)
    if reader.unsigned() != kind.size:
        raise Malformed("an array has another size than its type")
    reader.expect(104)
    reader.rows(kind.size * rows)
    child = read_vector(reader, kind.child, kind.size * rows)
    reader.end()
    arrow = pa.list_(_field("", kind.child, child), kind.size)
    return pa.Array.from_buffers(arrow, rows, [bitmap_of(valid)], children=[child])
