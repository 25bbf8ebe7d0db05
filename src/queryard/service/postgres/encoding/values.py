"""The values of a column, in text or in binary, by PostgreSQL's type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import oids
from ..errors import PostgresError, not_supported
from . import moments
from .cells import (
    Cells,
    as_binary,
    binary,
    cannot,
    is_text,
    matrix,
    nulls_of,
    offsets_and_data,
    whole_numbers,
)
from .numeric import numeric_binary, numeric_text

_HEX = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint8)
_HEX_PAIRS = _HEX.reshape(256, 2)
_NIBBLES = np.zeros(256, np.uint8)
for _digit in "0123456789abcdefABCDEF":
    _NIBBLES[ord(_digit)] = int(_digit, 16)
# Where the digits of a UUID stand between its dashes.
_UUID_PLACES = np.array([place for place in range(36) if place not in (8, 13, 18, 23)])


def plain(column: Any) -> Any:
    """A column without dictionaries, extensions and wide offsets."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return plain(column.storage)
    if pa.types.is_dictionary(kind):
        return plain(column.dictionary_decode())
    if pa.types.is_null(kind) or (is_text(kind) and not pa.types.is_string(kind)):
        return column.cast(pa.string())
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return column.cast(pa.binary())
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    return column


# --- text ----------------------------------------------------------------------------------------


def text_values(column: Any, oid: int, zone: str) -> Any:
    """The values of a plain column as texts; NULL stays NULL."""
    kind = column.type
    if is_text(kind):
        return checked_text(column)
    if oid in (oids.TIMESTAMP, oids.TIMESTAMPTZ) and pa.types.is_timestamp(kind):
        return moments.timestamp_text(column, zone if oid == oids.TIMESTAMPTZ else None)
    writer = _TEXTS.get(oid)
    if writer is None and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        writer = _float_text if pa.types.is_floating(kind) else _whole_text
    if writer is None:
        raise cannot(column, oid, "text")
    return writer(column)


def checked_text(column: Any) -> Any:
    """Texts, which must not hold the byte 0: PostgreSQL's clients take it for the end."""
    offsets, data = offsets_and_data(column)
    holds = b"\0" in data[offsets[0] : offsets[-1]].tobytes()
    # A NULL may stand over any bytes.
    if holds and pc.any(pc.match_substring(column.cast(pa.binary()), b"\0")).as_py():
        raise PostgresError(
            "22021",
            'invalid byte sequence for encoding "UTF8": 0x00',
            hint="PostgreSQL's texts cannot hold it: take it out in the query, "
            "replace(name, chr(0), '')",
        )
    return column


def _whole_text(column: Any) -> Any:
    return column.cast(pa.string())


def _float_text(column: Any) -> Any:
    """The shortest digits that give the number back, with PostgreSQL's words for the rest."""
    written = column.cast(pa.string())
    if pc.all(pc.is_finite(column)).as_py() in (True, None):
        return written
    return pc.replace_substring(pc.replace_substring(written, "nan", "NaN"), "inf", "Infinity")


def _bool_text(column: Any) -> Any:
    return pc.if_else(column, "t", "f")


def _bytes_text(column: Any) -> Any:
    offsets, data = offsets_and_data(column)
    used = data[offsets[0] : offsets[-1]]
    digits = binary((offsets.astype(np.int64) - offsets[0]) * 2, _HEX_PAIRS[used].reshape(-1))
    joined = pc.binary_join_element_wise(b"\\x", digits, b"")
    nulls = nulls_of(column)
    return joined if nulls is None else pc.if_else(pa.array(nulls), None, joined)


_TEXTS: dict[int, Callable[[Any], Any]] = {
    oids.BOOL: _bool_text,
    oids.BYTEA: _bytes_text,
    oids.DATE: moments.date_text,
    oids.TIME: moments.time_text,
    oids.INTERVAL: moments.interval_text,
    oids.NUMERIC: numeric_text,
}


# --- binary --------------------------------------------------------------------------------------


def binary_values(column: Any, oid: int) -> Cells:
    """The values of a plain column in binary: what is there for NULL does not count."""
    if oid in oids.TEXTS:
        if not is_text(column.type):
            raise cannot(column, oid, "binary")
        return checked_text(column).cast(pa.binary())
    if oid in oids.SIGNED or oid in oids.UNSIGNED:
        return _whole_binary(column, oid)
    writer = _BINARIES.get(oid)
    if writer is None:
        raise not_supported(f"type {oid} has no binary format here", hint="ask for text format")
    return writer(column)


def _whole_binary(column: Any, oid: int) -> Cells:
    if not pa.types.is_integer(column.type):
        raise cannot(column, oid, "binary")
    if oid in oids.UNSIGNED:
        return matrix(whole_numbers(column, pa.int64()), ">u4")
    width = oids.SIGNED[oid]
    kind = {2: pa.int16(), 4: pa.int32(), 8: pa.int64()}[width]
    return matrix(whole_numbers(column, kind), f">i{width}")


def _bool_binary(column: Any) -> Cells:
    return matrix(column.fill_null(False).to_numpy(zero_copy_only=False), "u1")


def _float4(column: Any) -> Cells:
    return matrix(whole_numbers(column, pa.float32()), ">f4")


def _float8(column: Any) -> Cells:
    return matrix(whole_numbers(column, pa.float64()), ">f8")


def _bytes_binary(column: Any) -> Cells:
    if not pa.types.is_binary(column.type):
        raise cannot(column, oids.BYTEA, "binary")
    return column


def _uuid_binary(column: Any) -> Cells:
    offsets, data = offsets_and_data(column)
    starts = offsets[:-1].astype(np.int64)
    nulls = nulls_of(column)
    if nulls is not None:
        starts = starts[~nulls]
    digits = _NIBBLES[data[starts[:, None] + _UUID_PLACES]]
    found = digits[:, ::2] << 4 | digits[:, 1::2]
    if nulls is None:
        return found
    rows = np.zeros((len(column), 16), np.uint8)
    rows[~nulls] = found
    return rows


_BINARIES: dict[int, Callable[[Any], Cells]] = {
    oids.BOOL: _bool_binary,
    oids.BYTEA: _bytes_binary,
    oids.FLOAT4: _float4,
    oids.FLOAT8: _float8,
    oids.DATE: moments.date_binary,
    oids.TIME: moments.time_binary,
    oids.TIMETZ: moments.timetz_binary,
    oids.TIMESTAMP: moments.timestamp_binary,
    oids.TIMESTAMPTZ: moments.timestamp_binary,
    oids.INTERVAL: moments.interval_binary,
    oids.NUMERIC: numeric_binary,
    oids.UUID: _uuid_binary,
}


def lengths_and_values(cells: Cells, nulls: np.ndarray | None) -> tuple[np.ndarray, Any]:
    """The length of each value, -1 for NULL; and the values as binary, with nothing for NULL."""
    if isinstance(cells, np.ndarray):
        number, width = cells.shape
        if nulls is None:
            return np.full(number, width, np.int64), as_binary(cells)
        there = ~nulls
        offsets = np.zeros(number + 1, np.int64)
        np.cumsum(there * width, out=offsets[1:])
        return np.where(nulls, -1, width), binary(offsets, cells[there].reshape(-1))
    offsets, _ = offsets_and_data(cells)
    lengths = np.diff(offsets).astype(np.int64)
    if nulls is not None:
        cells = pc.fill_null(cells, b"")
        lengths[nulls] = -1
    return lengths, cells
