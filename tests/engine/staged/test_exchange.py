"""The store keeps what fits and spills the rest; the exchange brings partitions together."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

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


def test_every_row_arrives_once_at_its_partition() -> None:
    exchange = Exchange("j", 3, "part", Store(1e9))
    exchange.put(0, sent(2, 0, 2, 0))
    exchange.put(1, sent(0, 2))
    found = [exchange.get(p, range(2)) for p in range(3)]
    assert [numbers(table) for table in found] == [[0, 1, 3], [], [0, 1, 2]]
    assert found[1].schema.names == ["row", "text"]


def test_sides_are_read_apart() -> None:
    exchange = Exchange("j", 2, "part", Store(1e9))
    exchange.put(0, sent(0, 1))
    exchange.put(1, sent(1, 1, 1))
    assert exchange.get(1, range(1)).num_rows == 1
    assert exchange.get(1, range(1, 2)).num_rows == 3


def test_a_single_partition_needs_no_numbers() -> None:
    exchange = Exchange("j", 1, "part", Store(1e9))
    exchange.put(0, pa.table({"row": [1, 2]}))
    assert numbers(exchange.get(0, range(1))) == [1, 2]


def test_putting_again_replaces() -> None:
    exchange = Exchange("j", 2, "part", Store(0))
    exchange.put(0, sent(0, 1))
    exchange.put(0, sent(0, 1))
    assert [exchange.get(p, range(1)).num_rows for p in range(2)] == [1, 1]


@pytest.mark.parametrize("memory_bytes", [0, 1e9])
def test_no_rows_still_have_columns(memory_bytes: float) -> None:
    exchange = Exchange("j", 4, "part", Store(memory_bytes))
    exchange.put(0, sent())
    assert exchange.get(3, range(1)).schema.names == ["row", "text"]


def test_many_rows_survive_slabs_and_spilling(tmp_path: Path) -> None:
    count = (1 << 20) + 77
    store = Store(0, tmp_path)
    exchange = Exchange("j", 7, "part", store)
    parts = pa.array([i % 7 for i in range(count)], pa.uint8())
    exchange.put(0, pa.table({"row": pa.array(range(count)), "part": parts}))
    found = [exchange.get(p, range(1)).column("row").to_pylist() for p in range(7)]
    assert sorted(row for rows in found for row in rows) == list(range(count))
    assert all(row % 7 == p for p, rows in enumerate(found) for row in rows)
    assert store.spilled_bytes > 0
    assert list(tmp_path.rglob("*.arrow"))
    store.close()
    assert not list(tmp_path.iterdir())


def test_what_exceeds_the_budget_is_in_files_and_reads_the_same(tmp_path: Path) -> None:
    store = Store(memory_bytes=2000, directory=tmp_path)
    for key in range(5):
        store.put(key, batch(100).schema, [batch(100)])
    assert store.memory_used_bytes <= 2000
    assert len(list(tmp_path.rglob("*.arrow"))) == 3
    assert all(store.get(key).batches == [batch(100)] for key in range(5))


def test_reserved_bytes_count_against_the_budget(tmp_path: Path) -> None:
    store = Store(memory_bytes=1000, directory=tmp_path)
    store.put("a", batch(100).schema, [batch(100)])
    assert not list(tmp_path.rglob("*.arrow"))
    store.reserve(500)
    assert list(tmp_path.rglob("*.arrow"))
    assert store.get("a").batches == [batch(100)]


def test_a_replaced_file_is_removed(tmp_path: Path) -> None:
    store = Store(memory_bytes=0, directory=tmp_path)
    for _ in range(3):
        store.put("a", batch(9).schema, [batch(9)], marks=(1, 2))
    assert len(list(tmp_path.rglob("*.arrow"))) == 1
    assert store.get("a").marks == (1, 2)


def test_asking_for_what_was_not_made_is_an_error() -> None:
    with pytest.raises(MissingRows, match="has not run"):
        Store(1e9).get(("result", "j1", 0))
