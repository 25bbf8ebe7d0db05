"""Frames of every library, and files that lie elsewhere."""

from __future__ import annotations

import datetime
import sys

import fsspec
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reading import rows_of, rows_of_splits

from queryard.sql.catalog import CatalogError, open_catalog

EXPECTED = {"(1, 'x')": 1, "(2, None)": 1}
ARROW = pa.table({"n": [1, 2], "t": ["x", None]})


@pytest.mark.parametrize(
    "frame",
    [
        ARROW,
        ARROW.to_batches()[0],
        pd.DataFrame({"n": [1, 2], "t": ["x", None]}, index=[7, 8]),
        pl.DataFrame({"n": [1, 2], "t": ["x", None]}),
        pl.LazyFrame({"n": [1, 2], "t": ["x", None]}),
        ARROW.set_column(1, "t", ARROW["t"].dictionary_encode()),
    ],
    ids=["table", "batch", "pandas", "polars", "lazy", "dictionary"],
)
def test_frames(frame):
    table = open_catalog(tables={"t": frame})["t"]
    assert table.columns == (("n", "BIGINT"), ("t", "VARCHAR"))
    assert (table.kind, table.rows, table.files, table.relation) == ("frame", 2, (), '"t"')
    assert rows_of(table) == EXPECTED
    assert rows_of_splits(table.splits(1)) == EXPECTED


def test_types_of_pandas():
    frame = pd.DataFrame(
        {
            "when": pd.to_datetime(["2024-01-01 12:00"]),
            "kind": pd.Categorical(["a"]),
            "day": [datetime.date(2024, 1, 1)],
            "none": [None],
        }
    )
    types = {column.name: column.type for column in open_catalog(tables={"t": frame})["t"].columns}
    assert types["kind"] == "VARCHAR"
    assert types["day"] == "DATE"
    assert types["when"].startswith("TIMESTAMP")
    assert types["none"] in ("INTEGER", "VARCHAR")


def test_arrow_is_not_copied():
    table = open_catalog(tables={"t": ARROW})["t"]
    assert table.frame is ARROW


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pa.table({}), "no columns"),
        (pa.table([[1], [2]], names=["a", "A"]), "two columns are called 'A'"),
        (pd.DataFrame({"mixed": [1, "x", object()]}), "pandas.*DataFrame cannot be made an Arrow"),
        (pa.RecordBatchReader.from_batches(ARROW.schema, []), "read once only"),
        (pd.DataFrame({"huge": [2**70, 1]}), "pandas.*DataFrame cannot be made an Arrow"),
        (pl.LazyFrame({"a": [1]}).select("b"), 'unable to find column "b"'),
        (pl.DataFrame({"a": pl.Series([object()], dtype=pl.Object)}), "'a' holds Python objects"),
        (3, "a int is neither a path nor a frame"),
        (None, "a NoneType is neither a path nor a frame"),
        ({"a": [1, 2]}, "unknown option of the table odd: 'a'"),
        ([], "list of its paths is empty"),
        ({"format": "csv"}, "says nothing of its path"),
    ],
)
def test_what_cannot_be_a_table(frame, message):
    with pytest.raises(CatalogError, match=message) as caught:
        open_catalog(tables={"odd": frame})
    assert "odd" in str(caught.value)


def test_another_frame_under_the_name_has_another_fingerprint():
    first = open_catalog(tables={"t": ARROW})["t"]
    second = open_catalog(tables={"t": ARROW})["t"]
    assert first.fingerprint != second.fingerprint
    assert first.splits(1)[0].relation != second.splits(1)[0].relation


@pytest.fixture
def memory():
    system = fsspec.filesystem("memory")
    yield system
    system.rm("/", recursive=True)


def test_files_through_fsspec(memory, tmp_path):
    pq.write_table(pa.table({"n": range(10)}), tmp_path / "x.parquet", row_group_size=3)
    memory.pipe("/lake/x[1].parquet", (tmp_path / "x.parquet").read_bytes())
    memory.pipe("/lake/x1.parquet", (tmp_path / "x.parquet").read_bytes())
    memory.pipe("/text/a.csv", b"n\n1\n2\n")
    catalog = open_catalog(
        tables={
            "one": "memory://lake/x1.parquet",
            "both": "memory://lake/",
            "text": "memory://text/*.csv",
        }
    )
    for name, rows in [("one", 10), ("both", 20), ("text", 2)]:
        table = catalog[name]
        assert table.columns == (("n", "BIGINT"),)
        assert sum(rows_of(table, catalog).values()) == rows
        assert rows_of_splits(table.splits(1), catalog) == rows_of(table, catalog)
    before = catalog["one"].fingerprint
    memory.pipe("/lake/x1.parquet", (tmp_path / "x.parquet").read_bytes() + b"")
    memory.pipe("/text/b.csv", b"n\n3\n")
    assert "text" in catalog.refresh()
    assert before
    with pytest.raises(CatalogError, match="memory://lake/none"):
        open_catalog(tables={"t": "memory://lake/none.parquet"})


def test_other_schemes_without_the_packages_for_them(monkeypatch):
    with pytest.raises(CatalogError, match="nosuch"):
        open_catalog(tables={"t": "nosuch://x/y.parquet"})
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(CatalogError, match="pip install fsspec"):
        open_catalog(tables={"t": "memory://x/y.parquet"})


def test_local_uris(tmp_path, monkeypatch):
    file = tmp_path / "a b.csv"
    file.write_text("n\n1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for uri in (
        file.as_uri(),
        f"file://localhost{file.as_uri()[7:]}",
        "a b.csv",
        "~/a b.csv",
        file,
    ):
        assert open_catalog(tables={"t": uri})["t"].files[0].uri == str(file)
    with pytest.raises(CatalogError, match="names the machine 'elsewhere'"):
        open_catalog(tables={"t": "file://elsewhere/x.csv"})
