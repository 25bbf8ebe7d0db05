"""Rows of every type come back as they were sent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.service.quack.errors import CannotSend, Malformed
from queryard.service.quack.v1.chunks import CHUNK_ROWS, ChunkEncoder
from queryard.service.quack.v1.codec import CodecV1
from queryard.service.quack.v1.decoding import read_chunk, read_vector
from queryard.service.quack.v1.type_names import type_of
from queryard.service.quack.v1.types import (
    VARIANT,
    Id,
    LogicalType,
    list_of,
    read_type,
    union_of,
    write_type,
)
from queryard.service.quack.wire import END, Reader, field, signed, text, unsigned
from tests.service.quack.columns import TYPES, column

INTEGER = LogicalType(Id.INTEGER)


def sent(kind: LogicalType, values: Any) -> list[bytes]:
    """The chunks of one column."""
    batch = pa.record_batch([values], names=["c0"])
    return [b"".join(chunk) for chunk in ChunkEncoder([kind]).chunks(batch)]


def received(data: bytes) -> tuple[LogicalType, Any]:
    reader = Reader(data)
    (kind,), batch = read_chunk(reader)
    reader.done()
    batch.validate()
    return kind, batch.column(0)


@given(TYPES, st.integers(0, 70), st.integers(0, 2**32), st.integers(0, 20))
def test_columns_come_back_as_they_were_sent(kind, rows, seed, start):
    values = column(kind, rows, np.random.default_rng(seed)).slice(start)
    chunks = sent(kind, values)
    assert len(chunks) == (1 if len(values) else 0)
    for data in chunks:
        again, found = received(data)
        assert again == kind
        (data,) = sent(kind, found)
        assert sent(kind, received(data)[1]) == [data]
        if not _has_moments(kind):
            assert str(found.to_pylist()) == str(values.to_pylist())


# Python's moments do not reach as far as DuckDB's.
_MOMENTS = {
    *(Id.DATE, Id.TIMESTAMP_S, Id.TIMESTAMP_MS, Id.TIMESTAMP, Id.TIMESTAMP_NS, Id.TIMESTAMPTZ)
}


def _has_moments(kind: LogicalType) -> bool:
    return kind.id in _MOMENTS or any(_has_moments(child) for _, child in kind.children)


@given(TYPES)
def test_types_come_back_as_they_were_sent(kind):
    reader = Reader(write_type(kind))
    assert read_type(reader) == kind
    reader.done()


def test_many_rows_are_cut_into_chunks():
    chunks = sent(INTEGER, pa.array(range(5000), pa.int32()))
    found = [received(chunk)[1].to_pylist() for chunk in chunks]
    assert [len(each) for each in found] == [CHUNK_ROWS, CHUNK_ROWS, 5000 - 2 * CHUNK_ROWS]
    assert [value for each in found for value in each] == list(range(5000))


def test_nothing_is_told_of_what_lies_where_null_is():
    """What lies there may be left from the query of another tenant."""
    data = pa.py_buffer(np.array([1, 0x5EC2E7, 3], "<i4").tobytes())
    values = pa.Array.from_buffers(pa.int32(), 3, [pa.py_buffer(b"\x05"), data])
    assert b"\xe7\xc2" not in sent(INTEGER, values)[0]


# --- other forms of vectors, which clients send --------------------------------------------------


def vector(kind: LogicalType, rows: int, *pieces: bytes) -> Any:
    reader = Reader(b"".join([*pieces, END]))
    found = read_vector(reader, kind, rows)
    reader.end()
    reader.done()
    return found


def flat(*values: int) -> bytes:
    data = np.array(values, "<i4").tobytes()
    return field(100) + b"\x00" + field(102) + text(data)


def test_a_constant_a_dictionary_and_a_sequence():
    constant = vector(INTEGER, 3, field(90) + b"\x02", flat(7))
    assert constant.to_pylist() == [7, 7, 7]
    places = text(np.array([1, 0, 1], "<u4").tobytes())
    pieces = [field(90) + b"\x03", field(91) + places, field(92) + unsigned(2), flat(5, 6)]
    assert vector(INTEGER, 3, *pieces).to_pylist() == [6, 5, 6]
    pieces = [field(90) + b"\x04", field(91) + signed(-2), field(92) + signed(3)]
    assert vector(INTEGER, 3, *pieces).to_pylist() == [-2, 1, 4]


def test_lists_that_overlap_or_leave_gaps():
    entries = [(2, 1), (0, 2), (0, 2)]
    written = b"".join(
        field(100) + unsigned(start) + field(101) + unsigned(size) + END for start, size in entries
    )
    pieces = [field(100) + b"\x00", field(104) + unsigned(4), field(105) + unsigned(3), written]
    found = vector(list_of(INTEGER), 3, *pieces, field(106), flat(1, 2, 3, 4), END)
    assert found.to_pylist() == [[3], [1, 2], [1, 2]]


def test_a_constant_within_a_list_does_not_make_more_rows_than_a_message_may():
    pieces = [field(100) + b"\x00", field(104) + unsigned(1 << 40)]
    with pytest.raises(Malformed, match="more than"):
        vector(list_of(INTEGER), 1, *pieces)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Id.TIME, -1),
        (Id.TIME_NS, 86_400_000_000_001),
        (Id.TIMETZ, 2 * 57_599 + 1),
        (Id.TIMETZ, -1),
        (Id.TIMESTAMP_S, 2**62),
        (Id.TIMESTAMP_MS, -(2**63)),
    ],
)
def test_moments_that_there_are_none_of(kind, value):
    """DuckDB would take them, and its instance would fail on them later."""
    data = field(100) + b"\x00" + field(102) + text(value.to_bytes(8, "little", signed=True))
    with pytest.raises(Malformed, match="none that there is"):
        vector(LogicalType(kind), 1, data)


@pytest.mark.parametrize("kind", [Id.TIMESTAMP_S, Id.TIMESTAMP_MS, Id.TIMESTAMP])
def test_moments_without_end(kind):
    raw = np.array([2**63 - 1, -(2**63) + 1], "<i8").tobytes()
    found = vector(LogicalType(kind), 2, field(100) + b"\x00" + field(102) + text(raw))
    assert found.view(pa.int64()).to_pylist() == [2**63 - 1, -(2**63) + 1]


@pytest.mark.parametrize(
    ("kind", "value"), [(Id.BIT, b""), (Id.BIT, b"\x09a"), (Id.BIGNUM, b"abc")]
)
def test_bytes_that_duckdb_would_misread(kind, value):
    with pytest.raises(Malformed, match="no form that it can have"):
        vector(LogicalType(kind), 1, field(100) + b"\x00" + field(102) + b"\x01" + text(value))


# --- values that have no form --------------------------------------------------------------------


def test_intervals_that_arrow_has_no_room_for():
    """Some of DuckDB's microseconds do not fit into nanoseconds: another time would come."""
    kind = LogicalType(Id.INTERVAL)
    raw = np.array([(0, 0, 9 * 10**18)], [("months", "<i4"), ("days", "<i4"), ("rest", "<i8")])
    with pytest.raises(CannotSend, match=r"INTERVAL whose time is more than 292 years .* months"):
        vector(kind, 1, field(100) + b"\x00" + field(102) + text(raw.tobytes()))
    with np.errstate(over="ignore"):
        raw["rest"] *= 1000
    found = pa.py_buffer(raw.tobytes())
    arrow = pa.month_day_nano_interval()
    with pytest.raises(CannotSend, match=r"INTERVAL whose time .* cast it to VARCHAR"):
        sent(kind, pa.Array.from_buffers(arrow, 1, [None, found]))
    null = pa.Array.from_buffers(arrow, 1, [pa.py_buffer(b"\x00"), found])
    assert received(sent(kind, null)[0])[1].to_pylist() == [None]


@pytest.mark.parametrize("tag", [0, 1])
def test_a_union_whose_member_is_null_is_not_inserted_as_null(tag):
    kind = union_of(("n", INTEGER), ("m", INTEGER))
    tags = field(100) + b"\x00" + field(102) + text(bytes([tag]))
    none = field(100) + b"\x01" + field(101) + text(bytes(8)) + field(102) + text(bytes(4))
    parts = field(103) + unsigned(3) + b"".join(part + END for part in (tags, none, none))
    with pytest.raises(CannotSend, match=r"UNION whose member is NULL .* yard.query\('INSERT …'\)"):
        vector(kind, 1, field(100) + b"\x00" + parts)
    is_null = field(100) + b"\x01" + field(101) + text(bytes(8))
    assert vector(kind, 1, is_null + parts).to_pylist() == [None]


def test_variants_are_not_inserted():
    with pytest.raises(CannotSend, match=r"VARIANT cannot be inserted; use JSON"):
        vector(VARIANT, 1, field(100) + b"\x00")


@pytest.mark.parametrize("name", ["GEOMETRY('OGC:CRS84')", "STRUCT(a GEOMETRY('x')[])"])
def test_geometries_with_a_coordinate_system_are_not_sent_without_it(name):
    with pytest.raises(CannotSend, match=r"GEOMETRY with a coordinate system .* cast it"):
        type_of(name)
    metadata = {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": '{"crs": {}}'}
    inner = pa.field("l", pa.binary(), metadata=metadata)
    for schema in (pa.schema([inner]), pa.schema([pa.field("c", pa.list_(inner))])):
        with pytest.raises(CannotSend, match="GEOMETRY with a coordinate system"):
            CodecV1().columns(["c"], ["GEOMETRY[]"], schema)
    info = field(100) + unsigned(13) + field(200) + field(100) + text("OGC:CRS84") + END + END
    reader = Reader(field(100) + unsigned(Id.GEOMETRY) + field(101) + b"\x01" + info + END)
    with pytest.raises(CannotSend, match=r"GEOMETRY with a coordinate system \(OGC:CRS84\)"):
        read_type(reader)


# --- names of types ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("TIMESTAMP WITH TIME ZONE", LogicalType(Id.TIMESTAMPTZ)),
        ("TIME WITH TIME ZONE[]", list_of(LogicalType(Id.TIMETZ))),
        ("ENUM('it''s', 'b, c')", LogicalType(Id.ENUM, values=("it's", "b, c"))),
        ("JSON", LogicalType(Id.VARCHAR, alias="JSON")),
        ("VARIANT", VARIANT),
        (
            'STRUCT("a b" INTEGER, c DECIMAL(4,1)[])',
            LogicalType(
                Id.STRUCT,
                children=(
                    ("a b", INTEGER),
                    ("c", list_of(LogicalType(Id.DECIMAL, width=4, scale=1))),
                ),
            ),
        ),
        ("NULL", INTEGER),
    ],
)
def test_names_of_types(name, kind):
    assert type_of(name) == kind


def test_nested_names_of_types():
    found = type_of("MAP(VARCHAR, STRUCT(a INTEGER[3][], b UNION(x INTEGER, y DATE)))[]")
    value = found.child.child.children[1][1]
    assert [name for name, _ in value.children] == ["a", "b"]
    assert value.children[0][1].child.size == 3
    assert [name for name, _ in value.children[1][1].children] == ["", "x", "y"]


def test_types_that_users_made_are_known_by_what_they_are_made_of():
    assert type_of("money", pa.decimal128(10, 2)) == LogicalType(Id.DECIMAL, width=10, scale=2)
    nested = type_of("STRUCT(a money)[]", pa.list_(pa.struct([("a", pa.decimal128(10, 2))])))
    assert nested.child.children[0][1].width == 10
    assert type_of("odd (name", pa.int32()) == INTEGER


@pytest.mark.parametrize("name", ["TIMESTAMPTZ_NS", "STRUCT()", "money", "TUPLE(INTEGER)"])
def test_types_that_clients_of_duckdb_1_5_do_not_know(name):
    with pytest.raises(CannotSend, match="not known to clients of DuckDB"):
        type_of(name)


@pytest.mark.parametrize("start", [0, 3])
def test_columns_of_many_chunks_keep_their_rows_and_nulls(start):
    rows = 9 * CHUNK_ROWS + 17
    numbers = [None if n % 4099 == 5 else n for n in range(rows)]
    long = dict.fromkeys(range(0, rows, 997), "x" * 200)
    texts = [None if n % 3001 == 7 else long.get(n, "é" * (n % 5)) for n in range(rows)]
    kinds = [LogicalType(Id.BIGINT), LogicalType(Id.VARCHAR), list_of(INTEGER)]
    columns = [
        pa.array(numbers, pa.int64()),
        pa.array(texts, pa.string()),
        pa.array([[n] for n in range(rows)], pa.list_(pa.int32())),
    ]
    batch = pa.record_batch(columns, names=["n", "t", "l"]).slice(start)
    found = []
    for chunk in ChunkEncoder(kinds).chunks(batch):
        _, read = read_chunk(Reader(b"".join(chunk)))
        assert read.num_rows <= CHUNK_ROWS
        found.append(read)
    whole = pa.Table.from_batches(found)
    for got, sent in zip(whole.columns, batch.columns, strict=True):
        assert got.to_pylist() == sent.to_pylist()
