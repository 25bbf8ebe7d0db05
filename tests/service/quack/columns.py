"""Columns of every type, drawn by hypothesis: a type as it is sent, and an Arrow array of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from queryard.service.quack.v1.types import (
    Id,
    LogicalType,
    array_of,
    list_of,
    map_of,
    union_of,
)
from queryard.service.quack.v1.values import ARROW

_PLAIN = [kind for kind in ARROW if kind not in (Id.FLOAT, Id.DOUBLE, Id.TIME, Id.TIME_NS)]
_LEAVES = st.one_of(
    st.sampled_from(
        [
            *_PLAIN,
            *(Id.BOOLEAN, Id.FLOAT, Id.DOUBLE, Id.TIME, Id.TIME_NS, Id.INTERVAL, Id.UUID),
            *(Id.VARCHAR, Id.BLOB, Id.BIT, Id.BIGNUM, Id.GEOMETRY),
        ]
    ).map(LogicalType),
    st.integers(1, 38).flatmap(
        lambda width: st.integers(0, width).map(
            lambda scale: LogicalType(Id.DECIMAL, width=width, scale=scale)
        )
    ),
    st.sampled_from([1, 3, 256, 257]).map(
        lambda count: LogicalType(Id.ENUM, values=tuple(f"v{place}" for place in range(count)))
    ),
    st.just(LogicalType(Id.VARCHAR, alias="JSON")),
    st.just(LogicalType(Id.VARCHAR, collation="nocase")),
)


def _nested(inner: st.SearchStrategy[LogicalType]) -> st.SearchStrategy[LogicalType]:
    members = st.lists(inner, min_size=1, max_size=3).map(
        lambda kinds: tuple((f"m {place}", kind) for place, kind in enumerate(kinds))
    )
    return st.one_of(
        inner.map(list_of),
        st.tuples(inner, st.integers(1, 3)).map(lambda made: array_of(*made)),
        st.tuples(_LEAVES, inner).map(lambda made: map_of(*made)),
        members.map(lambda made: LogicalType(Id.STRUCT, children=made)),
        members.map(lambda made: union_of(*made)),
    )


TYPES = st.recursive(_LEAVES, _nested, max_leaves=5)


def column(kind: LogicalType, rows: int, chance: np.random.Generator, nulls: bool = True) -> Any:
    """An array of a type, as Arrow would have it from DuckDB."""
    valid = chance.random(rows) < 0.7 if nulls else np.ones(rows, bool)
    bitmap = None if valid.all() else _bitmap(valid)
    match kind.id:
        case Id.STRUCT:
            parts = [column(child, rows, chance) for _, child in kind.children]
            fields = [
                pa.field(name, part.type)
                for (name, _), part in zip(kind.children, parts, strict=True)
            ]
            return pa.StructArray.from_arrays(parts, fields=fields, mask=pa.array(~valid))
        case Id.UNION:
            # A union is NULL where its first member is; the others are not inserted as NULL.
            parts = [
                column(child, rows, chance, nulls and place == 0)
                for place, (_, child) in enumerate(kind.children[1:])
            ]
            tags = pa.array(chance.integers(0, len(parts), rows), pa.int8())
            names = [name for name, _ in kind.children[1:]]
            return pa.UnionArray.from_sparse(tags, parts, names)
        case Id.LIST | Id.MAP:
            lengths = np.where(valid, chance.integers(0, 4, rows), 0)
            ends = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
            size = int(lengths.sum())
            if kind.id is Id.LIST:
                child = column(kind.child, size, chance)
                arrow, children = pa.list_(pa.field("l", child.type)), [child]
            else:
                key, value = (each for _, each in kind.child.children)
                keys = column(key, size, chance, nulls=False)
                values = column(value, size, chance)
                arrow = pa.map_(keys.type, values.type)
                fields = [
                    pa.field("key", keys.type, nullable=False),
                    pa.field("value", values.type),
                ]
                children = [pa.StructArray.from_arrays([keys, values], fields=fields)]
            return pa.Array.from_buffers(
                arrow, rows, [bitmap, ends.buffers()[1]], children=children
            )
        case Id.ARRAY:
            child = column(kind.child, rows * kind.size, chance)
            arrow = pa.list_(pa.field("", child.type), kind.size)
            return pa.Array.from_buffers(arrow, rows, [bitmap], children=[child])
    return _leaf(kind, rows, chance, valid)


def _leaf(kind: LogicalType, rows: int, chance: np.random.Generator, valid: Any) -> Any:
    mask = ~valid
    match kind.id:
        case Id.BOOLEAN:
            return pa.array(chance.random(rows) < 0.5, mask=mask)
        case Id.FLOAT | Id.DOUBLE:
            return pa.array(chance.normal(size=rows), ARROW[kind.id], mask=mask)
        case Id.TIME | Id.TIME_NS:
            return pa.array(chance.integers(0, 86_400_000_000, rows), ARROW[kind.id], mask=mask)
        case Id.TIMESTAMP_S | Id.TIMESTAMP_MS:
            return pa.array(chance.integers(-(10**12), 10**12, rows), ARROW[kind.id], mask=mask)
        case Id.TIMETZ:
            made = chance.integers(0, 86_400_000_000, rows) << 24
            made |= chance.integers(0, 2 * 57_599, rows)
            raw = pa.py_buffer(made.astype("<i8").tobytes())
            found = pa.Array.from_buffers(pa.binary(8), rows, [_bitmap(valid), raw])
            return pa.ExtensionArray.from_storage(ARROW[kind.id], found)
        case Id.DECIMAL:
            most = min(10**kind.width, 2**62)
            numbers = chance.integers(-most + 1, most, rows)
            wide = np.stack([numbers, numbers >> 63], axis=1)
            arrow = pa.decimal128(kind.width, kind.scale)
            data = pa.py_buffer(np.ascontiguousarray(wide).tobytes())
            return pa.Array.from_buffers(arrow, rows, [_bitmap(valid), data])
        case Id.ENUM:
            places = pa.array(chance.integers(0, len(kind.values), rows), mask=mask)
            size = 8 if len(kind.values) <= 256 else 16
            indices = places.cast({8: pa.uint8(), 16: pa.uint16()}[size])
            return pa.DictionaryArray.from_arrays(indices, pa.array(kind.values))
        case Id.INTERVAL:
            made = np.zeros(rows, [("months", "<i4"), ("days", "<i4"), ("rest", "<i8")])
            made["months"] = chance.integers(-1000, 1000, rows)
            made["days"] = chance.integers(-1000, 1000, rows)
            made["rest"] = chance.integers(-(10**12), 10**12, rows) * 1000
            data = pa.py_buffer(made.tobytes())
            arrow = pa.month_day_nano_interval()
            return pa.Array.from_buffers(arrow, rows, [_bitmap(valid), data])
        case Id.VARCHAR:
            texts = [
                "ü" * int(size) if size < 5 else "x" * int(size) ** 3
                for size in chance.integers(0, 8, rows)
            ]
            return pa.array(np.array(texts, object), pa.string(), mask=mask)
        case Id.BLOB | Id.GEOMETRY | Id.BIT | Id.BIGNUM:
            return _bytes(kind, rows, chance, mask)
        case Id.UUID:
            arrow = pa.uuid()
        case _:
            arrow = ARROW[kind.id]
    data = pa.py_buffer(chance.bytes(rows * kind.value_bytes))
    is_extension = isinstance(arrow, pa.BaseExtensionType)
    storage = arrow.storage_type if is_extension else arrow
    found = pa.Array.from_buffers(storage, rows, [_bitmap(valid), data])
    return pa.ExtensionArray.from_storage(arrow, found) if is_extension else found


def _bytes(kind: LogicalType, rows: int, chance: np.random.Generator, mask: Any) -> Any:
    made = []
    for size in chance.integers(1, 9, rows).tolist():
        data = chance.bytes(size)
        if kind.id is Id.BIT:
            data = b"\x00" + data
        elif kind.id is Id.BIGNUM:
            data = (0x800000 | size).to_bytes(3, "big") + data
        made.append(data)
    values = pa.array(np.array([*made, b""], object)[:-1], pa.binary(), mask=mask)
    if kind.id in (Id.BIT, Id.BIGNUM):
        arrow = pa.opaque(pa.binary(), kind.id.name.lower(), "DuckDB")
        return pa.ExtensionArray.from_storage(arrow, values)
    return values


def _bitmap(valid: Any) -> Any:
    return pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
