"""The bytes of one column's values: a matrix where all have one length, else a binary array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import not_supported

# One row of bytes per value; or an Arrow array of type binary.
Cells = Any


def matrix(values: np.ndarray, layout: str) -> np.ndarray:
    """Numbers as rows of bytes in network order.

    >>> matrix(np.array([1, 2]), ">i2").tolist()
    [[0, 1], [0, 2]]
    """
    ordered = np.ascontiguousarray(values, dtype=layout)
    return ordered.view(np.uint8).reshape(len(values), ordered.dtype.itemsize)


def side_by_side(parts: Sequence[Any], number: int) -> np.ndarray:
    """One matrix of several; bytes stand for a matrix that has them in each row.

    >>> side_by_side([b"ab", np.array([[1], [2]], np.uint8)], 2).tolist()
    [[97, 98, 1], [97, 98, 2]]
    """
    if len(parts) == 1 and not isinstance(parts[0], bytes):
        only: np.ndarray = parts[0]
        return only
    row = b"".join(part if isinstance(part, bytes) else bytes(part.shape[1]) for part in parts)
    joined = np.empty((number, len(row)), np.uint8)
    joined[:] = np.frombuffer(row, np.uint8)
    at = 0
    for part in parts:
        if isinstance(part, bytes):
            at += len(part)
        else:
            _put(joined, at, part)
            at += part.shape[1]
    return joined


def _put(joined: np.ndarray, at: int, part: np.ndarray) -> None:
    """Copy a matrix to its columns; values that are numbers are copied much faster as such."""
    into, width = joined[:, at : at + part.shape[1]], part.shape[1]
    if width in (2, 4, 8):
        kind = np.dtype(f"u{width}")
        into.view(kind)[:, 0] = part.view(kind)[:, 0]
    else:
        into[:] = part


def as_binary(rows: np.ndarray) -> Any:
    """A matrix of bytes as an Arrow array, without copying."""
    number, width = rows.shape
    offsets = np.arange(0, number * width + 1, max(width, 1), dtype=np.int32)
    if width == 0:
        offsets = np.zeros(number + 1, dtype=np.int32)
    return binary(offsets, np.ascontiguousarray(rows))


def binary(offsets: np.ndarray, data: np.ndarray) -> Any:
    """An Arrow array of type binary from its offsets and its bytes."""
    offsets = np.ascontiguousarray(offsets, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def chosen(rows: np.ndarray, keep: np.ndarray) -> Any:
    """The bytes of a matrix that are kept, row by row.

    >>> chosen(np.array([[1, 2], [3, 4]], np.uint8), np.array([[True, False], [True, True]]))
    <pyarrow.lib.BinaryArray object at ...>
    [
      01,
      0304
    ]
    """
    return binary(offsets_of(keep.sum(axis=1)), rows[keep])


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """Where values of given lengths begin, and where the last one ends."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def offsets_and_data(values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Where the values of a binary or text array begin in its bytes, and the bytes."""
    _, offsets, data = values.buffers()
    raw = np.frombuffer(offsets, dtype=np.int32)[values.offset : values.offset + len(values) + 1]
    return raw, np.frombuffer(data or b"", dtype=np.uint8)


def nulls_of(column: Any) -> np.ndarray | None:
    """Which values are NULL; None if no value is."""
    if column.null_count == 0:
        return None
    found: np.ndarray = column.is_null().to_numpy(zero_copy_only=False)
    return found


def whole_numbers(column: Any, kind: Any) -> np.ndarray:
    """A column of numbers, with 0 for NULL."""
    if column.type != kind:
        column = column.cast(kind)
    return _without_nulls(column)


def raw_numbers(column: Any) -> np.ndarray:
    """The numbers behind a column of dates or times, with 0 for NULL."""
    kind = pa.int32() if column.type.bit_width == 32 else pa.int64()
    return _without_nulls(column.view(kind))


def _without_nulls(column: Any) -> np.ndarray:
    if column.null_count:
        column = column.fill_null(0)
    found: np.ndarray = column.to_numpy(zero_copy_only=False)
    return found


def is_text(kind: Any) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def cannot(column: Any, oid: int, form: str) -> Exception:
    """The error for a column that has no such form."""
    return not_supported(
        f"values of Arrow type {column.type} cannot be sent in {form} format as type {oid}",
        hint="cast the column in the query, for example to VARCHAR",
    )
