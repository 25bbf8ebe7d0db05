"""Rows that no reader has taken count for their token, and beyond its limit queries pause."""

from __future__ import annotations

import pyarrow as pa
import pytest

from queryard.results.errors import NoRoom
from queryard.results.streams import ResultStream
from queryard.service.config import ServiceLimits
from queryard.service.limits import Usage


def batch(rows: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(range(rows), pa.int64())})


def a_stream(usage: Usage, overflow=None) -> ResultStream:
    stream = ResultStream(overflow, account=usage.account("ann"))
    stream.start(batch(0).schema, ("BIGINT",))
    return stream


def test_streams_count_until_they_are_read_or_dropped():
    usage = Usage(ServiceLimits())
    read, closed, failed = streams = [a_stream(usage) for _ in range(3)]
    for stream in streams:
        stream.put(batch(100))
    assert usage.held_bytes == usage.waiting_bytes == 3 * 800
    read.next()
    closed.close()
    failed.fail(ValueError("no"))
    assert usage.held_bytes == usage.waiting_bytes == 0
    closed.put(batch(100))
    assert usage.held_bytes == 0


def test_beyond_the_limit_a_stream_waits_for_its_reader_with_one_batch():
    usage = Usage(ServiceLimits(result_bytes=1000))
    first, second = a_stream(usage), a_stream(usage)
    first.put(batch(100))
    assert not first.full
    second.put(batch(100))
    assert second.full
    second.next()
    assert not second.full
    first.put(batch(100))
    assert first.full
    first.next()
    assert not first.full, "there is room again"


def test_all_tokens_together_have_a_memory_for_it():
    usage = Usage(ServiceLimits(), waiting_bytes=1000)
    streams = [ResultStream(account=usage.account(f"token {n}")) for n in range(3)]
    for stream in streams:
        stream.start(batch(0).schema, ("BIGINT",))
        stream.put(batch(100))
    assert [stream.full for stream in streams] == [False, True, True]


def test_what_spills_counts_and_fails_beyond_the_limit(tmp_path):
    usage = Usage(ServiceLimits(result_bytes=3000), waiting_bytes=1000)
    told: list[NoRoom] = []
    stream = a_stream(usage, tmp_path / "rows")
    stream.on_refused = told.append
    for _ in range(4):
        stream.put(batch(100))
    assert not stream.full
    assert usage.waiting_bytes < usage.held_bytes == 3200
    stream.put(batch(100))
    assert len(told) == 1
    with pytest.raises(NoRoom, match="raise `result`"):
        stream.next()
    assert usage.held_bytes == usage.waiting_bytes == 0
    assert list(tmp_path.iterdir()) == []


def test_rows_come_back_from_a_file_and_count_no_more(tmp_path):
    usage = Usage(ServiceLimits(), waiting_bytes=1000)
    stream = a_stream(usage, tmp_path / "rows")
    for _ in range(5):
        stream.put(batch(100))
    stream.finish()
    assert sum(each.num_rows for each in stream) == 500
    assert usage.held_bytes == usage.waiting_bytes == 0
