"""Names of tables, files and columns, however they are written."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import columns_of, rows_of, rows_of_splits

from queryard.sql.catalog import CatalogError, open_catalog
from queryard.sql.catalog.quoting import identifier, literal, split_name

ODD = ["it's", 'say "hi"', "a b", "ü–ñ漢", "x[1]", "s*r", "q?", "{a,b}", "semi;colon", "per%20cent"]


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_odd_names_of_files_and_columns(tmp_path, name, ending):
    frame = pa.table({name: [1, 2, 3], "select": ["x", "y", "z"]})
    column = name.replace('"', '""')
    if ending == "parquet":
        pq.write_table(frame, tmp_path / f"{name}.parquet", row_group_size=2)
    elif ending == "csv":
        (tmp_path / f"{name}.csv").write_text(f'"{column}",select\n1,x\n2,y\n3,z\n')
    else:
        key = name.replace('"', '\\"')
        (tmp_path / f"{name}.jsonl").write_text(
            "".join(f'{{"{key}": {n}, "select": "{t}"}}\n' for n, t in enumerate("xyz", 1))
        )
    # A neighbour that the name would match if it were taken for a pattern.
    for decoy in ("x1", "star", "qu"):
        pq.write_table(pa.table({"wrong": [0]}), tmp_path / f"{decoy}.parquet")
    table = open_catalog(tmp_path)[name]
    assert table.columns == ((name, "BIGINT"), ("select", "VARCHAR"))
    expected = rows_of(open_catalog(tables={"t": frame})["t"])
    assert rows_of(table) == expected
    assert rows_of_splits(table.splits(1)) == expected
    assert columns_of(table.splits(1)[0].relation) == list(table.columns)


def test_a_path_that_exists_is_no_pattern(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x[12].parquet")
    pq.write_table(pa.table({"a": [2]}), tmp_path / "x1.parquet")
    table = open_catalog(tables={"t": str(tmp_path / "x[12].parquet")})["t"]
    assert rows_of(table) == {"(1,)": 1}


@given(st.text(min_size=1, max_size=8).filter(lambda text: "\0" not in text))
def test_quoting_survives_duckdb(text):
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    cursor = duckdb.execute(f"SELECT {literal(text)} AS {identifier(text)}")
    assert cursor.description[0][0] == text
    assert cursor.fetchall() == [(text,)]


@given(st.lists(st.text(alphabet='a."b ', min_size=1, max_size=4), min_size=1, max_size=3))
def test_names_in_parts_come_back(parts):
    assert split_name(".".join(identifier(part) for part in parts)) == tuple(parts)


def test_look_up_does_not_tell_upper_from_lower_case(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "Orders.parquet")
    catalog = open_catalog(tmp_path)
    assert catalog["ORDERS"] is catalog["orders"] is catalog['"Orders"'] is catalog.find("orders")
    assert "oRDERS" in catalog
    assert list(catalog.tables) == ["Orders"]


def test_a_name_with_a_dot_is_quoted_in_its_key(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "v1.2.parquet")
    catalog = open_catalog(tmp_path)
    assert list(catalog) == ['"v1.2"']
    assert catalog["v1.2"] is catalog['"v1.2"'] is catalog.find("v1.2")


def test_an_unknown_table_names_the_near_and_the_valid(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "orders.parquet")
    catalog = open_catalog(tmp_path)
    with pytest.raises(CatalogError, match=r"did you mean 'orders'\? \(valid: orders\)"):
        catalog["ordesr"]


def test_two_tables_of_one_name_are_refused_with_both_files(tmp_path):
    (tmp_path / "orders.csv").write_text("a\n1\n")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "Orders.parquet")
    (tmp_path / "other.csv").write_text("a\n1\n")
    catalog = open_catalog(tmp_path)
    assert list(catalog) == ["other"]
    assert [place for place, _ in catalog.skipped] == ["orders"]
    with pytest.raises(CatalogError, match=r"Orders\.parquet and .*orders\.csv"):
        catalog["orders"]


@pytest.mark.parametrize("name", ["", "a.b.c", ".a", "a."])
def test_names_that_cannot_be(name):
    with pytest.raises(CatalogError, match="must be a name"):
        open_catalog(tables={name: pa.table({"a": [1]})})
