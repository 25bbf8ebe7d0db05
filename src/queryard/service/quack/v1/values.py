"""Values without parts, as a client sends them, in the forms that DuckDB reads from Arrow.

What DuckDB would take and fail on later is refused here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import CannotSend, Malformed
from ..wire import Reader
from .types import Id, LogicalType

_INTERVAL = np.dtype([("months", "<i4"), ("days", "<i4"), ("rest", "<i8")])
# Microseconds of which Arrow has the nanoseconds.
_MOST_US = 2**63 // 1000 - 1
_DAY_US = 86_400_000_000
# DuckDB's timestamps reach as far as their microseconds do; the last number stands for infinity.
_INFINITE = 2**63 - 1
_RANGES: dict[Id, tuple[int, int]] = {
    Id.TIME: (0, _DAY_US),
    Id.TIME_NS: (0, _DAY_US * 1000),
    Id.TIMESTAMP_S: (-(_INFINITE // 10**6), _INFINITE // 10**6),
    Id.TIMESTAMP_MS: (-(_INFINITE // 10**3), _INFINITE // 10**3),
}
# How rows are inserted that have no form here.
BY_TEXT = "send the INSERT as a text, as in yard.query('INSERT …')"
# Zones lie up to 16 hours from Greenwich, less a second; they are counted from there.
_MOST_ZONE_S = 16 * 3600 - 1


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


def sized(reader: Reader, size: int) -> bytes:
    found = reader.raw()
    if len(found) != size:
        raise Malformed(f"a block has {len(found)} bytes, where {size} are expected")
    return found


def bitmap_of(valid: Any) -> Any:
    if valid is None:
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())


# --- values of one size --------------------------------------------------------------------------


def read_fixed(reader: Reader, kind: LogicalType, rows: int, valid: Any) -> Any:
    reader.expect(102)
    data = sized(reader, kind.value_bytes * rows)
    convert = _CONVERTED.get(kind.id)
    if convert is not None:
        return convert(data, kind, rows, valid)
    if kind.id in _RANGES or kind.id is Id.TIMETZ:
        _check_moments(np.frombuffer(data, "<i8"), kind.id, valid)
    arrow = ARROW[kind.id]
    is_extension = isinstance(arrow, pa.BaseExtensionType)
    storage = arrow.storage_type if is_extension else arrow
    found = pa.Array.from_buffers(storage, rows, [bitmap_of(valid), pa.py_buffer(data)])
    return pa.ExtensionArray.from_storage(arrow, found) if is_extension else found


def _check_moments(numbers: Any, kind: Id, valid: Any) -> None:
    """Refuse moments that there are none of: DuckDB takes them, and fails on them later."""
    numbers = numbers if valid is None else numbers[valid]
    if kind is Id.TIMETZ:
        zones, numbers = numbers & 0xFFFFFF, numbers.view("<u8") >> 24
        right = (zones <= 2 * _MOST_ZONE_S) & (numbers <= _DAY_US)
    else:
        least, most = _RANGES[kind]
        right = (numbers >= least) & (numbers <= most)
        if kind in (Id.TIMESTAMP_S, Id.TIMESTAMP_MS):
            right |= np.abs(numbers) == _INFINITE
    if not right.all():
        raise Malformed(f"a value of type {kind.name} is none that there is")


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
    found = pa.Array.from_buffers(arrow, rows, [bitmap_of(valid), pa.py_buffer(data)])
    try:
        found.validate(full=True)
    except pa.ArrowInvalid:
        raise Malformed(f"a DECIMAL has more than {kind.width} digits") from None
    return found


def _intervals(data: bytes, kind: LogicalType, rows: int, valid: Any) -> Any:
    found = np.frombuffer(data, _INTERVAL).copy()
    if valid is not None:
        found["rest"][~valid] = 0
    rest = found["rest"]
    if ((rest > _MOST_US) | (rest < -_MOST_US)).any():
        raise CannotSend(
            "an INTERVAL whose time is more than 292 years cannot be inserted; write days or "
            f"months, or {BY_TEXT}"
        )
    rest *= 1000
    arrow = pa.month_day_nano_interval()
    return pa.Array.from_buffers(arrow, rows, [bitmap_of(valid), pa.py_buffer(found.tobytes())])


def _uuids(data: bytes, kind: LogicalType, rows: int, valid: Any) -> Any:
    found = np.frombuffer(data, np.uint8).reshape(-1, 16)[:, ::-1].copy()
    found[:, 0] ^= 0x80
    raw = pa.py_buffer(found.tobytes())
    storage = pa.Array.from_buffers(pa.binary(16), rows, [bitmap_of(valid), raw])
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


def read_texts(reader: Reader, kind: LogicalType, rows: int, valid: Any) -> Any:
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
