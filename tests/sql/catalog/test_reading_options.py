"""`union_by_name`, `filename`, `ignore_errors` and `strict_mode` mean what they mean in DuckDB.

The whole table, all its splits together, and a staged query give what DuckDB's own function gives
with the same options.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from long_forms import examples

import queryard
from queryard.sql.catalog import CatalogError, NotSplittable, Table, open_catalog
from queryard.sql.statistics import analyze

Rows = Counter[tuple[Any, ...]]


def rows_of(relation: str) -> tuple[list[tuple[str, str]], Rows]:
    with duckdb.connect(config={"threads": 1}) as connection:
        found = connection.execute(f"SELECT * FROM {relation}")
        columns = [(name, str(kind)) for name, kind, *_ in found.description or ()]
        return columns, Counter(found.fetchall())


def in_splits(table: Table, target_bytes: float) -> tuple[list[tuple[str, str]], Rows]:
    columns: list[tuple[str, str]] = []
    rows: Rows = Counter()
    for split in table.splits(target_bytes):
        columns, found = rows_of(split.relation)
        rows += found
    return columns, rows


def check_like_duckdb(function: str, files: list[Path], options: dict[str, Any]) -> Table:
    """The table by every way of reading it, beside DuckDB's function; the table."""
    paths = [str(file) for file in files]
    table = open_catalog(tables={"t": {"path": paths, **options}})["t"]
    said = "".join(f", {name}={value!r}" for name, value in options.items())
    try:
        expected = rows_of(f"{function}({paths!r}{said})")
    except duckdb.ConversionException:  # DuckDB makes a DATE of some columns that are numbers, too
        reject()
    assert rows_of(table.relation) == expected
    assert [(column.name, column.type) for column in table.columns] == expected[0]
    for target_bytes in (1.0, 1e9):
        assert in_splits(table, target_bytes) == expected
    return table


VALUES = {
    "n": st.integers(-5, 5).map(str),
    "x": st.sampled_from(["1.5", "2.25", "-0.5"]),
    "s": st.sampled_from(["pen", "ink", "1.50"]),
    "d": st.sampled_from(["2024-01-02", "2024-02-01"]),
}


@st.composite
def csv_file(draw: st.DrawFn) -> str:
    names = draw(st.permutations(["a", "b", "c", "D"]))[: draw(st.integers(2, 4))]
    kinds = [draw(st.sampled_from(sorted(VALUES))) for _ in names]
    lines = draw(st.lists(st.tuples(*(VALUES[kind] for kind in kinds)), min_size=3, max_size=6))
    sign = draw(st.sampled_from([",", "|"]))
    # A text in front keeps DuckDB from taking the header for a row.
    return "\n".join(sign.join(values) for values in [("key", *names), *(("k", *v) for v in lines)])


@settings(max_examples=examples(30))
@given(st.lists(csv_file(), min_size=1, max_size=4), st.booleans())
def test_csv_files_of_different_columns_are_put_together_by_name(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], filename: bool
) -> None:
    folder = tmp_path_factory.mktemp("csv")
    files = [folder / f"{number}.csv" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text + "\n")
    check_like_duckdb("read_csv", files, {"union_by_name": True, "filename": filename})


ARRAYS = {
    "small": pa.array([1, 2, None], pa.int16()),
    "large": pa.array([2**40, None, 7], pa.int64()),
    "part": pa.array([0.5, None, 2.0], pa.float64()),
    "text": pa.array(["5", "x", None], pa.string()),
}


@settings(max_examples=examples(30))
@given(
    st.lists(
        st.dictionaries(st.sampled_from("abcD"), st.sampled_from(sorted(ARRAYS)), min_size=1),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
def test_parquet_files_of_different_columns_are_put_together_by_name(
    tmp_path_factory: pytest.TempPathFactory, layouts: list[dict[str, str]], filename: bool
) -> None:
    folder = tmp_path_factory.mktemp("parquet")
    files = []
    for number, layout in enumerate(layouts):
        files.append(folder / f"{number}.parquet")
        table = pa.table({name: ARRAYS[kind] for name, kind in layout.items()})
        pq.write_table(table, files[-1], row_group_size=1)
    options = {"union_by_name": True, "filename": filename}
    table = check_like_duckdb("read_parquet", files, options)
    catalog = open_catalog(tables={"t": {"path": [str(file) for file in files], **options}})
    known = catalog.statistics("t")
    (columns, rows) = rows_of(table.relation)
    for place, (name, _) in enumerate(columns):
        found = [row[place] for row in rows.elements()]
        nulls = sum(value is None for value in found) / len(found)
        assert known.columns[name].null_share == pytest.approx(nulls)
        low = known.columns[name].min
        assert low is None or low == min(value for value in found if value is not None)


def test_files_in_hive_folders_are_put_together_by_name(tmp_path: Path) -> None:
    files = [tmp_path / "year=2023" / "a.csv", tmp_path / "year=2024" / "b.csv"]
    for file in files:
        file.parent.mkdir()
    files[0].write_text("a,b\n1,x\n2,y\n")
    files[1].write_text("c;b\n2024-01-02;z\n")
    options = {"union_by_name": True, "filename": "source"}
    table = check_like_duckdb("read_csv", files, options)
    assert [column.name for column in table.columns] == ["a", "b", "c", "source", "year"]


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    files = [tmp_path / "1.csv", tmp_path / "2.csv", tmp_path / "3.csv"]
    for file, text in zip(files, ("a,b\n1,x\n", "", "c,b\n2,y\n"), strict=True):
        file.write_text(text)
    options = {"path": [str(file) for file in files], "union_by_name": True}
    table = open_catalog(tables={"t": options})["t"]
    expected = Counter({(1, "x", None): 1, (None, "y", 2): 1})
    assert rows_of(table.relation)[1] == in_splits(table, 1.0)[1] == expected


@pytest.mark.parametrize("strict", [True, False])
def test_lines_that_break_the_rules_are_read_with_strict_mode_off(
    tmp_path: Path, strict: bool
) -> None:
    file = tmp_path / "t.csv"
    file.write_text('id,v\n1,"a"b\n2,"c"\n3,d"\n' if not strict else 'id,v\n1,"a"\n2,"c,d"\n')
    check_like_duckdb("read_csv", [file], {"strict_mode": strict})


def spoilt(folder: Path) -> Path:
    file = folder / "t.csv"
    good = "".join(f"{number},{number}\n" for number in range(30_000))
    file.write_text(f"id,v\n{good}x,5\n7\n8,9,10\n11,y\n")
    return file


def test_lines_with_errors_are_left_out_as_duckdb_does(tmp_path: Path) -> None:
    file = spoilt(tmp_path)
    table = open_catalog(tables={"t": {"path": str(file), "ignore_errors": True}})["t"]
    own = f"read_csv('{file}', ignore_errors=true)"
    for select in ("*", "count(*)", "sum(id)", "sum(v)", "id"):
        with duckdb.connect() as connection:
            queries = [f"SELECT {select} FROM {where}" for where in (table.relation, own)]
            ours, theirs = (Counter(connection.execute(sql).fetchall()) for sql in queries)
        assert ours == theirs
    with pytest.raises(NotSplittable, match="t: with ignore_errors, the rows left out depend on"):
        table.splits(1.0)


def test_json_lines_with_errors_are_null(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text('{"a": 1, "b": "x"}\n{"a":\n{"a": 3}\n')
    check_like_duckdb("read_json", [file], {"ignore_errors": True, "filename": True})


def test_a_staged_query_answers_like_a_native_one_or_says_why_it_is_not_staged(
    tmp_path: Path,
) -> None:
    (tmp_path / "1.csv").write_text("a,b\n1,x\n2,y\n")
    (tmp_path / "2.csv").write_text("c,a\n0.5,3\n1.5,4\n")
    spoilt(tmp_path)
    by_name = {"path": str(tmp_path / "[12].csv"), "union_by_name": True, "filename": "file"}
    skipping = {"path": str(tmp_path / "t.csv"), "ignore_errors": True}
    tables = {"parts": by_name, "spoilt": skipping}
    with queryard.connect(tables=tables, slots=2, memory="400 MB", history=False) as qy:
        sql = "SELECT file, count(*), sum(a), max(b), sum(c) FROM parts GROUP BY file ORDER BY file"
        staged, native = (qy.sql(sql, plan=plan).fetchall() for plan in ("staged", "native"))
        assert (
            staged
            == native
            == [
                (str(tmp_path / "1.csv"), 2, 3, "y", None),
                (str(tmp_path / "2.csv"), 2, 7, None, 2.0),
            ]
        )
        assert "staged" in str(qy.explain(sql, plan="staged")).splitlines()[0]
        sql = "SELECT sum(id), sum(v) FROM spoilt"
        assert qy.sql(sql, plan="staged").fetchall() == [(449985000, 449985000)]
        assert "not staged: table spoilt: with ignore_errors" in str(qy.explain(sql, plan="staged"))


def test_statistics_of_other_options_are_not_used(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2,y\n3,z\n")
    kept = tmp_path / "kept"
    for options, rows in (({}, 3), ({"skip": 2, "header": False}, 2), ({}, 3)):
        tables = {"t": {"path": str(tmp_path / "t.csv"), "types": {}, **options}}
        tables["t"].pop("types")
        catalog = open_catalog(tables=tables, statistics=kept)
        assert analyze(catalog)["t"].rows == rows


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"union_by_name": "yes"}, "union_by_name must be true or false, got 'yes'"),
        ({"filename": 3}, "filename must be true, false or the name of the column, got 3"),
        ({"filename": ""}, "filename must be true, false or the name of the column"),
        ({"ignore_errors": 1}, "ignore_errors must be true or false"),
        ({"strict_mode": "no"}, "strict_mode must be true or false"),
        (
            {"union_by_name": True, "columns": {"a": "BIGINT"}},
            "columns and union_by_name exclude each other.*types",
        ),
        ({"union_by_names": True}, "did you mean 'union_by_name'"),
    ],
)
def test_wrong_values_are_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,x\n")
    with pytest.raises(CatalogError, match=message):
        open_catalog(tables={"t": {"path": str(tmp_path / "t.csv"), **options}})


def test_a_column_that_has_the_name_already_says_how_to_take_another(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,filename\n1,x\n2,y\n")
    table = open_catalog(tables={"t": {"path": str(tmp_path / "t.csv"), "filename": True}})["t"]
    with pytest.raises(CatalogError, match=r'filename = "file"'):
        _ = table.columns
