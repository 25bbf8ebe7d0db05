"""Rows on their way from a query to its reader."""

from __future__ import annotations

import queue
import threading

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@pytest.mark.parametrize("spills", [False, True])
def test_rows_are_taken_back_until_a_reader_has_some(tmp_path, spills):
    stream = ResultStream(tmp_path / "rows" if spills else None, limit_bytes=BATCH.nbytes)
    told: list[str] = []
    stream.on_full = lambda: told.append("full")
    stream.on_room = lambda: told.append("room")
    for _ in range(2):
        stream.start(BATCH.schema, ("BIGINT",))
        stream.put(BATCH)
        if spills:
            stream.put(BATCH)
        assert stream.take_back()
        assert (stream.rows, stream.full) == (0, False)
        assert not (tmp_path / "rows").exists()
    assert told == [] if spills else ["full", "room"] * 2
    stream.put(BATCH)
    assert stream.next(1).equals(BATCH)
    assert not stream.take_back()
    stream.finish()
    assert stream.next(1) is None


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


@given(steps=st.lists(st.booleans(), max_size=60), limit=st.integers(0, 3))
def test_what_spills_is_read_in_its_order_while_more_is_written(tmp_path_factory, steps, limit):
    file = tmp_path_factory.mktemp("rows") / "rows.arrow"
    stream = ResultStream(file, limit_bytes=limit * BATCH.nbytes)
    stream.start(BATCH.schema, ("BIGINT",))
    put = read = 0
    for writes in steps:
        if writes:
            stream.put(pa.record_batch([pa.array([put] * 10)], names=["n"]))
            put += 1
        elif read < put:
            told = []
            stream.when_more(lambda told=told: told.append(True))
            assert told, "there are rows"
            assert stream.next(0.0).column(0).to_pylist() == [read] * 10
            read += 1
        assert not stream.full
        assert file.exists() == (stream._file.batches > 0)
    stream.finish()
    assert [batch.column(0)[0].as_py() for batch in stream] == list(range(read, put))
    assert stream.drained
    assert not file.exists()


def test_a_reader_that_waits_has_rows_that_spill_as_they_come(tmp_path):
    stream = ResultStream(tmp_path / "rows.arrow", limit_bytes=0)
    stream.start(BATCH.schema, ("BIGINT",))
    taken: queue.SimpleQueue[int] = queue.SimpleQueue()
    reader = threading.Thread(target=lambda: [taken.put(batch.num_rows) for batch in stream])
    reader.start()
    for _ in range(3):
        stream.put(BATCH)
        assert taken.get(timeout=20) == 10
    stream.finish()
    reader.join(20)
