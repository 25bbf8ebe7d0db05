"""The splits of a table are its rows, once each, for every format and every size."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from long_forms import examples
from reading import columns_of, rows_of, rows_of_splits

from queryard.sql.catalog import CatalogError, NotSplittable, open_catalog

SLOW = settings(max_examples=examples(15), deadline=None, suppress_health_check=list(HealthCheck))
TEXTS = st.text(alphabet="aß\"',;\n\t \\é0", min_size=1, max_size=6)
ROWS = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(-5, 5)), st.one_of(st.none(), TEXTS)), max_size=30
)
TARGETS = st.sampled_from([1.0, 50.0, 700.0, 2_000.0, 1e12])


def arrow(rows):
    numbers, texts = [row[0] for row in rows], [row[1] for row in rows]
    return pa.table({"n": pa.array(numbers, pa.int64()), "text": pa.array(texts, pa.string())})


@SLOW
@given(st.lists(ROWS, min_size=1, max_size=4), st.integers(1, 7), TARGETS)
def test_parquet_files_of_any_row_groups(parts, group_rows, target):
    with TemporaryDirectory() as folder:
        for number, rows in enumerate(parts):
            pq.write_table(arrow(rows), f"{folder}/{number}.parquet", row_group_size=group_rows)
        table = open_catalog(tables={"t": f"{folder}/*.parquet"})["t"]
        expected = sum(
            (rows_of_arrow(arrow(rows)) for rows in parts), start=rows_of_arrow(arrow([]))
        )
        assert rows_of(table) == expected
        for splits in (table.splits(target), table.row_group_splits()):
            assert rows_of_splits(splits) == expected
            assert [split.index for split in splits] == list(range(len(splits)))
        assert table.rows == sum(expected.values())
        assert sum(s.bytes for s in table.splits(target)) == pytest.approx(table.bytes)


@SLOW
@given(st.lists(ROWS, min_size=1, max_size=3), TARGETS, st.sampled_from([",", "|", "\t"]))
def test_csv_files_of_any_texts(parts, target, delimiter):
    with TemporaryDirectory() as folder:
        for number, rows in enumerate(parts):
            options = pa.csv.WriteOptions(delimiter=delimiter, quoting_style="needed")
            pa.csv.write_csv(arrow(rows), f"{folder}/{number}.csv", options)
        # The number of columns and their types are given: a guess needs more rows than this.
        spec = {
            "path": f"{folder}/",
            "delimiter": delimiter,
            "header": True,
            "quote": '"',
            "escape": '"',
            "columns": {"n": "BIGINT", "text": "VARCHAR"},
        }
        table = open_catalog(tables={"t": spec})["t"]
        expected = sum(
            (rows_of_arrow(arrow(rows)) for rows in parts), start=rows_of_arrow(arrow([]))
        )
        assert rows_of(table) == expected
        assert rows_of_splits(table.splits(target)) == expected
        assert rows_of_splits(table.row_group_splits()) == expected


@SLOW
@given(st.lists(ROWS.filter(bool), min_size=1, max_size=3), TARGETS)
def test_json_files_of_any_texts(parts, target):
    with TemporaryDirectory() as folder:
        for number, rows in enumerate(parts):
            lines = [json.dumps({"n": n, "text": text}) + "\n" for n, text in rows]
            Path(folder, f"{number}.jsonl").write_text("".join(lines), encoding="utf-8")
        Path(folder, "9.jsonl").touch()
        table = open_catalog(tables={"t": {"path": folder, "types": {"n": "BIGINT"}}})["t"]
        # DuckDB sees numbers and dates in texts; what counts is that every read sees the same.
        expected = rows_of(table)
        assert sum(expected.values()) == sum(map(len, parts))
        assert rows_of_splits(table.splits(target)) == expected
        assert rows_of_splits(table.row_group_splits()) == expected


@SLOW
@given(st.lists(ROWS, min_size=1, max_size=3), TARGETS)
def test_frames_of_any_chunks(parts, target):
    frame = pa.concat_tables([arrow(rows) for rows in parts])
    table = open_catalog(tables={"t": frame})["t"]
    expected = rows_of_arrow(frame)
    assert rows_of(table) == expected
    assert rows_of_splits(table.splits(target)) == expected
    assert rows_of_splits(table.row_group_splits()) == expected


def rows_of_arrow(frame):
    return rows_of(open_catalog(tables={"expected": frame})["expected"])


def test_large_frames_are_cut_into_equal_slices_without_a_copy():
    frame = pa.table({"n": range(100_000)})
    table = open_catalog(tables={"t": frame})["t"]
    splits = table.splits(table.bytes / 4)
    assert [split.rows for split in splits] == [25_000.0] * 4
    start = frame.column("n").chunk(0).buffers()[1].address
    assert splits[1].frame.column("n").chunk(0).buffers()[1].address == start
    assert len({split.relation for split in splits}) == 4


def test_a_split_reads_its_own_row_groups_only(tmp_path):
    pq.write_table(pa.table({"n": range(50_000)}), tmp_path / "t.parquet", row_group_size=2_000)
    table = open_catalog(tmp_path)["t"]
    splits = table.splits(table.bytes / 5)
    assert len(splits) == 5
    for split in splits:
        plan = duckdb.execute(f"EXPLAIN ANALYZE SELECT sum(n) FROM {split.relation}").fetchall()
        assert re.search(r"Row Groups Scanned: 5 / 25", plan[0][1])


def test_splits_hold_at_least_one_row_group_however_small_the_target(tmp_path):
    pq.write_table(pa.table({"n": range(100)}), tmp_path / "t.parquet", row_group_size=10)
    table = open_catalog(tmp_path)["t"]
    assert [split.rows for split in table.splits(1)] == [10.0] * 10


def test_small_files_are_read_together(tmp_path):
    for number in range(10):
        pq.write_table(pa.table({"n": [number]}), tmp_path / f"{number}.parquet")
    table = open_catalog(tables={"t": str(tmp_path)})["t"]
    assert len(table.splits(1e6)) == 1
    assert len(table.splits(table.bytes / 4.9)) == 5


@pytest.mark.parametrize("group_rows", [0, 5])
def test_a_table_without_rows_has_one_split(tmp_path, group_rows):
    schema = pa.schema({"n": pa.int64()})
    with pq.ParquetWriter(tmp_path / "t.parquet", schema) as writer:
        if group_rows:
            writer.write_table(schema.empty_table(), row_group_size=group_rows)
    table = open_catalog(tmp_path)["t"]
    assert table.rows == 0
    for splits in (table.splits(1), table.row_group_splits()):
        assert len(splits) == 1
        assert columns_of(splits[0].relation) == [("n", "BIGINT")]
        assert not rows_of_splits(splits)


def test_a_column_with_the_name_of_row_numbers_keeps_files_whole(tmp_path):
    frame = pa.table({"File_Row_Number": range(100), "filename": ["x"] * 100})
    pq.write_table(frame, tmp_path / "t.parquet", row_group_size=10)
    table = open_catalog(tmp_path)["t"]
    assert len(table.splits(1)) == len(table.row_group_splits()) == 1
    assert rows_of_splits(table.splits(1)) == rows_of_arrow(frame)


def test_every_split_has_the_columns_of_the_table_in_order(tmp_path):
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"b": ["y"], "a": [2]}), tmp_path / "2.parquet")
    table = open_catalog(tables={"t": str(tmp_path)})["t"]
    for split in table.row_group_splits():
        assert columns_of(split.relation) == [("a", "BIGINT"), ("b", "VARCHAR")]
    assert rows_of_splits(table.row_group_splits()) == rows_of(table)


def test_hive_partitions_have_one_type_in_every_split(tmp_path):
    values = {"1": "2024-01-01", "abc": "2024-01-02", "__HIVE_DEFAULT_PARTITION__": "2024-01-03"}
    for key, day in values.items():
        folder = tmp_path / "t" / f"k={key}" / f"day={day}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"n": [1, 2]}), folder / "x.parquet")
    table = open_catalog(tmp_path)["t"]
    expected = {("n", "BIGINT"), ("day", "DATE"), ("k", "VARCHAR")}
    assert set(table.columns) == expected
    for split in table.row_group_splits():
        assert columns_of(split.relation) == list(table.columns)
    assert rows_of_splits(table.row_group_splits()) == rows_of(table)
    assert "None" in str(rows_of(table))


@pytest.mark.parametrize(
    "values",
    [
        ["1.5", "2.5"],
        ["1e3"],
        ["1", "02"],
        ["0", "-7"],
        ["0x1F", "1"],
        ["NULL", "1"],
        ["null"],
        ["2024-1-5", "epoch"],
        ["2024-01-05", "2024-01-05 10:00:00"],
        ["a%20b", "1"],
    ],
)
@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_hive_partitions_have_the_types_and_values_of_duckdb(tmp_path, values, ending):
    for value in values:
        (tmp_path / "t" / f"k={value}").mkdir(parents=True)
        file = tmp_path / "t" / f"k={value}" / f"x.{ending}"
        duckdb.sql("SELECT range AS n, 'a' AS s FROM range(2)").write_parquet(str(file))
        if ending == "csv":
            file.write_text("n,s\n0,a\n1,a\n")
        elif ending == "json":
            file.write_text('{"n": 0, "s": "a"}\n{"n": 1, "s": "a"}\n')
    catalog = open_catalog(tmp_path)
    table = catalog["t"]
    read = f"read_{ending}('{tmp_path}/t/*/*', hive_partitioning=true)"
    assert list(table.columns) == columns_of(read)
    plain = Counter(map(repr, duckdb.sql(f"FROM {read}").fetchall()))
    assert rows_of(table) == rows_of_splits(table.row_group_splits()) == plain
    catalog.statistics("t")


def test_types_of_text_come_from_all_files(tmp_path):
    (tmp_path / "1.csv").write_text("id,day\n1,2024-01-01\n2,2024-01-02\n")
    (tmp_path / "2.csv").write_text("id,day\n1.5,\n")
    (tmp_path / "3.csv").write_text("id,day\n")
    (tmp_path / "4.csv").touch()
    table = open_catalog(tables={"t": str(tmp_path)})["t"]
    assert [column.type for column in table.columns] == ["DOUBLE", "DATE"]
    for split in table.row_group_splits():
        assert columns_of(split.relation) == list(table.columns)
    assert sum(rows_of_splits(table.row_group_splits()).values()) == 3


def test_quotes_beyond_the_first_rows_are_understood(tmp_path):
    lines = [f"{i},plain" for i in range(30_000)] + ['30000,"a, ""b""\nc"']
    (tmp_path / "t.csv").write_text("id,text\n" + "\n".join(lines) + "\n")
    table = open_catalog(tmp_path)["t"]
    rows = rows_of_splits(table.splits(1))
    assert rows[repr((30_000, 'a, "b"\nc'))] == 1
    assert sum(rows.values()) == 30_001


@pytest.mark.parametrize("ending", ["csv.gz", "tsv.gz", "jsonl.gz", "csv.zst", "ndjson.zst"])
def test_compressed_text(tmp_path, ending):
    text = "a\tb\n1\tx\n2\ty\n" if ending.startswith("tsv") else "a,b\n1,x\n2,y\n"
    if "json" in ending or "nd" in ending:
        text = '{"a":1,"b":"x"}\n{"a":2,"b":"y"}\n'
    data = gzip.compress(text.encode())
    if ending.endswith("zst"):
        data = pa.compress(text.encode(), codec="zstd", asbytes=True)
    (tmp_path / f"t.{ending}").write_bytes(data)
    table = open_catalog(tmp_path)["t"]
    assert table.columns == (("a", "BIGINT"), ("b", "VARCHAR"))
    assert sum(rows_of_splits(table.splits(1)).values()) == 2
    assert table.rows is None
    assert table.bytes == len(data)


def test_tables_of_a_database_are_read_whole(tmp_path):
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    table = open_catalog(tmp_path)["shop.t"]
    for ask in (lambda: table.splits(1e6), table.row_group_splits):
        with pytest.raises(NotSplittable, match=r"shop\.duckdb"):
            ask()


@pytest.mark.parametrize("target", [0, -1, float("nan")])
def test_a_size_of_splits_must_be_above_zero(target):
    table = open_catalog(tables={"t": pa.table({"a": [1]})})["t"]
    with pytest.raises(CatalogError, match="must be above 0"):
        table.splits(target)
