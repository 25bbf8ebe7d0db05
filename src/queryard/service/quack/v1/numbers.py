"""Many variable-length numbers at once, and what stands between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..wire import END, field

Bytes = Any
"""An array of bytes."""

_OFFSET = np.frombuffer(field(100), np.uint8)
_LENGTH = np.frombuffer(field(101), np.uint8)
_END = np.frombuffer(END, np.uint8)


def sizes_of(values: Any) -> Any:
    """How many bytes each number takes.

    >>> sizes_of(np.array([0, 127, 128, 16384])).tolist()
    [1, 1, 2, 3]
    """
    sizes = np.ones(len(values), np.int64)
    most = int(values.max(initial=0))
    limit = 0x80
    while most >= limit:
        sizes += values >= limit
        limit <<= 7
    return sizes


def with_lengths(data: Bytes, lengths: Any) -> tuple[Bytes, Any]:
    """Texts that lie one behind another, each behind its length; and where each ends.

    >>> out, ends = with_lengths(np.frombuffer(b"abc", np.uint8), np.array([1, 0, 2]))
    >>> out.tobytes(), ends.tolist()
    (b'\\x01a\\x00\\x02bc', [2, 3, 6])
    """
    if not len(lengths):
        return data[:0], lengths
    is_short = int(lengths.max()) < 0x80
    sizes: Any = 1 if is_short else sizes_of(lengths)
    ends = np.cumsum(lengths + sizes)
    starts = ends - lengths - sizes
    out = np.empty(int(ends[-1]), np.uint8)
    is_data = np.ones(len(out), bool)
    if is_short:
        out[starts] = lengths
        is_data[starts] = False
    else:
        for place in range(int(sizes.max())):
            has = sizes > place
            at = starts[has] + place
            more = np.where(sizes[has] > place + 1, 0x80, 0)
            out[at] = (lengths[has] >> 7 * place) & 0x7F | more
            is_data[at] = False
    out[is_data] = data
    return out, ends


def list_entries(offsets: Any, lengths: Any) -> bytes:
    """The places of lists within their child: an object of offset and length for each.

    >>> list_entries(np.array([0]), np.array([3])).hex()
    '640000650003ffff'
    """
    count = len(lengths)
    parts: list[tuple[Any, Any]] = [
        _constant(_OFFSET, count),
        _varying(offsets),
        _constant(_LENGTH, count),
        _varying(lengths),
        _constant(_END, count),
    ]
    bytes_ = np.concatenate([part for part, _ in parts], axis=1)
    used = np.concatenate([part for _, part in parts], axis=1)
    found: bytes = bytes_[used].tobytes()
    return found


def _constant(value: Bytes, count: int) -> tuple[Any, Any]:
    return np.broadcast_to(value, (count, len(value))), np.ones((count, len(value)), bool)


def _varying(values: Any) -> tuple[Any, Any]:
    sizes = sizes_of(values)
    places = np.arange(int(sizes.max(initial=1)))
    bits = (values[:, None] >> 7 * places) & 0x7F
    more = np.where(sizes[:, None] > places + 1, 0x80, 0)
    return (bits | more).astype(np.uint8), sizes[:, None] > places
