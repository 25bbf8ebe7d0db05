"""The store keeps what fits and spills the rest; exchanges bring partitions together."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from queryard.engine.errors import QueryFailed
from queryard.engine.staged.exchange import Exchange, Partitions, Piece, PieceLost, Superseded
from queryard.engine.staged.file_exchange import FileExchange
from queryard.engine.staged.local_exchange import LocalExchange
from queryard.engine.staged.store import MissingRows, Store

EXCHANGES: dict[str, Callable[[Path], Exchange]] = {
    "memory": lambda folder: LocalExchange(1e9, folder),
    "spilled": lambda folder: LocalExchange(0, folder),
    "files": lambda folder: FileExchange(folder, "here"),
}


@pytest.fixture(params=EXCHANGES.values(), ids=EXCHANGES.keys())
def exchange(request: pytest.FixtureRequest, tmp_path: Path) -> Exchange:
    made: Exchange = request.param(tmp_path)
    return made


def sent(*parts: int) -> pa.Table:
    """Rows that go to these partitions, numbered."""
    rows = list(range(len(parts)))
    return pa.table(
        {"row": rows, "text": [f"r{i}" for i in rows], "part": pa.array(parts, pa.uint8())}
    )


def numbers(table: pa.Table) -> list[int]:
    return sorted(table.column("row").to_pylist())


def batch(size: int) -> pa.RecordBatch:
    return pa.record_batch({"x": pa.array(range(size), pa.int64())})


def keep(store: Store, key: str | int, *batches: pa.RecordBatch) -> None:
    with store.open(key, batches[0].schema) as writer:
        for each in batches:
            writer.append(each)
        writer.commit()


def put(
    exchange: Exchange, key: str, table: pa.Table, partitions: int = 0, attempt: int = 1
) -> tuple[Piece, ...]:
    parts = Partitions("part", partitions) if partitions else None
    with exchange.open(key, attempt, table.schema, parts) as writer:
        for each in table.to_batches():
            writer.append(each)
        return writer.commit()


def part(pieces: tuple[Piece, ...], number: int) -> Piece:
    found = [piece for piece in pieces if piece.part == number]
    return found[0] if found else pieces[0]._replace(part=number).without_rows()


def files(folder: Path) -> list[Path]:
    return list(folder.rglob("*.arrow"))


def test_every_row_arrives_once_at_its_partition(exchange: Exchange) -> None:
    one = put(exchange, "q/j:m0", sent(2, 0, 2, 0), 3)
    two = put(exchange, "q/j:m1", sent(0, 2), 3)
    assert [(piece.part, piece.rows) for piece in one + two] == [(0, 2), (2, 2), (0, 1), (2, 1)]
    found = [exchange.fetch([part(one, p), part(two, p)]) for p in range(3)]
    assert [numbers(table) for table in found] == [[0, 1, 3], [], [0, 1, 2]]
    assert found[1].schema.names == ["row", "text"]


def test_rows_stay_in_their_order(exchange: Exchange) -> None:
    pieces = put(exchange, "q/j:m0", sent(1, 0, 1, 0, 1), 2)
    assert exchange.fetch([part(pieces, 1)]).column("row").to_pylist() == [0, 2, 4]
    (whole,) = put(exchange, "q/j:m1", sent(1, 0, 1), 0)
    assert exchange.fetch([whole]).column("part").to_pylist() == [1, 0, 1]


def test_putting_again_replaces(exchange: Exchange) -> None:
    put(exchange, "q/j:m0", sent(0, 1, 1), 2)
    again = put(exchange, "q/j:m0", sent(0, 1), 2, attempt=2)
    assert [exchange.fetch([part(again, p)]).num_rows for p in range(2)] == [1, 1]


def test_an_attempt_that_comes_late_replaces_nothing(exchange: Exchange, tmp_path: Path) -> None:
    rows = sent(0, 1).to_batches()[0]
    with exchange.open("q/j:m0", 1, rows.schema, Partitions("part", 2)) as early:
        early.append(rows)
        pieces = put(exchange, "q/j:m0", sent(1, 1, 1), 2, attempt=10)
        with pytest.raises(Superseded, match="attempt 1 of q/j:m0 came after attempt 10"):
            early.commit()
    assert numbers(exchange.fetch(pieces)) == [0, 1, 2]
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) <= 1  # the later one's


def test_no_rows_still_have_columns(exchange: Exchange) -> None:
    pieces = put(exchange, "q/j:m0", sent(), 4)
    assert [piece.rows for piece in pieces] == [0]
    assert exchange.fetch([part(pieces, 3)]).schema.names == ["row", "text"]
    (whole,) = put(exchange, "q/j:m1", sent())
    assert exchange.fetch([whole]).schema.names == ["row", "text", "part"]


def test_what_is_gone_is_named(exchange: Exchange) -> None:
    one = put(exchange, "q/j:m0", sent(0, 1), 2)
    two = put(exchange, "q/j:m1", sent(0, 1), 2)
    exchange.drop(["q/j:m1", "q/never there"])
    assert numbers(exchange.fetch([one[0]])) == [0]
    with pytest.raises(PieceLost, match=f"q/j:m1 are gone from {exchange.place}") as caught:
        exchange.fetch([one[0], two[0]])
    assert (caught.value.keys, caught.value.holders) == (("q/j:m1",), (exchange.place,))


def test_rows_that_exist_already_are_published(exchange: Exchange) -> None:
    frame = pa.table({"k": [1, None, 3]})
    piece = exchange.publish("q/frame", frame.slice(1))
    assert (piece.rows, exchange.fetch([piece]).to_pylist()) == (2, [{"k": None}, {"k": 3}])


def test_published_rows_are_not_copied_or_counted(tmp_path: Path) -> None:
    exchange = LocalExchange(0, tmp_path)
    frame = pa.table({"k": range(1000)})
    piece = exchange.publish("q/frame", frame)
    (chunk,) = exchange.fetch([piece]).column("k").chunks
    assert chunk.buffers()[1].address == frame.column("k").chunk(0).buffers()[1].address
    assert not files(tmp_path)


def test_files_of_one_place_are_read_at_another(tmp_path: Path) -> None:
    here, there = FileExchange(tmp_path, "here"), FileExchange(tmp_path, "there")
    pieces = put(here, "q/j:m0", sent(0, 1, 1), 2)
    assert numbers(there.fetch([part(pieces, 1)])) == [1, 2]
    shutil.rmtree(tmp_path / "here")
    with pytest.raises(PieceLost, match="gone from here"):
        there.fetch(pieces)


@pytest.mark.parametrize("kind", ["spilled", "files"])
def test_many_rows_survive_slabs_and_files(tmp_path: Path, kind: str) -> None:
    count = (1 << 20) + 77
    exchange = EXCHANGES[kind](tmp_path)
    parts = pa.array([i % 7 for i in range(count)], pa.uint8())
    pieces = put(exchange, "q/j:m0", pa.table({"row": pa.array(range(count)), "part": parts}), 7)
    found = [exchange.fetch([part(pieces, p)]).column("row").to_pylist() for p in range(7)]
    assert sorted(row for rows in found for row in rows) == list(range(count))
    assert all(row % 7 == p for p, rows in enumerate(found) for row in rows)
    assert files(tmp_path)
    if isinstance(exchange, LocalExchange):
        assert exchange.store.spilled_bytes > 0
        exchange.close()
        assert not list(tmp_path.iterdir())


def test_what_exceeds_the_budget_is_in_files_and_reads_the_same(tmp_path: Path) -> None:
    store = Store(memory_bytes=2000, directory=tmp_path)
    for key in range(5):
        keep(store, key, batch(100))
    assert store.memory_used_bytes <= 2000
    assert len(files(tmp_path)) == 3
    assert all(store.get(key).batches == [batch(100)] for key in range(5))


def test_reserved_bytes_count_against_the_budget(tmp_path: Path) -> None:
    store = Store(memory_bytes=1000, directory=tmp_path)
    keep(store, "a", batch(100))
    assert not files(tmp_path)
    store.reserve(500)
    assert files(tmp_path)
    assert store.get("a").batches == [batch(100)]


def test_a_replaced_file_is_removed(tmp_path: Path) -> None:
    store = Store(memory_bytes=0, directory=tmp_path)
    for _ in range(3):
        keep(store, "a", batch(9))
    assert len(files(tmp_path)) == 1
    assert store.get("a").batches == [batch(9)]


def test_asking_for_what_was_not_made_is_an_error() -> None:
    with pytest.raises(MissingRows, match="has not run"):
        Store(1e9).get(("result", "j1", 0))


def test_an_entry_that_grows_too_large_goes_to_its_file_as_it_grows(tmp_path: Path) -> None:
    store = Store(memory_bytes=2000, directory=tmp_path)
    with store.open("a", batch(1).schema) as writer:
        for count in range(1, 51):
            writer.append(batch(100))
            assert store.memory_used_bytes <= 2000
            assert store.spilled_bytes == (count * 800 if count > 2 else 0)
        writer.commit()
    assert len(files(tmp_path)) == 1
    assert store.get("a").batches == [batch(100)] * 50


def test_small_entries_stay_in_memory_beside_a_large_one(tmp_path: Path) -> None:
    store = Store(memory_bytes=2000, directory=tmp_path)
    keep(store, "small", batch(10))
    keep(store, "large", *[batch(100)] * 20)
    assert store.memory_used_bytes == batch(10).nbytes
    assert store.spilled_bytes == 20 * 800


@pytest.mark.parametrize("memory_bytes", [0, 1e9])
def test_an_entry_appears_and_is_replaced_as_a_whole(tmp_path: Path, memory_bytes: float) -> None:
    store = Store(memory_bytes, tmp_path)
    writer = store.open("a", batch(1).schema)
    writer.append(batch(1))
    assert "a" not in store
    writer.commit()
    with store.open("a", batch(1).schema) as second:
        second.append(batch(2))
        assert store.get("a").batches == [batch(1)]
        second.append(batch(3))
        second.commit()
    assert store.get("a").batches == [batch(2), batch(3)]
    assert store.memory_used_bytes == (0 if memory_bytes == 0 else 40)


@pytest.mark.parametrize("memory_bytes", [0, 1e9])
def test_what_is_given_up_leaves_nothing(tmp_path: Path, memory_bytes: float) -> None:
    store = Store(memory_bytes, tmp_path)
    keep(store, "a", batch(1))
    kept = files(tmp_path)
    with store.open("a", batch(1).schema) as writer:
        writer.append(batch(50))
    assert store.get("a").batches == [batch(1)]
    assert files(tmp_path) == kept
    assert store.memory_used_bytes == (0 if memory_bytes == 0 else 8)


@pytest.mark.parametrize("memory_bytes", [0, 1e9])
def test_dropping_frees(tmp_path: Path, memory_bytes: float) -> None:
    store = Store(memory_bytes, tmp_path)
    keep(store, "a", batch(1))
    store.drop("a")
    store.drop("never there")
    assert "a" not in store
    assert not files(tmp_path)
    assert store.memory_used_bytes == 0


def test_rows_in_hand_count_until_they_are_sorted(tmp_path: Path) -> None:
    exchange = LocalExchange(1e6, tmp_path)
    store = exchange.store
    rows = sent(0, 1, 1).to_batches()[0]
    with exchange.open("q/j:m0", 1, rows.schema, Partitions("part", 2)) as writer:
        writer.append(rows)
        assert store.memory_used_bytes == rows.nbytes
        writer.commit()
    assert 0 < store.memory_used_bytes <= rows.nbytes + 8  # offsets of text have one more each
    exchange.drop(["q/j:m0"])
    assert store.memory_used_bytes == 0


def test_an_output_that_is_given_up_leaves_nothing(exchange: Exchange, tmp_path: Path) -> None:
    with exchange.open("q/j:m0", 1, sent(0).schema, Partitions("part", 2)) as writer:
        writer.append(sent(0, 1).to_batches()[0])
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    if isinstance(exchange, LocalExchange):
        assert exchange.store.memory_used_bytes == 0


def test_many_writers_at_once_keep_to_the_budget(tmp_path: Path) -> None:
    store = Store(20_000, tmp_path)
    most = []

    def write(key: int) -> None:
        with store.open(key, batch(1).schema) as writer:
            for _ in range(200):
                writer.append(batch(100))
                most.append(store.memory_used_bytes)
            writer.commit()

    threads = [threading.Thread(target=write, args=(key,)) for key in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Each may have one batch in hand that is counted but not yet written.
    assert max(most) <= 20_000 + 4 * 800
    assert all(store.get(key).batches == [batch(100)] * 200 for key in range(4))


def test_a_folder_that_takes_nothing_is_named(tmp_path: Path) -> None:
    store = Store(0, tmp_path)
    keep(store, "a", batch(1))
    folder = files(tmp_path)[0].parent
    shutil.rmtree(folder)
    with pytest.raises(QueryFailed, match=str(folder)):
        keep(store, "b", batch(1))
