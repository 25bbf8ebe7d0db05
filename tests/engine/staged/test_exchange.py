"""The store keeps what fits and spills the rest; the exchange brings partitions together."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from queryard.engine.errors import QueryFailed
from queryard.engine.staged import Exchange, MissingRows, Store


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


def send(exchange: Exchange, task: int, table: pa.Table) -> None:
    with exchange.open(task, table.schema) as sending:
        for each in table.to_batches():
            sending.append(each)
        sending.commit()


def files(folder: Path) -> list[Path]:
    return list(folder.rglob("*.arrow"))


def test_every_row_arrives_once_at_its_partition() -> None:
    exchange = Exchange("j", 3, "part", Store(1e9))
    send(exchange, 0, sent(2, 0, 2, 0))
    send(exchange, 1, sent(0, 2))
    found = [exchange.get(p, range(2)) for p in range(3)]
    assert [numbers(table) for table in found] == [[0, 1, 3], [], [0, 1, 2]]
    assert found[1].schema.names == ["row", "text"]


def test_sides_are_read_apart() -> None:
    exchange = Exchange("j", 2, "part", Store(1e9))
    send(exchange, 0, sent(0, 1))
    send(exchange, 1, sent(1, 1, 1))
    assert exchange.get(1, range(1)).num_rows == 1
    assert exchange.get(1, range(1, 2)).num_rows == 3


def test_a_single_partition_needs_no_numbers() -> None:
    exchange = Exchange("j", 1, "part", Store(1e9))
    send(exchange, 0, pa.table({"row": [1, 2]}))
    assert numbers(exchange.get(0, range(1))) == [1, 2]


def test_putting_again_replaces() -> None:
    exchange = Exchange("j", 2, "part", Store(0))
    send(exchange, 0, sent(0, 1))
    send(exchange, 0, sent(0, 1))
    assert [exchange.get(p, range(1)).num_rows for p in range(2)] == [1, 1]


@pytest.mark.parametrize("memory_bytes", [0, 1e9])
def test_no_rows_still_have_columns(memory_bytes: float) -> None:
    exchange = Exchange("j", 4, "part", Store(memory_bytes))
    send(exchange, 0, sent())
    assert exchange.get(3, range(1)).schema.names == ["row", "text"]


def test_many_rows_survive_slabs_and_spilling(tmp_path: Path) -> None:
    count = (1 << 20) + 77
    store = Store(0, tmp_path)
    exchange = Exchange("j", 7, "part", store)
    parts = pa.array([i % 7 for i in range(count)], pa.uint8())
    send(exchange, 0, pa.table({"row": pa.array(range(count)), "part": parts}))
    found = [exchange.get(p, range(1)).column("row").to_pylist() for p in range(7)]
    assert sorted(row for rows in found for row in rows) == list(range(count))
    assert all(row % 7 == p for p, rows in enumerate(found) for row in rows)
    assert store.spilled_bytes > 0
    assert files(tmp_path)
    store.close()
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
    with Exchange("j", 2, "part", store).open(0, sent(0).schema) as sending:
        sending.append(sent(0, 1).to_batches()[0])
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
    store = Store(1e6, tmp_path)
    exchange = Exchange("j", 2, "part", store)
    rows = sent(0, 1, 1).to_batches()[0]
    with exchange.open(0, rows.schema) as sending:
        sending.append(rows)
        assert store.memory_used_bytes == rows.nbytes
        sending.commit()
    assert 0 < store.memory_used_bytes <= rows.nbytes + 8  # offsets of text have one more each
    store.drop(("sent", "j", 0))
    assert store.memory_used_bytes == 0


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
