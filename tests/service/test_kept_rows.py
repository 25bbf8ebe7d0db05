"""Rows that are kept come back by position, from memory and from files, as far as there is room."""

from __future__ import annotations

import threading
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.results.errors import QueryFailed
from queryard.results.streams import ResultStream
from queryard.service import kept_rows
from queryard.service.kept_rows import KeptRows
from queryard.service.problems import RowsGone


class Room:
    """Room for so many bytes, of which some are in memory."""

    def __init__(self, folder: Path, most_bytes: int, memory_bytes: int) -> None:
        self.folder = folder
        self.most_bytes = most_bytes
        self.memory_bytes = memory_bytes
        self.held = self.in_memory = 0

    def make_room(self, size_bytes: int, rows: KeptRows, position: int) -> None:
        if self.held + size_bytes > self.most_bytes:
            rows.free_before(position)
        self.held += size_bytes

    def freed(self, size_bytes: int) -> None:
        self.held -= size_bytes

    def take_memory(self, size_bytes: int) -> bool:
        if self.in_memory + size_bytes > self.memory_bytes:
            return False
        self.in_memory += size_bytes
        return True

    def give_memory(self, size_bytes: int) -> None:
        self.in_memory -= size_bytes

    def new_file(self) -> Path:
        return self.folder / uuid.uuid4().hex


def batch(first: int, rows: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(range(first, first + rows), pa.int64())})


def values(batches) -> list[int]:
    return [n for each in batches for n in each.column(0).to_pylist()]


SIZES = st.lists(st.integers(0, 50), max_size=8)


@given(
    sizes=SIZES,
    memory=st.sampled_from([0, 200, 10**9]),
    reads=st.lists(st.tuples(st.integers(0, 300), st.integers(1, 500)), max_size=10),
    taken=st.integers(0, 8),
)
def test_any_rows_can_be_read_again_in_any_order(tmp_path_factory, sizes, memory, reads, taken):
    folder = tmp_path_factory.mktemp("kept")
    room = Room(folder, 10**9, memory)
    output = ResultStream()
    rows = KeptRows(output, room)
    output.start(batch(0, 0).schema, ("BIGINT",))
    total = sum(sizes)
    given_so_far = 0
    for place, size in enumerate(sizes):
        output.put(batch(given_so_far, size))
        given_so_far += size
        if place == taken:
            rows.read(0)
    output.finish()
    for position, most_bytes in reads:
        piece = rows.read(position, most_bytes)
        assert values(piece.batches) == list(range(position, piece.next))[: piece.next - position]
        assert piece.batches or piece.ended or position >= total
        assert piece.next <= max(position, total)
    position, found = 0, []
    while True:
        piece = rows.read(position, 100)
        found += values(piece.batches)
        position = piece.next
        if piece.ended:
            break
    assert found == list(range(total))
    rows.close("done")
    assert room.held == room.in_memory == 0
    assert list(folder.iterdir()) == []
    with pytest.raises(RowsGone, match="done"):
        rows.read(0)


def test_rows_are_taken_only_when_a_reader_wants_them(tmp_path):
    output = ResultStream(limit_bytes=100)
    rows = KeptRows(output, Room(tmp_path, 10**9, 10**9))
    output.start(batch(0, 0).schema, ("BIGINT",))
    output.put(batch(0, 20))
    assert output.full
    assert rows.read(0).batches
    assert not output.full
    assert rows.read(20).later


def test_without_room_the_oldest_rows_go(tmp_path):
    output = ResultStream()
    rows = KeptRows(output, Room(tmp_path, 1000, 500))
    output.start(batch(0, 0).schema, ("BIGINT",))
    for place in range(10):
        output.put(batch(50 * place, 50))
    output.finish()
    position = 0
    while not (piece := rows.read(position, 100)).ended:
        position = piece.next
    assert 0 < rows.first < 500
    with pytest.raises(RowsGone, match=f"rows before {rows.first}"):
        rows.read(0)
    assert values(rows.read(rows.first, 1).batches)[0] == rows.first


class TightRoom(Room):
    """Room that is made as a server makes it."""

    def make_room(self, size_bytes: int, rows: KeptRows, position: int) -> None:
        rows.free_for(position, lambda: self.held + size_bytes <= self.most_bytes)
        self.held += size_bytes


@pytest.mark.parametrize("delivered", [0, 300])
def test_what_was_sent_last_is_kept_until_a_client_asks_for_more(tmp_path, monkeypatch, delivered):
    monkeypatch.setattr("queryard.service.kept_rows.BACK_BYTES", 1600)
    output, room = ResultStream(), TightRoom(tmp_path, 400, 10**9)
    rows = KeptRows(output, room)
    output.start(batch(0, 0).schema, ("BIGINT",))
    for place in range(10):
        output.put(batch(50 * place, 50))
    output.finish()
    rows.asked(delivered)
    position = 0
    while not (piece := rows.read(position, 100)).ended:
        position = piece.next
    # Four batches of 400 bytes were sent last; of those that a client has, none is needed.
    assert rows.first == max(250, delivered)
    assert room.held == 8 * (500 - rows.first)
    assert values(rows.read(rows.first, 10**6).batches) == list(range(rows.first, 500))


def test_the_error_of_a_query_is_met(tmp_path):
    output = ResultStream()
    rows = KeptRows(output, Room(tmp_path, 1000, 500))
    assert rows.schema is None
    output.fail(QueryFailed("no"))
    with pytest.raises(QueryFailed, match="no"):
        rows.read(0)
    with pytest.raises(QueryFailed):
        _ = rows.schema


def test_calls_come_once_there_is_more():
    output, heard = ResultStream(), []
    output.when_more(lambda: heard.append("rows"))
    output.start(batch(0, 0).schema, ("BIGINT",))
    assert heard == []
    output.put(batch(0, 1))
    assert heard == ["rows"]
    output.when_more(lambda: heard.append("at once"))
    assert heard == ["rows", "at once"]
    output.next()
    output.when_more(lambda: heard.append("end"))
    output.finish()
    assert heard[-1] == "end"


def test_rows_and_the_end_that_come_soon_are_read_together(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_rows, "TOGETHER_S", 60.0)
    output = ResultStream()
    rows = KeptRows(output, Room(tmp_path, 10**9, 10**9))
    output.start(batch(0, 0).schema, ("BIGINT",))
    output.put(batch(0, 3))
    gathers = threading.Event()
    plain = output.gather

    def gather(*given):
        gathers.set()
        return plain(*given)

    monkeypatch.setattr(output, "gather", gather)

    def end() -> None:
        assert gathers.wait(20)
        output.put(batch(3, 2))
        output.finish()

    ending = threading.Thread(target=end)
    ending.start()
    piece = rows.read_together(0, 1000, 1 << 20)
    ending.join()
    assert (values(piece.batches), piece.ended) == ([0, 1, 2, 3, 4], True)


def test_rows_that_are_many_do_not_wait_for_further_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_rows, "TOGETHER_S", 600.0)
    output = ResultStream()
    rows = KeptRows(output, Room(tmp_path, 10**9, 10**9))
    output.start(batch(0, 0).schema, ("BIGINT",))
    output.put(batch(0, 3))
    piece = rows.read_together(0, 3, 1 << 20)
    assert (values(piece.batches), piece.ended) == ([0, 1, 2], False)
