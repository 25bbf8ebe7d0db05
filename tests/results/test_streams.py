"""Rows on their way from a query to its reader."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from queryard.results.streams import ResultStream

BATCH = pa.record_batch([pa.array(range(10))], names=["n"])


@pytest.mark.parametrize("end", ["enough", "finish", "fail", "close", "full"])
def test_a_reader_that_gathers_rows_waits_for_enough_or_for_the_end(end):
    stream = ResultStream(limit_bytes=BATCH.nbytes * (2 if end == "full" else 100))
    stream.start(BATCH.schema, ("BIGINT",))
    gathered = threading.Event()

    def gather() -> None:
        stream.gather(25, 1 << 20)
        gathered.set()

    thread = threading.Thread(target=gather)
    thread.start()
    stream.put(BATCH)
    assert not gathered.wait(0.02)
    if end in ("enough", "full"):
        stream.put(BATCH)
        if end == "enough":
            assert not gathered.wait(0.02)
            stream.put(BATCH)
    elif end == "fail":
        stream.fail(ValueError("it failed"))
    else:
        getattr(stream, end)()
    assert gathered.wait(20)
    thread.join()
    stream.gather(25, 1 << 20)  # it returns at once


def test_a_reader_that_gathers_in_vain_leaves_nothing_behind():
    stream = ResultStream()
    stream.start(BATCH.schema, ("BIGINT",))
    stream.put(BATCH)
    assert not stream.gather(25, 1 << 20, 0.01)
    assert stream._gathering == []
    stream.finish()
    assert stream.gather(25, 1 << 20, 0.01)


def test_rows_are_spent_once_all_were_taken_from_memory(tmp_path):
    stream = ResultStream()
    stream.start(BATCH.schema, ("BIGINT",))
    stream.put(BATCH)
    assert not stream.spent
    stream.finish()
    assert not stream.spent
    stream.next()
    assert stream.spent
    spilling = ResultStream(tmp_path / "rows.arrow")
    spilling.finish()
    assert spilling.drained
    assert not spilling.spent  # its file is to be removed
