"""Data chunks of a client as rows of Arrow, in the forms that DuckDB reads from Arrow.

Vectors come flat, as one constant, as places in a dictionary, or as a sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import CannotSend, Malformed
from ..wire import Reader
from .encoding import CHUNK_ROWS
from .types import LISTS, STRUCTS, TEXTS, Id, LogicalType, read_type

_FLAT, _CONSTANT, _DICTIONARY, _SEQUENCE = 0, 2, 3, 4
_INTERVAL = np.dtype([("months", "<i4"), ("days", "<i4"), ("rest", "<i8")])
_INTEGERS = frozenset(
    {
        *(Id.TINYINT, Id.SMALLINT, Id.INTEGER, Id.BIGINT),
        *(Id.UTINYINT, Id.USMALLINT, Id.UINTEGER, Id.UBIGINT),
    }
)
_MOST_NANOSECONDS = 2**63 // 1000 - 1


def _opaque(name: str, storage: Any) -> Any:
    return pa.opaque(storage, name, "DuckDB")


# Values of one size that lie in Arrow as they came.
ARROW: dict[Id, Any] = {
    Id.TINYINT: pa.int8(),
    Id.SMALLINT: pa.int16(),
    Id.INTEGER: pa.int32(),
    Id.BIGINT: pa.int64(),
    Id.DATE: pa.date32(),
    Id.TIME: pa.time64("us"),
    Id.TIMESTAMP_S: pa.timestamp("s"),
    Id.TIMESTAMP_MS: pa.timestamp("ms"),
    Id.TIMESTAMP: pa.timestamp("us"),
    Id.TIMESTAMP_NS: pa.timestamp("ns"),
    Id.FLOAT: pa.float32(),
    Id.DOUBLE: pa.float64(),
    Id.UTINYINT: pa.uint8(),
    Id.USMALLINT: pa.uint16(),
    Id.UINTEGER: pa.uint32(),
    Id.UBIGINT: pa.uint64(),
    Id.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    Id.TIME_NS: pa.time64("ns"),
    Id.TIMETZ: _opaque("time_tz", pa.binary(8)),
    Id.HUGEINT: _opaque("hugeint", pa.binary(16)),
    Id.UHUGEINT: _opaque("uhugeint", pa.binary(16)),
}
_TEXTS: dict[Id, Any] = {
    Id.VARCHAR: pa.string(),
    Id.BLOB: pa.binary(),
    Id.BIT: _opaque("bit", pa.binary()),
    Id.BIGNUM: _opaque("bignum", pa.binary()),
    Id.GEOMETRY: pa.binary(),
}


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
        places = np.frombuffer(_sized(reader, 4 * rows), "<u4").astype(np.int64)
        reader.expect(92)
        count = reader.unsigned()
        _check_count(count, reader)
        if rows and int(places.max()) >= count:
            raise Malformed("a place in a dictionary lies beyond its end")
        found = _taken(read_vector(reader, kind, count), places)
    elif form == _SEQUENCE:
        found = _sequence(reader, kind, rows)
    else:
        raise Malformed(f"a vector of form {form}")
    reader.back()
    return found


def _check_count(count: int, reader: Reader) -> None:
    """A child of so many rows: refused before any are made."""
    reader.rows(count)


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
        mask = np.frombuffer(_sized(reader, (rows + 63) // 64 * 8), np.uint8)
        valid = np.unpackbits(mask, bitorder="little")[:rows].astype(bool)
        if valid.all():
            valid = None
    if kind.id is Id.VARIANT:
        raise CannotSend("VARIANT cannot be inserted; cast it to JSON")
    if kind.id is Id.UNION:
        return _union(reader, kind, rows, valid)
    if kind.id in STRUCTS:
        return _structure(reader, kind, rows, valid)
    if kind.id in LISTS:
        return _list(reader, kind, rows, valid)
    if kind.id is Id.ARRAY:
        return _array(reader, kind, rows, valid)
    if kind.id in TEXTS:
        return _texts(reader, kind, rows, valid)
    return _fixed(reader, kind, rows, valid)


def _sized(reader: Reader, size: int) -> bytes:
    found = reader.raw()
    if len(found) != size:
        raise Malformed(f"a block has {len(found)} bytes, where {size} are expected")
    return found


def _bitmap(valid: Any) -> Any:
    if valid is None:
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())


# --- values of one size --------------------------------------------------------------------------


def _fixed(reader: Reader, kind: LogicalType, rows: int, valid: Any) -> Any:
    reader.expect(102)
    data = _sized(reader, kind.value_bytes * rows)
    convert = _CONVERTED.get(kind.id)
    if convert is not None:
        return convert(data, kind, rows, valid)
    arrow = ARROW[kind.id]
    is_extension = isinstance(arrow, pa.BaseExtensionType)
    storage = arrow.storage_type if is_extension else arrow
    found = pa.Array.from_buffers(storage, rows, [_bitmap(valid), pa.py_buffer(data)])
    return pa.ExtensionArray.from_storage(arrow, found) if is_extension else found


def _booleans(data: bytes, kind: LogicalType, rows: int, valid: Any) -> Any:
    return pa.array(np.frombuffer(data, np.uint8) != 0, mask=None if valid is None else ~valid)


def _decimals(data: bytes, kind: LogicalType, rows: int, valid: Any) -> Any:
    size = kind.value_bytes
    if size < 16:
        low = np.frombuffer(data, f"<i{size}").astype("<i8")
        wide = np.empty((rows, 2), "<i8")
        wide[:, 0], wide[:, 1] = low, low >> 63
        data = wide.tobytes()
    arrow = pa.decimal128(kind.width, kind.scale)
    found = pa.Array.from_buffers(arrow, rows, [_bitmap(valid), pa.py_buffer(data)])
    try:
        found.validate(full=True)
    except pa.ArrowInvalid:
        raise Malformed(f"a DECIMAL has more than {kind.width} digits") from None
    return found


def _intervals(data: bytes, kind: LogicalType, rows: int, valid: Any) -> Any:
    found = np.frombuffer(data, _INTERVAL).copy()
    if valid is not None:
        found["rest"][~valid] = 0
    if rows and int(np.abs(found["rest"]).max()) > _MOST_NANOSECONDS:
        raise CannotSend("an INTERVAL of more than 292 years of microseconds cannot be inserted")
    found["rest"] *= 1000
    arrow = pa.month_day_nano_interval()
    return pa.Array.from_buffers(arrow, rows, [_bitmap(valid), pa.py_buffer(found.tobytes())])


def _uuids(data: bytes, kind: LogicalType, rows: int, valid: Any) -> Any:
    found = np.frombuffer(data, np.uint8).reshape(-1, 16)[:, ::-1].copy()
    found[:, 0] ^= 0x80
    raw = pa.py_buffer(found.tobytes())
    storage = pa.Array.from_buffers(pa.binary(16), rows, [_bitmap(valid), raw])
    return pa.ExtensionArray.from_storage(pa.uuid(), storage)


def _enums(data: bytes, kind: LogicalType, rows: int, valid: Any) -> Any:
    places = np.frombuffer(data, f"<u{kind.value_bytes}")
    used = places if valid is None else places[valid]
    if len(used) and int(used.max()) >= len(kind.values):
        raise Malformed("a value of an ENUM lies beyond its last")
    mask = None if valid is None else ~valid
    if mask is not None:
        places = np.where(mask, 0, places).astype(places.dtype)
    return pa.DictionaryArray.from_arrays(
        pa.array(places, mask=mask), pa.array(kind.values, pa.string())
    )


_CONVERTED: dict[Id, Callable[[bytes, LogicalType, int, Any], Any]] = {
    Id.BOOLEAN: _booleans,
    Id.DECIMAL: _decimals,
    Id.INTERVAL: _intervals,
    Id.UUID: _uuids,
    Id.ENUM: _enums,
}


# --- texts ---------------------------------------------------------------------------------------


def _texts(reader: Reader, kind: LogicalType, rows: int, valid: Any) -> Any:
    reader.expect(102)
    if reader.count() != rows:
        raise Malformed("a vector has another number of texts than of rows")
    found: list[bytes | None] = [reader.raw() for _ in range(rows)]
    if valid is not None:
        for place in np.flatnonzero(~valid).tolist():
            found[place] = None
    arrow = _TEXTS[kind.id]
    check = _CHECKED.get(kind.id)
    if check is not None and not all(value is None or check(value) for value in found):
        raise Malformed(f"a value of type {kind.id.name} has no form that it can have")
    values = pa.array(found, pa.binary())
    if isinstance(arrow, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(arrow, values)
    try:
        return values.cast(arrow)
    except pa.ArrowInvalid as error:
        raise Malformed(f"a text is no UTF-8: {error}") from None


def _is_bits(value: bytes) -> bool:
    """The number of bits that pad the first byte, which are set, and the bits."""
    return len(value) >= 2 and value[0] < 8 and value[1] >> (8 - value[0]) == (1 << value[0]) - 1


def _is_bignum(value: bytes) -> bool:
    """Its sign and its number of bytes in three bytes, which are inverted below zero."""
    if len(value) < 4:
        return False
    head = int.from_bytes(value[:3], "big")
    return len(value) - 3 == (head - 0x800000 if head & 0x800000 else 0x7FFFFF - head)


# DuckDB takes these for what they say: bytes of any other form must not come to it.
_CHECKED: dict[Id, Callable[[bytes], bool]] = {Id.BIT: _is_bits, Id.BIGNUM: _is_bignum}


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
    if valid is not None:
        # A union that is NULL is one whose member is.
        codes = np.where(valid, codes, 0).astype(np.int8)
        parts[0] = _without(parts[0], ~valid)
    names = [name for name, _ in kind.children[1:]]
    return pa.UnionArray.from_sparse(pa.array(codes), parts, names)


def _without(values: Any, hide: Any) -> Any:
    """A column with some rows as NULL."""
    if isinstance(values, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(values.type, _without(values.storage, hide))
    places = pa.array(np.arange(len(values)), mask=hide)
    return values.take(places)


def _list(reader: Reader, kind: LogicalType, rows: int, valid: Any) -> Any:
    reader.expect(104)
    size = reader.unsigned()
    _check_count(size, reader)
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
    return pa.Array.from_buffers(arrow, rows, [_bitmap(valid), places], children=[child])


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
    return pa.Array.from_buffers(arrow, rows, [_bitmap(valid), places], children=[inner])


def _array(reader: Reader, kind: LogicalType, rows: int, valid: Any) -> Any:
    reader.expect(103)
    if reader.unsigned() != kind.size:
        raise Malformed("an array has another size than its type")
    reader.expect(104)
    _check_count(kind.size * rows, reader)
    child = read_vector(reader, kind.child, kind.size * rows)
    reader.end()
    arrow = pa.list_(_field("", kind.child, child), kind.size)
    return pa.Array.from_buffers(arrow, rows, [_bitmap(valid)], children=[child])
