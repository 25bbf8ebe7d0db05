"""Random blocks hold each row of a table exactly once."""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.engine.sampling import RandomBlocks, random_blocks
from queryard.sql.catalog import open_catalog
from queryard.sql.catalog.model import Table


def write(file: Path, first: int, groups: list[int], **more: object) -> int:
    """Row groups of these sizes, with numbers that count on; the next number."""
    schema = pa.schema([("n", pa.int64()), *((name, pa.int64()) for name in more)])
    with pq.ParquetWriter(file, schema) as writer:
        for rows in groups:
            numbers = range(first, first + rows)
            columns = {"n": numbers, **{name: [7] * rows for name in more}}
            writer.write_table(pa.table(columns, schema), row_group_size=max(1, rows))
            first += rows
    return first


def blocks_of(table: Table, **options: int) -> RandomBlocks:
    found = random_blocks(table, **options)
    assert found is not None
    return found


def numbers(blocks: RandomBlocks, first: int, last: int) -> list[tuple[int, int]]:
    relation = blocks.relation(blocks.parts[first:last])
    sql = f"SELECT n, {blocks.part_column} FROM {relation} AS t ORDER BY n"
    return duckdb.execute(sql).fetchall()


@given(
    files=st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=8), min_size=1, max_size=4),
    most=st.integers(2, 12),
    fewest=st.integers(2, 6),
    seed=st.integers(0, 3),
    cut=st.integers(0, 12),
)
def test_blocks_cover_each_row_once(
    files: list[list[int]], most: int, fewest: int, seed: int, cut: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "t")
        place.mkdir()
        first = 0
        for index, groups in enumerate(files):
            first = write(place / f"part-{index}.parquet", first, groups)
        table = open_catalog(folder)["t"]
        blocks = random_blocks(table, seed=seed, most=most, fewest=fewest)
        if blocks is None:
            filled = sum(rows > 0 for groups in files for rows in groups)
            assert filled < 2 or filled > most
            return
        assert len(blocks.parts) <= max(most, len(files) * 2)
        read = numbers(blocks, 0, cut) if cut else []
        if cut < len(blocks.parts):
            read += numbers(blocks, cut, len(blocks.parts))
        assert sorted(n for n, _ in read) == list(range(first))
        assert blocks.total_rows == first
        counted = {part.number: part.rows for part in blocks.parts}
        for number, rows in counted.items():
            assert sum(part == number for _, part in read) == rows


def test_many_files_are_read_whole(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    for index in range(25):
        write(tmp_path / "t" / f"part-{index:02}.parquet", index * 10, [5, 5])
    blocks = blocks_of(open_catalog(tmp_path)["t"])
    assert len(blocks.parts) == 25
    assert all(part.first_row is None for part in blocks.parts)
    assert len(numbers(blocks, 0, 8)) == 80
    relation = blocks.relation(blocks.parts[:8])
    assert relation.count("read_parquet") == 1


def test_one_file_is_read_by_ranges_of_row_groups(tmp_path: Path) -> None:
    write(tmp_path / "t.parquet", 0, [10] * 250)
    blocks = blocks_of(open_catalog(tmp_path)["t"])
    assert 80 < len(blocks.parts) <= 100
    assert all(part.first_row is not None and part.rows % 10 == 0 for part in blocks.parts)
    assert blocks.relation(blocks.parts[:8]).count("read_parquet") == 1


def test_the_order_is_random_and_follows_the_seed(tmp_path: Path) -> None:
    write(tmp_path / "t.parquet", 0, [10] * 50)
    table = open_catalog(tmp_path)["t"]
    first, again, other = (blocks_of(table, seed=seed) for seed in (1, 1, 2))
    assert first.parts == again.parts != other.parts
    assert [part.number for part in first.parts] != sorted(part.number for part in first.parts)
    assert first.start(3).parts == first.parts[3:] + first.parts[:3]
    assert (first.kind, first.table) == ("random blocks", "t")


@pytest.mark.parametrize("fewest", [2, 20])
def test_files_of_different_columns_and_folders(tmp_path: Path, fewest: int) -> None:
    first = 0
    for year, extra in ((2023, "a"), (2024, "b")):
        folder = tmp_path / "sales" / f"year={year}"
        folder.mkdir(parents=True)
        first = write(folder / "part-0.parquet", first, [10, 10], **{extra: 1})
    named = {"sales": {"path": str(tmp_path / "sales/*/*.parquet"), "union_by_name": True}}
    table = open_catalog(tables=named)["sales"]
    blocks = blocks_of(table, fewest=fewest)
    assert len(blocks.parts) == (2 if fewest == 2 else 4)
    assert [n for n, _ in numbers(blocks, 0, 4)] == list(range(40))
    with duckdb.connect() as connection:
        parts = f"SELECT * EXCLUDE queryard_part FROM {blocks.relation(blocks.parts)}"
        assert not connection.execute(f"{parts} EXCEPT ALL FROM {table.relation}").fetchall()


@pytest.mark.parametrize("name", ["file_row_number", "file_index", "queryard_part"])
def test_columns_with_names_of_ours(tmp_path: Path, name: str) -> None:
    (tmp_path / "t").mkdir()
    for index in range(3):
        write(tmp_path / "t" / f"part-{index}.parquet", index * 20, [10, 10], **{name: 1})
    blocks = blocks_of(open_catalog(tmp_path)["t"])
    assert len(blocks.parts) == (3 if name == "file_row_number" else 6)
    found = numbers(blocks, 0, 6)
    assert [n for n, _ in found] == list(range(60))
    assert len({part for _, part in found}) == len(blocks.parts)


def test_text_frames_and_single_row_groups_have_no_blocks(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n2\n")
    write(tmp_path / "b.parquet", 0, [10])
    catalog = open_catalog(tmp_path, {"c": pa.table({"x": [1, 2]})})
    assert [random_blocks(catalog[name]) for name in "abc"] == [None, None, None]
