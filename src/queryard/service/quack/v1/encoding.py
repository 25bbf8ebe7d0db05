"""Columns of Arrow as vectors.

Most columns of Arrow lie in memory as they are sent, and are sent as they lie. A vector is a list
of pieces, to be joined once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import CannotSend
from ..wire import END, field, unsigned
from .numbers import list_entries, with_lengths
from .types import LISTS, STRUCTS, TEXTS, Id, LogicalType
from .variants import variant_parts

Piece = Any
"""Bytes, or something that can be joined with them."""

ALL_VALID = field(100) + b"\x00"
_MASKED = field(100) + b"\x01" + field(101)
DATA = field(102)
_CHILDREN = field(103)
_ARRAY_SIZE, _ARRAY_CHILD = field(103), field(104)
_LIST_ROWS, _LIST_ENTRIES, _LIST_CHILD = field(104), field(105), field(106)
# Geometries are sent as well-known binary.
_GEOMETRY_FORM = field(99) + b"\x01"
_SIGN_BIT = 0x80
# Within the 36 characters of a UUID.
_HYPHENS = (8, 13, 18, 23)
_NO_UUID = "00000000-0000-0000-0000-000000000000"
_HEX_PLACES = np.array([place for place in range(36) if place not in _HYPHENS])
_INTERVAL = np.dtype([("months", "<i4"), ("days", "<i4"), ("rest", "<i8")])


def _hex_values() -> Any:
    values = np.zeros(256, np.uint8)
    for number in range(16):
        values[ord(f"{number:x}")] = values[ord(f"{number:X}")] = number
    return values


_HEX_VALUES = _hex_values()


def write_vector(values: Any, kind: LogicalType, out: list[Piece], hidden: Any = None) -> None:
    """The fields of one flat vector, without the end of its object.

    Rows that are `hidden` are NULL, whatever is in their place.
    """
    if kind.id is Id.VARIANT:
        _structure(variant_parts(values), kind, out, hidden)
        return
    values = stored(values)
    if kind.id is Id.GEOMETRY:
        out.append(_GEOMETRY_FORM)
    if kind.id is Id.UNION:
        _union(values, kind, out, hidden)
    elif kind.id in STRUCTS:
        _structure(values, kind, out, hidden)
    elif kind.id in LISTS:
        _list(values, kind, out, hidden)
    elif kind.id is Id.ARRAY:
        _array(values, kind, out, hidden)
    elif kind.id in TEXTS:
        _texts(values, out, hidden)
    else:
        _fixed(values, kind, out, hidden)


def stored(values: Any) -> Any:
    """A column as it lies in memory; one that is NULL throughout goes as INTEGER."""
    if isinstance(values, pa.ExtensionArray):
        return values.storage
    return pa.nulls(len(values), pa.int32()) if pa.types.is_null(values.type) else values


# --- validity ------------------------------------------------------------------------------------


def _validity(values: Any, out: list[Piece], hidden: Any) -> Any:
    """Which rows are not NULL: one bit each, padded with ones to words of 64 bits.

    Returns the same as booleans; None if none is NULL.
    """
    if hidden is None and not values.null_count:
        out.append(ALL_VALID)
        return None
    valid = valid_of(values) if hidden is None else valid_of(values) & ~hidden
    return write_mask(valid, out)


def valid_of(values: Any) -> Any:
    """Which rows are not NULL, as booleans."""
    bitmap = values.buffers()[0]
    if bitmap is None:
        return np.full(len(values), not values.null_count)
    return _bits(bitmap, values.offset, len(values)).view(bool)


def write_mask(valid: Any, out: list[Piece]) -> Any:
    """The validity by an array of booleans, which is returned; None if all are true."""
    count = len(valid)
    if valid.all():
        out.append(ALL_VALID)
        return None
    padded = np.ones((count + 63) // 64 * 64, bool)
    padded[:count] = valid
    raw = np.packbits(padded, bitorder="little").tobytes()
    out.append(_MASKED + unsigned(len(raw)) + raw)
    return valid


def _bits(buffer: Any, start: int, count: int) -> Any:
    first = start >> 3
    raw = np.frombuffer(buffer, np.uint8)[first : (start + count + 7) >> 3]
    return np.unpackbits(raw, bitorder="little")[start - 8 * first :][:count]


# --- values of one size --------------------------------------------------------------------------


def _fixed(values: Any, kind: LogicalType, out: list[Piece], hidden: Any) -> None:
    valid = _validity(values, out, hidden)
    out.append(DATA + unsigned(len(values) * kind.value_bytes))
    out.append(fixed_data(values, kind, valid))


def fixed_data(values: Any, kind: LogicalType, valid: Any) -> Piece:
    """Values of one size; `valid` says which are not NULL, None that all are."""
    size = kind.value_bytes
    convert = _CONVERTED.get(kind.id)
    data = _raw(values, size) if convert is None else convert(values, kind)
    return data if valid is None else _without_null(data, valid, size)


def _without_null(data: Piece, valid: Any, size: int) -> Piece:
    """Zeros where there is no value: what lies there may be left from anything."""
    word = min(size, 8)
    found = np.frombuffer(data, f"<u{word}").reshape(-1, size // word)
    blank = found.dtype.type(0)
    return np.where(valid[:, None], found, blank).tobytes()


def _raw(values: Any, size: int) -> Piece:
    """Values as they lie in memory."""
    if not len(values):
        return b""
    if values.type.bit_width != 8 * size:
        raise CannotSend(f"a column of {values.type} where values of {size} bytes are expected")
    start = values.offset * size
    return memoryview(values.buffers()[1])[start : start + len(values) * size]


def _array_of(values: Any, dtype: Any) -> Any:
    """Values as a NumPy array over the same memory."""
    size = np.dtype(dtype).itemsize
    return np.frombuffer(_raw(values, size), dtype)


def _booleans(values: Any, kind: LogicalType) -> Piece:
    if not pa.types.is_boolean(values.type):
        return _raw(values, 1)
    if not len(values):
        return b""
    return _bits(values.buffers()[1], values.offset, len(values)).tobytes()


def _decimals(values: Any, kind: LogicalType) -> Piece:
    size, given = kind.value_bytes, values.type.bit_width // 8
    if size == given:
        return _raw(values, size)
    if given == 16:
        # The lower half has all digits of a number that fits there.
        numbers = _array_of(values, np.dtype([("low", "<i8"), ("high", "<i8")]))["low"]
    else:
        numbers = _array_of(values, f"<i{given}")
    return numbers.astype(f"<i{size}").tobytes()


def _intervals(values: Any, kind: LogicalType) -> Piece:
    """Arrow counts nanoseconds, DuckDB microseconds; what does not fit there comes cut off."""
    found = _array_of(values, _INTERVAL).copy()
    found["rest"], left = np.divmod(found["rest"], 1000)
    if (left[valid_of(values)] if values.null_count else left).any():
        raise CannotSend(
            "an INTERVAL whose time is more than 292 years cannot be sent; cast it to VARCHAR"
        )
    return found.tobytes()


def _uuids(values: Any, kind: LogicalType) -> Piece:
    """Numbers of 128 bits with the first bit flipped, so that they are in order."""
    if pa.types.is_fixed_size_binary(values.type):
        found = _array_of(values, np.dtype("V16")).view(np.uint8).reshape(-1, 16)
    else:
        data, lengths = _joined(values.fill_null(_NO_UUID) if values.null_count else values)
        if (lengths != 36).any():
            raise CannotSend("a UUID is not written with 36 characters")
        digits = _HEX_VALUES[data.reshape(-1, 36)[:, _HEX_PLACES]]
        found = digits[:, 0::2] << 4 | digits[:, 1::2]
    found = found[:, ::-1].copy()
    found[:, 15] ^= _SIGN_BIT
    return found.tobytes()


def _enums(values: Any, kind: LogicalType) -> Piece:
    indices = values.indices
    numbers = _array_of(indices, f"<u{indices.type.bit_width // 8}")
    return numbers.astype(f"<u{kind.value_bytes}").tobytes()


def _times_with_zone(values: Any, kind: LogicalType) -> Piece:
    if not pa.types.is_fixed_size_binary(values.type):
        raise CannotSend("times with a zone came without their zone")
    return _raw(values, 8)


_CONVERTED: dict[Id, Callable[[Any, LogicalType], Piece]] = {
    Id.BOOLEAN: _booleans,
    Id.DECIMAL: _decimals,
    Id.INTERVAL: _intervals,
    Id.UUID: _uuids,
    Id.ENUM: _enums,
    Id.TIMETZ: _times_with_zone,
}


# --- texts ---------------------------------------------------------------------------------------


def _texts(values: Any, out: list[Piece], hidden: Any) -> None:
    values = plain_texts(values)
    valid = _validity(values, out, hidden)
    out.append(DATA + unsigned(len(values)))
    out.append(text_data(values, valid)[0])


def plain_texts(values: Any) -> Any:
    """Texts that are no places in a dictionary."""
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def text_data(values: Any, valid: Any) -> tuple[Any, Any]:
    """Texts behind their lengths, and where each ends; `valid` as in `fixed_data`."""
    data, lengths = _joined(values)
    if valid is not None and lengths[~valid].any():
        data, lengths = data[np.repeat(valid, lengths)], np.where(valid, lengths, 0)
    return with_lengths(data, lengths)


def _joined(values: Any) -> tuple[Any, Any]:
    """The bytes of all texts, one behind another, and how long each is; NULL may be any text."""
    kind = values.type
    is_large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    if not (is_large or pa.types.is_string(kind) or pa.types.is_binary(kind)):
        raise CannotSend(f"a column of {kind} where texts are expected")
    _, places, data = values.buffers()
    if not len(values):
        return np.empty(0, np.uint8), np.empty(0, np.int64)
    dtype = np.dtype("<i8" if is_large else "<i4")
    ends = np.frombuffer(places, dtype, len(values) + 1, values.offset * dtype.itemsize)
    joined = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return joined[int(ends[0]) : int(ends[-1])], np.diff(ends)


# --- values with parts ---------------------------------------------------------------------------


def _structure(values: Any, kind: LogicalType, out: list[Piece], hidden: Any) -> None:
    valid = _validity(values, out, hidden)
    out.append(_CHILDREN + unsigned(len(kind.children)))
    # The parts of a struct that is NULL are NULL, too.
    hidden = None if valid is None else ~valid
    for place, (_, child) in enumerate(kind.children):
        write_vector(values.field(place), child, out, hidden)
        out.append(END)


def _union(values: Any, kind: LogicalType, out: list[Piece], hidden: Any) -> None:
    """A tag and all members, of which all but one are NULL."""
    members = len(kind.children) - 1
    if values.type.type_codes != list(range(members)) or values.type.mode != "sparse":
        raise CannotSend(f"a union of type {values.type} has no form in Quack")
    codes = _codes(values)
    parts = [values.field(place) for place in range(members)]
    chosen = is_something(values)
    if hidden is not None:
        chosen &= ~hidden
    valid = write_mask(chosen, out)
    out.append(_CHILDREN + unsigned(members + 1))
    write_mask(chosen, out)
    tags = codes.tobytes() if valid is None else _without_null(codes.tobytes(), valid, 1)
    out += [DATA + unsigned(len(codes)), tags, END]
    for place, (part, (_, child)) in enumerate(zip(parts, kind.children[1:], strict=True)):
        other = (codes != place) | ~chosen
        write_vector(part, child, out, other if other.any() else None)
        out.append(END)


def _codes(values: Any) -> Any:
    """Which member each row has; `type_codes` of a slice are those of the whole."""
    if not len(values):
        return np.empty(0, np.uint8)
    return np.frombuffer(values.buffers()[1], np.uint8, len(values), values.offset)


def is_something(values: Any) -> Any:
    """Which rows are not NULL.

    Arrow does not tell a union that is NULL from one whose first member is: it is taken for NULL.
    """
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if pa.types.is_union(values.type):
        return (_codes(values) != 0) | is_something(values.field(0))
    return valid_of(values) if values.null_count else np.full(len(values), True)


def _list(values: Any, kind: LogicalType, out: list[Piece], hidden: Any) -> None:
    valid = _validity(values, out, hidden)
    count = len(values)
    is_large = pa.types.is_large_list(values.type)
    dtype = np.dtype("<i8" if is_large else "<i4")
    if count:
        start = values.offset * dtype.itemsize
        ends = np.frombuffer(values.buffers()[1], dtype, count + 1, start).astype(np.int64)
    else:
        ends = np.zeros(1, np.int64)
    first, size = int(ends[0]), int(ends[-1] - ends[0])
    out.append(_LIST_ROWS + unsigned(size) + _LIST_ENTRIES + unsigned(count))
    lengths = np.diff(ends)
    if valid is not None:
        lengths = np.where(valid, lengths, 0)
    out.append(list_entries(ends[:-1] - first, lengths))
    out.append(_LIST_CHILD)
    if kind.id is Id.MAP:
        parts = (values.keys.slice(first, size), values.items.slice(first, size))
        out.append(ALL_VALID + _CHILDREN + b"\x02")
        for part, (_, child) in zip(parts, kind.child.children, strict=True):
            write_vector(part, child, out)
            out.append(END)
    else:
        write_vector(values.values.slice(first, size), kind.child, out)
    out.append(END)


def _array(values: Any, kind: LogicalType, out: list[Piece], hidden: Any) -> None:
    valid = _validity(values, out, hidden)
    size = kind.size
    out.append(_ARRAY_SIZE + unsigned(size) + _ARRAY_CHILD)
    child = values.values.slice(values.offset * size, len(values) * size)
    write_vector(child, kind.child, out, None if valid is None else np.repeat(~valid, size))
    out.append(END)
