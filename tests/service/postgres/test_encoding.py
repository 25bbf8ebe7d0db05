"""The encoders of many and of few rows give the bytes that a slow one gives, value by value."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.service.postgres import oids
from queryard.service.postgres.copy_options import CopyOut
from queryard.service.postgres.copying import CopyRows
from queryard.service.postgres.encoding import rows as encoding
from queryard.service.postgres.encoding.rows import COPY_ROW, Sent, encode_rows, pieces_of
from queryard.service.postgres.errors import PostgresError
from queryard.service.postgres.types import Column, WireType
from tests.service.postgres import row_reference


@pytest.fixture(autouse=True, scope="module", params=[0, encoding.FEW_CELLS])
def few_cells(request):
    """Batches here are small: all at once as if they were large, and cell by cell."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "FEW_CELLS", request.param)
        yield


_TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
_DAYS = st.dates(dt.date(1, 1, 3), dt.date(9999, 12, 29))
_MOMENTS = st.datetimes(dt.datetime(1, 1, 3), dt.datetime(9999, 12, 29))
_KINDS: list[tuple[int, pa.DataType, st.SearchStrategy[Any]]] = [
    (oids.BOOL, pa.bool_(), st.booleans()),
    (oids.INT2, pa.int8(), st.integers(-128, 127)),
    (oids.INT2, pa.uint8(), st.integers(0, 255)),
    (oids.INT4, pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (oids.INT4, pa.uint16(), st.integers(0, 2**16 - 1)),
    (oids.INT8, pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (oids.INT8, pa.uint32(), st.integers(0, 2**32 - 1)),
    (oids.OID, pa.int64(), st.integers(0, 2**32 - 1)),
    (oids.NUMERIC, pa.uint64(), st.integers(0, 2**64 - 1)),
    (oids.NUMERIC, pa.decimal128(38, 0), st.decimals(-(10**38) + 1, 10**38 - 1, places=0)),
    (oids.NUMERIC, pa.decimal128(9, 2), st.decimals(-9999999, 9999999, places=2)),
    (oids.NUMERIC, pa.decimal128(38, 37), st.decimals(-9, 9, places=37)),
    (oids.NUMERIC, pa.decimal128(18, 9), st.decimals(-(10**8), 10**8, places=9)),
    (oids.FLOAT4, pa.float32(), st.floats(width=32)),
    (oids.FLOAT8, pa.float64(), st.floats()),
    (oids.DATE, pa.date32(), _DAYS),
    (oids.TIME, pa.time64("us"), st.times()),
    (oids.TIMESTAMP, pa.timestamp("us"), _MOMENTS),
    (oids.TIMESTAMP, pa.timestamp("ms"), _MOMENTS.map(lambda m: m.replace(microsecond=7000))),
    (oids.TIMESTAMP, pa.timestamp("s"), _MOMENTS.map(lambda m: m.replace(microsecond=0))),
    (oids.TIMESTAMPTZ, pa.timestamp("us", "UTC"), _MOMENTS),
    (oids.TEXT, pa.string(), _TEXT),
    (oids.TEXT, pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["a", "", "bc"])),
    (oids.BYTEA, pa.binary(), st.binary(max_size=9)),
    (oids.UUID, pa.string(), st.uuids().map(str)),
]


@st.composite
def _batches(draw: st.DrawFn) -> tuple[Any, list[Sent]]:
    rows = draw(st.integers(0, 7))
    skipped = draw(st.integers(0, 2))
    columns, sents = [], []
    for _ in range(draw(st.integers(0, 4))):
        oid, kind, values = draw(st.sampled_from(_KINDS))
        if not draw(st.booleans()):
            values = st.none() | values
        form = draw(st.integers(0, 1))
        if oid in oids.ARRAYS and not pa.types.is_dictionary(kind) and draw(st.booleans()):
            oid, kind = oids.ARRAYS[oid], pa.list_(kind)
            values = st.none() | st.lists(values, max_size=3)
        drawn = draw(st.lists(values, min_size=rows + skipped, max_size=rows + skipped))
        columns.append(pa.array(drawn, kind).slice(skipped))
        sents.append(Sent(oid, form))
    names = [f"c{place}" for place in range(len(columns))]
    return pa.record_batch(columns, names) if columns else pa.record_batch([], []), sents


@given(_batches())
def test_rows_are_those_of_the_slow_encoder(drawn):
    batch, columns = drawn
    assert bytes(encode_rows(batch, columns)) == row_reference.rows(batch, columns)
    assert bytes(encode_rows(batch, columns, COPY_ROW)) == row_reference.rows(batch, columns, b"d")


def test_pieces_are_the_whole():
    batch = pa.record_batch([pa.array(range(40_000)), pa.array(["x" * 9] * 40_000)], ["a", "b"])
    columns = [Sent(oids.INT8, 1), Sent(oids.TEXT)]
    parts = b"".join(bytes(encode_rows(piece, columns)) for piece in pieces_of(batch))
    assert parts == row_reference.rows(batch, columns)


def _text_of(column: Any, oid: int, zone: str = "UTC") -> list[str | None]:
    return _values(encode_rows(pa.record_batch([column], ["c"]), [Sent(oid)], zone=zone))


def _values(data: Any) -> list[Any]:
    found, raw, at = [], bytes(data), 0
    while at < len(raw):
        length = int.from_bytes(raw[at + 7 : at + 11], "big", signed=True)
        found.append(None if length < 0 else raw[at + 11 : at + 11 + length].decode("latin-1"))
        at += 1 + int.from_bytes(raw[at + 1 : at + 5], "big")
    return found


def test_days_and_moments_that_arrow_cannot_write():
    days = pa.array([2**31 - 1, -(2**31) + 1, -735_160, 2_932_897, 0, None], pa.int32())
    dates = days.view(pa.date32())
    assert _text_of(dates, oids.DATE) == [
        *("infinity", "-infinity", "0044-03-15 BC", "10000-01-01", "1970-01-01", None),
    ]
    day = 86_400_000_000
    raw = pa.array([2**63 - 1, -(2**63) + 1, -735_160 * day + 1, 2_932_897 * day, 500_000, None])
    moments = raw.view(pa.timestamp("us"))
    assert _text_of(moments, oids.TIMESTAMP) == [
        *("infinity", "-infinity", "0044-03-15 00:00:00.000001 BC", "10000-01-01 00:00:00"),
        *("1970-01-01 00:00:00.5", None),
    ]
    binary = _values(encode_rows(pa.record_batch([moments], ["c"]), [Sent(oids.TIMESTAMP, 1)]))
    assert binary[:2] == ["\x7f" + "\xff" * 7, "\x80" + "\0" * 7]
    late = pa.array([86_400_000_000, 1], pa.int64()).view(pa.time64("us"))
    assert _text_of(late, oids.TIME) == ["24:00:00", "00:00:00.000001"]


@pytest.mark.parametrize("missing", [(), (0,), (0, 7, 199)])
def test_dates_that_lie_close_together(missing):
    days = [1 + place * 13 % 180 for place in range(200)]
    for place in missing:
        days[place] = None
    column = pa.array(days, pa.int32()).cast(pa.date32())
    columns = [Sent(oids.DATE), Sent(oids.DATE, 1)]
    batch = pa.record_batch([column, column], ["a", "b"])
    assert bytes(encode_rows(batch, columns)) == row_reference.rows(batch, columns)
    copied = CopyRows(CopyOut("", "csv", ",", "-"), (Column("a", WireType(oids.DATE)),), "UTC")
    (lines,) = copied.encode(pa.record_batch([column], ["a"]))
    written = [b"-" if day is None else str(day).encode() for day in column.to_pylist()]
    messages = [b"d" + (len(each) + 5).to_bytes(4, "big") + each + b"\n" for each in written]
    assert bytes(lines) == b"".join(messages)


def test_moments_in_a_zone():
    moments = pa.array(
        [dt.datetime(2024, 7, 1, 12), dt.datetime(2024, 1, 1, 0, 0, 0, 5), None],
        pa.timestamp("us", "UTC"),
    )
    berlin = ["2024-07-01 14:00:00+02", "2024-01-01 01:00:00.000005+01", None]
    assert _text_of(moments, oids.TIMESTAMPTZ, "Europe/Berlin") == berlin
    assert _text_of(moments, oids.TIMESTAMPTZ, "Asia/Kolkata")[0] == "2024-07-01 17:30:00+05:30"


def test_intervals():
    spans = pa.array([(14, 3, 3_723_500_000_000), None, (0, 0, 0)], pa.month_day_nano_interval())
    assert _text_of(spans, oids.INTERVAL) == ["1 year 2 mons 3 days 01:02:03.5", None, "00:00:00"]
    batch = pa.record_batch([spans], ["c"])
    sent = [Sent(oids.INTERVAL, 1)]
    assert bytes(encode_rows(batch, sent)) == row_reference.rows(batch, sent)


def test_numbers_that_come_as_texts():
    column = pa.array(["340282366920938463463374607431768211455", "-1", "0", None])
    batch, sent = pa.record_batch([column], ["c"]), [Sent(oids.NUMERIC, 1)]
    assert bytes(encode_rows(batch, sent)) == row_reference.rows(batch, sent)
    assert _text_of(column, oids.NUMERIC)[0] == "340282366920938463463374607431768211455"


def test_a_text_with_the_byte_0_is_refused_and_one_under_a_null_is_not():
    with pytest.raises(PostgresError, match="0x00") as caught:
        _text_of(pa.array(["a", "b\0c"]), oids.TEXT)
    assert caught.value.sqlstate == "22021"
    hidden = pa.StringArray.from_buffers(
        2, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"a\0"), pa.py_buffer(b"\1")
    )
    assert _text_of(hidden, oids.TEXT) == ["a", None]


def test_a_binary_form_that_cannot_be_given_is_refused():
    with pytest.raises(PostgresError) as caught:
        encode_rows(pa.record_batch([pa.array([{"a": 1}])], ["c"]), [Sent(oids.JSON, 1)])
    assert caught.value.sqlstate == "0A000"


def test_decimals_are_written_without_exponents():
    column = pa.array([Decimal("0.000000001"), Decimal("-12.5")], pa.decimal128(18, 9))
    assert _text_of(column, oids.NUMERIC) == ["0.000000001", "-12.500000000"]
