"""Values of type VARIANT: from the form that Arrow and Parquet have to the one DuckDB sends.

Parquet writes a value as a tree of bytes behind a dictionary of names. DuckDB keeps, per row, the
names, the edges from containers to what they hold, the kind and place of every value, and bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa

from ..errors import CannotSend
from ..wire import text, unsigned
from .types import decimal_bytes

# DuckDB's kinds of values.
_NULL, _TRUE, _FALSE = 0, 1, 2
_DECIMAL, _TEXT, _BLOB, _UUID, _OBJECT, _ARRAY = 15, 16, 17, 18, 29, 30
# Parquet's primitive types whose bytes are the same: its number -> DuckDB's, and the size.
_SAME: dict[int, tuple[int, int]] = {
    3: (3, 1),  # integers of 8, 16, 32 and 64 bits
    4: (4, 2),
    5: (5, 4),
    6: (6, 8),
    7: (14, 8),  # DOUBLE
    11: (19, 4),  # DATE
    12: (27, 8),  # TIMESTAMP WITH TIME ZONE
    13: (24, 8),  # TIMESTAMP
    14: (13, 4),  # FLOAT
    17: (20, 8),  # TIME
    19: (25, 8),  # TIMESTAMP_NS
}
_DECIMALS = {8: (4, 9), 9: (8, 18), 10: (16, 38)}
_LONG_BLOB, _LONG_TEXT, _UUID_BYTES = 15, 16, 20
_MOST_DEPTH = 1000

_EDGE = pa.struct([("keys_index", pa.uint32()), ("values_index", pa.uint32())])
_VALUE = pa.struct([("type_id", pa.uint8()), ("byte_offset", pa.uint32())])
PARTS = pa.struct(
    [
        ("keys", pa.list_(pa.string())),
        ("children", pa.list_(_EDGE)),
        ("values", pa.list_(_VALUE)),
        ("data", pa.binary()),
    ]
)


def variant_parts(values: Any) -> Any:
    """A column of variants as the struct that is sent."""
    kind = values.type
    if kind == PARTS:
        return values
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
        kind = values.type
    names = [kind.field(place).name for place in range(kind.num_fields)]
    if names != ["metadata", "value"]:
        raise CannotSend("a VARIANT has come in a form that is not known; cast it to JSON")
    rows = [
        None if row is None else _Row(row["metadata"], row["value"]).parts()
        for row in values.to_pylist()
    ]
    return pa.array(rows, PARTS)


class _Row:
    """One value, read from Parquet's form and written in DuckDB's at once."""

    def __init__(self, metadata: bytes, value: bytes) -> None:
        self._dictionary = list(_dictionary(metadata))
        self._raw = value
        self._keys: dict[str, int] = {}
        self._edges: list[dict[str, int | None]] = []
        self._values: list[dict[str, int]] = []
        self._data = bytearray()

    def parts(self) -> dict[str, Any]:
        self._read(0, 0)
        return {
            "keys": list(self._keys),
            "children": self._edges,
            "values": self._values,
            "data": bytes(self._data),
        }

    def _number(self, at: int, size: int) -> int:
        return int.from_bytes(self._raw[at : at + size], "little")

    def _note(self, kind: int, data: bytes = b"") -> None:
        self._values.append({"type_id": kind, "byte_offset": len(self._data)})
        self._data += data

    def _read(self, at: int, depth: int) -> None:
        if depth > _MOST_DEPTH:
            raise CannotSend(f"a VARIANT is nested deeper than {_MOST_DEPTH} levels")
        head = self._raw[at]
        basic, more = head & 3, head >> 2
        if basic == 0:
            self._primitive(more, at + 1)
        elif basic == 1:
            self._note(_TEXT, text(self._raw[at + 1 : at + 1 + more]))
        elif basic == 2:
            self._object(more, at + 1, depth)
        else:
            self._array(more, at + 1, depth)

    def _primitive(self, kind: int, at: int) -> None:
        if kind <= _FALSE:
            self._note(kind)
        elif kind in _SAME:
            known, size = _SAME[kind]
            self._note(known, self._raw[at : at + size])
        elif kind in _DECIMALS:
            size, width = _DECIMALS[kind]
            number = int.from_bytes(self._raw[at + 1 : at + 1 + size], "little", signed=True)
            raw = number.to_bytes(decimal_bytes(width), "little", signed=True)
            self._note(_DECIMAL, unsigned(width) + unsigned(self._raw[at]) + raw)
        elif kind in (_LONG_BLOB, _LONG_TEXT):
            size = self._number(at, 4)
            found = self._raw[at + 4 : at + 4 + size]
            self._note(_TEXT if kind == _LONG_TEXT else _BLOB, text(found))
        elif kind == _UUID_BYTES:
            first, *rest = self._raw[at : at + 16]
            self._note(_UUID, bytes([*reversed(rest), first ^ 0x80]))
        else:
            raise CannotSend(f"a VARIANT holds a value of Parquet's type {kind}; cast it to JSON")

    def _object(self, head: int, at: int, depth: int) -> None:
        offset_size, id_size, is_large = (head & 3) + 1, (head >> 2 & 3) + 1, head >> 4 & 1
        count_size = 4 if is_large else 1
        count = self._number(at, count_size)
        ids = at + count_size
        offsets = ids + count * id_size
        start = offsets + (count + 1) * offset_size
        names = [
            self._dictionary[self._number(ids + place * id_size, id_size)] for place in range(count)
        ]
        places = [
            start + self._number(offsets + place * offset_size, offset_size)
            for place in range(count)
        ]
        self._container(_OBJECT, list(zip(names, places, strict=True)), depth)

    def _array(self, head: int, at: int, depth: int) -> None:
        offset_size, is_large = (head & 3) + 1, head >> 2 & 1
        count_size = 4 if is_large else 1
        count = self._number(at, count_size)
        offsets = at + count_size
        start = offsets + (count + 1) * offset_size
        places = [
            start + self._number(offsets + place * offset_size, offset_size)
            for place in range(count)
        ]
        self._container(_ARRAY, [(None, place) for place in places], depth)

    def _container(self, kind: int, held: list[tuple[str | None, int]], depth: int) -> None:
        first = len(self._edges)
        self._note(kind, unsigned(len(held)) + (unsigned(first) if held else b""))
        for name, _ in held:
            key = None if name is None else self._keys.setdefault(name, len(self._keys))
            self._edges.append({"keys_index": key, "values_index": 0})
        for place, (_, at) in enumerate(held, start=first):
            self._edges[place]["values_index"] = len(self._values)
            self._read(at, depth + 1)


def _dictionary(metadata: bytes) -> Iterator[str]:
    """The names that objects refer to."""
    size = (metadata[0] >> 6) + 1
    count = int.from_bytes(metadata[1 : 1 + size], "little")
    start = 1 + size + (count + 1) * size
    ends = [
        int.from_bytes(metadata[at : at + size], "little") for at in range(1 + size, start, size)
    ]
    for begin, end in pairwise(ends):
        yield metadata[start + begin : start + end].decode()
