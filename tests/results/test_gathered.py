"""A reader that takes many rows together is told once, as it is woken once."""

from __future__ import annotations

import pyarrow as pa
import pytest

from queryard.results.streams import ResultStream

SCHEMA = pa.schema([("n", pa.int64())])


def batch(rows: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(range(rows), pa.int64())], schema=SCHEMA)


def test_a_reader_is_told_when_so_many_rows_have_come():
    stream, told = ResultStream(), []
    stream.start(SCHEMA, ("BIGINT",))
    stream.when_gathered(5, 1 << 20, lambda: told.append("rows"))
    stream.when_gathered(100, 40, lambda: told.append("bytes"))
    stream.put(batch(4))
    assert told == []
    stream.put(batch(2))
    assert sorted(told) == ["bytes", "rows"]
    stream.when_gathered(6, 1 << 20, lambda: told.append("at once"))
    stream.put(batch(1))
    assert told[2:] == ["at once"]


@pytest.mark.parametrize("end", ["finish", "fail", "close"])
def test_a_reader_is_told_when_no_more_rows_come(end):
    stream, told = ResultStream(), []
    stream.when_gathered(5, 1 << 20, lambda: told.append(True))
    if end == "fail":
        stream.fail(ValueError("no"))
    else:
        getattr(stream, end)()
    assert told == [True]
