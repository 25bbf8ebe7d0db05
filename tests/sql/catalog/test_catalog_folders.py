"""What becomes a table in a folder, and in a catalog file."""

from __future__ import annotations

import time

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reading import rows_of

from queryard.sql.catalog import CatalogError, open_catalog

FRAME = pa.table({"a": [1]})


def fill(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".parquet"):
            pq.write_table(FRAME, folder / name)
        elif name.endswith(".csv"):
            (folder / name).write_text("a\n1\n")
        else:
            (folder / name).write_text("nothing")


@pytest.mark.parametrize(
    ("files", "tables"),
    [
        (["orders.parquet", "items.csv", "README.md", ".hidden.csv", "_SUCCESS"], "items orders"),
        (["e/part-00000-c000.parquet", "e/part-00001-c000.parquet", "e/_SUCCESS"], "e"),
        (["lineitem/lineitem.1.parquet", "lineitem/lineitem.2.parquet"], "lineitem"),
        (["m/2024-01.csv", "m/2024-02.csv"], "m"),
        (["m/5f0c2f64-8d0a-4a0b-9d4e-0123456789ab.parquet"], "m"),
        (["e/y=1/x.parquet", "e/y=2/x.parquet", "e/y=2/other.parquet"], "e"),
        (["sales/orders.parquet", "sales/customers.csv"], "sales.customers sales.orders"),
        (["sales/orders.parquet"], "sales.orders"),
        (["orders/orders.parquet"], "orders"),
        (["orders/data.parquet"], "orders"),
        (["sales/orders/part-0.parquet", "sales/x.csv"], "sales.orders sales.x"),
        (["sales/orders/y=1/part-0.parquet", "sales/x.csv"], "sales.orders sales.x"),
        (["empty/README.md"], ""),
        ([".queryard/statistics/x.json", "a.csv"], "a"),
    ],
)
def test_what_becomes_a_table(tmp_path, files, tables):
    fill(tmp_path, *files)
    catalog = open_catalog(tmp_path)
    assert sorted(catalog) == tables.split()
    assert catalog.skipped == ()
    for table in catalog.tables.values():
        assert sum(rows_of(table).values()) == len(table.files)


def test_what_is_passed_over_says_why(tmp_path):
    fill(tmp_path, "a/b/x.csv", "a/b/y.csv", "a/c.csv", "d/_delta_log/0.json", "d/p-0.parquet")
    fill(tmp_path, "i/metadata/v1.metadata.json", "i/data/0.parquet", "broken.duckdb")
    catalog = open_catalog(tmp_path)
    assert list(catalog) == ["a.c"]
    reasons = {place.rsplit("/", 1)[1]: reason for place, reason in catalog.skipped}
    assert "inside the schema 'a'" in reasons["b"]
    assert "Delta Lake" in reasons["d"]
    assert "Iceberg" in reasons["i"]
    assert "not a DuckDB database" in reasons["broken.duckdb"]
    with pytest.raises(CatalogError, match="Delta Lake"):
        catalog["d"]


def test_a_large_folder_opens_at_once_and_a_bad_file_harms_no_other(tmp_path):
    for number in range(1_000):
        (tmp_path / f"t{number}x.parquet").write_text("no Parquet at all")
    fill(tmp_path, "good.parquet")
    start_s = time.perf_counter()
    catalog = open_catalog(tmp_path)
    assert time.perf_counter() - start_s < 1.0
    assert catalog["good"].rows == 1
    with pytest.raises(CatalogError, match=r"t7x\.parquet: cannot be read as Parquet"):
        _ = catalog["t7x"].columns


def test_one_file_and_one_database(tmp_path):
    fill(tmp_path, "orders.parquet")
    assert list(open_catalog(tmp_path / "orders.parquet")) == ["orders"]
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS a FROM range(10)")
        connection.execute("CREATE VIEW v AS SELECT 1 AS x")
        connection.execute("CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 1 AS b")
    alone = open_catalog(tmp_path / "shop.duckdb")
    assert sorted(alone) == ["shop.s.t", "t", "v"]
    assert alone["t"] is alone["shop.t"] is alone["shop.main.t"]
    assert alone.databases[0].alias == "shop"
    beside = open_catalog(tmp_path)
    assert sorted(beside) == ["orders", "shop.s.t", "shop.t", "shop.v"]
    assert beside["shop.t"].relation == '"shop"."main"."t"'
    assert beside["shop.t"].rows == 10
    assert beside["shop.v"].rows is None
    assert beside["shop.t"].columns == (("a", "BIGINT"),)
    assert sum(rows_of(beside["shop.t"], beside).values()) == 10


def test_a_catalog_file(tmp_path):
    fill(tmp_path / "data", "o/1.parquet", "o/2.parquet", "archive/x.csv", "c-1.csv", "c-2.csv")
    (tmp_path / "data" / "raw.txt").write_text("1|x\n2|y\n")
    (tmp_path / "data" / "it's.csv").write_text("a\n1\n")
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    (tmp_path / "catalog.toml").write_text(
        """
        [tables]
        orders = "data/o/*.parquet"
        sales.customers = ["data/c-1.csv", "data/c-2.csv"]
        "odd.name" = "data/it's.csv"
        [tables.raw]
        path = "data/raw.txt"
        format = "csv"
        delimiter = "|"
        columns = { id = "INTEGER", "what's" = "VARCHAR" }
        [databases]
        db = "shop.duckdb"
        [folders]
        old = "data/archive"
        """
    )
    catalog = open_catalog(tmp_path / "catalog.toml")
    assert sorted(catalog) == ['"odd.name"', "db.t", "old.x", "orders", "raw", "sales.customers"]
    assert catalog["raw"].columns == (("id", "INTEGER"), ("what's", "VARCHAR"))
    assert sum(rows_of(catalog["raw"]).values()) == 2
    assert sum(rows_of(catalog["sales.customers"]).values()) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[table]\nx = 'a.csv'", "unknown key 'table'; did you mean 'tables'"),
        ("tables = 3", r"as \[tables\]"),
        ("[tables]\nx = 3", "neither a path nor a frame"),
        ("[tables]\nx = 'none.csv'", "table .*x.*: .*none.csv: no such file"),
        ("[tables]\nx = 'none*.csv'", "no file matches"),
        ("[tables.x]\nformat = 'csv'", "path"),
        ("[tables.x]\npath = 'a.csv'\nformat = 'cvs'", "unknown format 'cvs'; did you mean 'csv'"),
        ("[tables.x]\npath = 'a.csv'\ndelimeter = ','", "did you mean 'delimiter'"),
        ("[tables.x]\npath = 'a.csv'\nheader = 'yes'", "header must be true or false, got 'yes'"),
        ("[tables.x]\npath = 'a.csv'\ncolumns = ['a']", "columns must be names with types"),
        ("[databases]\nx = 'a.csv'", "not a DuckDB database"),
        ("[folders]\nx = 'a.csv'", "is no folder"),
        ("", "names no table"),
        ("[tables", "not valid TOML"),
    ],
)
def test_errors_of_a_catalog_file_name_it_and_the_key(tmp_path, text, message):
    fill(tmp_path, "a.csv")
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(CatalogError, match=message) as caught:
        open_catalog(tmp_path / "c.toml")
    assert "c.toml" in str(caught.value)


def test_places_that_are_no_catalog(tmp_path):
    fill(tmp_path, "notes.txt")
    for where, message in [
        (tmp_path / "nowhere", "no such file or folder"),
        (tmp_path / "notes.txt", "does not tell the format"),
        ("s3://bucket/data", "tables that lie elsewhere"),
    ]:
        with pytest.raises(CatalogError, match=message):
            open_catalog(where)


def test_refresh_tells_what_changed_and_keeps_the_rest(tmp_path):
    fill(tmp_path, "same.parquet", "grows.parquet", "goes.parquet")
    frame = pa.table({"x": [1]})
    catalog = open_catalog(tmp_path, {"frame": frame})
    same, grows = catalog["same"], catalog["grows"]
    assert (same.rows, grows.rows) == (1, 1)
    assert catalog.refresh() == ()
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "grows.parquet")
    (tmp_path / "goes.parquet").unlink()
    fill(tmp_path, "new.parquet")
    assert catalog["grows"] is grows  # until asked, the catalog stands still
    assert catalog.refresh() == ("goes", "grows", "new")
    assert catalog["same"] is same
    assert catalog["grows"].rows == 2
    assert "goes" not in catalog
