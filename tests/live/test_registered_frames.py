"""Frames of Arrow, pandas and Polars as tables: whatever is asked, as often as one likes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from engine.native_driving import check_same

import queryard

BASE = {
    "i": [1, 2, 2, None, 5],
    "s": ["a", None, "b", "b", "a longer text than twelve bytes"],
    "x": [0.5, 1.5, None, 2.5, -1.0],
}
FRAMES = {
    "arrow": pa.table(BASE),
    "pandas": pd.DataFrame(BASE),
    "polars": pl.DataFrame(BASE),
    "batches": pa.concat_tables([pa.table(BASE), pa.table(BASE).slice(0, 0), pa.table(BASE)]),
    "sliced": pa.table({k: [v[0], *v, v[0]] for k, v in BASE.items()}).slice(1, 5),
}
QUERIES = [
    "SELECT * FROM t",
    "SELECT count(*) AS n FROM t",
    "SELECT s FROM t",
    "SELECT x, i FROM t",
    "SELECT i FROM t WHERE s = 'b'",
    "SELECT a.i, b.s FROM t a JOIN t b ON a.i = b.i",
    "SELECT a.s, count(*) AS n FROM t a, t b, t c WHERE a.s = b.s GROUP BY a.s",
    "SELECT s, sum(x) AS sx FROM t GROUP BY s",
    "SELECT i FROM t UNION ALL SELECT i FROM t WHERE x > 1",
    "SELECT * FROM t WHERE i IN (SELECT i FROM t WHERE x IS NOT NULL)",
    "SELECT i, row_number() OVER (ORDER BY i, x) AS place FROM t",
    "SELECT 1 AS one FROM t WHERE false",
    "SELECT max(x) AS m FROM t WHERE i > 100",
    "WITH c AS (FROM t WHERE i = 2) SELECT a.x, b.x AS y FROM c a, c b",
]


@pytest.mark.parametrize("kind", FRAMES)
def test_every_kind_under_every_query(kind):
    frame = FRAMES[kind]
    with queryard.connect(tables={"t": frame}, slots=2) as qy, duckdb.connect() as plain:
        plain.register("t", frame)
        for sql in [*QUERIES, *reversed(QUERIES)]:
            check_same(qy.sql(sql).arrow(), plain.sql(sql).to_arrow_table())


def test_empty_frames():
    empty = pa.table({"a": pa.array([], pa.int32()), "b": pa.array([], pa.string())})
    with queryard.connect(tables={"t": empty, "u": empty.to_pandas()}, slots=2) as qy:
        assert qy.sql("SELECT * FROM t").fetchall() == []
        assert qy.sql("SELECT count(*), sum(a) FROM t").fetchall() == [(0, None)]
        assert qy.sql("SELECT * FROM t JOIN t AS b USING (a)").fetchall() == []
        assert qy.sql("SELECT count(*) FROM u").fetchall() == [(0,)]


NESTED = {
    "lists": pa.array([[1, 2], None, [], [None, 3]], pa.list_(pa.int64())),
    "structs": pa.array(
        [{"a": 1, "b": "x"}, None, {"a": None, "b": None}, {"a": 4, "b": "y"}],
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
    ),
    "deep": pa.array(
        [[{"k": ["a", None]}], [], None, [None]],
        pa.list_(pa.struct([("k", pa.list_(pa.string()))])),
    ),
    "maps": pa.array([[("a", 1)], [], None, [("b", None)]], pa.map_(pa.string(), pa.int64())),
    "words": pa.array(["x", "y", None, "x"]).dictionary_encode(),
    "large": pa.array(["l" * 50_000, None, "", "é"], pa.large_string()),
    "decimals": pa.array(
        [Decimal("1.23"), None, Decimal("-9.99"), Decimal(0)], pa.decimal128(9, 2)
    ),
    "days": pa.array([dt.date(2020, 1, 1), None, dt.date(1969, 1, 1), dt.date(9999, 12, 31)]),
    "moments": pa.array([0, None, -1, 10**15], pa.timestamp("us")),
    "zoned": pa.array([0, None, -1, 10**15], pa.timestamp("us", tz="UTC")),
    "nanos": pa.array([0, None, 1, 2], pa.timestamp("ns")),
    "bits": pa.array([True, None, False, True]),
    "bytes": pa.array([b"\x00", None, b"", b"\xff" * 20]),
    "small": pa.array([1, None, -128, 127], pa.int8()),
    "unsigned": pa.array([1, None, 0, 2**64 - 1], pa.uint64()),
    "fixed": pa.array([[1, 2], None, [3, 4], [5, None]], pa.list_(pa.int32(), 2)),
    "halves": pa.array([np.float32(0.5), None, np.float32(np.inf), np.float32(1)], pa.float32()),
}


@pytest.mark.parametrize("column", NESTED)
def test_every_arrow_type(column):
    frame = pa.table({"n": pa.array([1, 2, 3, 4]), column: NESTED[column]})
    with queryard.connect(tables={"t": frame}, slots=2) as qy, duckdb.connect() as plain:
        plain.register("t", frame)
        for sql in (
            "SELECT * FROM t ORDER BY n",
            f"SELECT {column} FROM t WHERE n > 2 ORDER BY n",
            f"SELECT a.n, b.{column} FROM t a JOIN t b ON a.n = b.n ORDER BY a.n",
            f"SELECT count({column}) AS c FROM t",
        ):
            found = qy.sql(sql).arrow()
            check_same(found, plain.sql(sql).to_arrow_table(), ordered=True)


def test_a_type_that_duckdb_does_not_know_is_named():
    wide = pa.array([Decimal("1.5")], pa.decimal256(50, 2))
    told = pytest.raises(queryard.QueryardError, match=r"column 'wide' is of .* type decimal256")
    with queryard.connect(tables={"t": pa.table({"n": [1], "wide": wide})}) as qy, told:
        qy.sql("SELECT * FROM t").fetchall()


def test_categories_of_pandas_and_polars():
    words = pd.DataFrame({"c": pd.Categorical(["x", None, "y", "x"]), "n": [1, 2, 3, 4]})
    other = pl.DataFrame({"c": ["x", None, "y", "x"]}).with_columns(
        pl.col("c").cast(pl.Categorical)
    )
    with queryard.connect(tables={"t": words, "u": other}, slots=2) as qy:
        for table in ("t", "u"):
            sql = (
                f"SELECT c::VARCHAR AS c, count(*) FROM {table} GROUP BY ALL ORDER BY c NULLS FIRST"
            )
            assert qy.sql(sql).fetchall() == [(None, 1), ("x", 2), ("y", 1)]


def test_many_rows_and_files_beside_them(data):
    frame = pa.table({"key": pa.array(np.arange(300_000) % 1000), "v": np.ones(300_000)})
    with queryard.connect(data, tables={"big": frame}, slots=2, memory="1 GB") as qy:
        assert qy.sql("SELECT count(*), sum(v) FROM big").fetchall() == [(300_000, 300_000.0)]
        sql = "SELECT part, count(*) FROM big JOIN dims USING (key) GROUP BY part ORDER BY part"
        assert sum(n for _, n in qy.sql(sql).fetchall()) == 300_000
        assert qy.sql("SELECT count(*) FROM dims").fetchall() == [(1000,)]


def test_a_frame_changed_by_its_owner_afterwards_is_not_read_again():
    frame = pd.DataFrame({"i": np.array([1, 2, 3])})
    with queryard.connect(tables={"t": frame}, slots=2) as qy:
        assert qy.sql("SELECT sum(i) FROM t").fetchall() == [(6,)]
        frame.loc[0, "i"] = 100
        assert qy.sql("SELECT sum(i) FROM t").fetchall() == [(6,)]


def test_queries_on_frames_from_many_threads():
    import threading

    with queryard.connect(tables={"t": FRAMES["arrow"], "u": FRAMES["pandas"]}, slots=2) as qy:
        found = []

        def ask() -> None:
            sql = "SELECT count(*) FROM t JOIN u USING (i)"
            found.extend([qy.sql(sql).fetchall() for _ in range(10)])

        threads = [threading.Thread(target=ask, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert found == [[(6,)]] * 40


def test_a_frame_cannot_be_changed_by_a_reading_session():
    """Writing into the copy would make later answers differ from the frame."""
    with queryard.connect(tables={"t": FRAMES["arrow"]}, slots=2) as qy:
        with pytest.raises(queryard.QueryardError, match="DELETE cannot change"):
            qy.sql("DELETE FROM t")
        assert qy.sql("SELECT count(*) FROM t").fetchall() == [(5,)]


def test_frames_with_odd_names():
    names = ["Mixed Case", "select", "with.dot", 'with"quote', "ünï"]
    tables = {name: pa.table({"v": [i]}) for i, name in enumerate(names)}
    with queryard.connect(tables=tables, slots=2) as qy:
        for i, name in enumerate(names):
            quoted = ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))
            assert qy.sql(f"SELECT v FROM {quoted}").fetchall() == [(i,)]
