"""A statement finds the tables it means, wherever it runs, and only those."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import queryard
from queryard.core.errors import QueryardError
from queryard.engine.errors import QueryFailed


def rows(session, sql, parameters=()):
    return session.sql(sql, parameters).fetchall()


def write(path, **columns) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


ODD = [
    "Mixed Case",
    "select",
    "group",
    "1st",
    "a-b",
    "ünïcode",
    "tab'le",
    'quo"te',
    "UPPER",
    "a b c",
]


def test_odd_names(tmp_path):
    for place, name in enumerate(ODD):
        write(tmp_path / f"{name}.parquet", v=[place])
    with queryard.connect(tmp_path, slots=2) as qy:
        for place, name in enumerate(ODD):
            quoted = '"' + name.replace('"', '""') + '"'
            assert rows(qy, f"SELECT v FROM {quoted}") == [(place,)], name
            rows(qy, f"CREATE OR REPLACE TEMP TABLE copied AS SELECT v + 100 AS v FROM {quoted}")
            assert rows(qy, "FROM copied") == [(place + 100,)], name
        assert rows(qy, "SELECT v FROM upper") == [(ODD.index("UPPER"),)]
        assert rows(qy, 'SELECT v FROM "mixed case"') == [(0,)]


def test_two_schemas_with_the_same_table(tmp_path):
    write(tmp_path / "t.parquet", v=[0])
    write(tmp_path / "one" / "t.parquet", v=[1])
    write(tmp_path / "one" / "u.parquet", v=[11])
    write(tmp_path / "Two Words" / "t.parquet", v=[2])
    write(tmp_path / "Two Words" / "u.parquet", v=[22])
    with queryard.connect(tmp_path, slots=2) as qy:
        assert rows(qy, "SELECT v FROM t") == [(0,)]
        assert rows(qy, "SELECT v FROM one.t") == [(1,)]
        assert rows(qy, 'SELECT v FROM "Two Words".t') == [(2,)]
        assert rows(qy, 'SELECT a.v, b.v, c.v FROM t a, one.t b, "Two Words".t c') == [(0, 1, 2)]
        rows(qy, "CREATE TEMP TABLE x AS SELECT v FROM one.t")
        assert rows(qy, 'SELECT x.v, c.v FROM x, "Two Words".u c') == [(1, 22)]
        assert rows(qy, "SELECT one.t.v FROM one.t") == [(1,)]


def test_a_broken_file_fails_only_the_queries_that_use_it(tmp_path):
    write(tmp_path / "good.parquet", v=[1], broken=[5])
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 this is no parquet file PAR1")
    (tmp_path / "empty.parquet").write_bytes(b"")
    with queryard.connect(tmp_path, slots=2) as qy:
        assert rows(qy, "SELECT v FROM good") == [(1,)]
        assert rows(qy, "SELECT broken FROM good") == [(5,)]
        assert rows(qy, "SELECT v AS empty, 'broken' AS b FROM good") == [(1, "broken")]
        for name in ("broken", "empty"):
            with pytest.raises(QueryardError, match=rf"{name}\.parquet"):
                rows(qy, f"SELECT * FROM {name}")
            with pytest.raises(QueryardError, match=rf"{name}\.parquet"):
                rows(qy, f"CREATE TEMP TABLE x AS SELECT * FROM {name}")
            with pytest.raises(QueryardError, match=rf"{name}\.parquet"):
                rows(qy, f"SELECT * FROM good JOIN {name.upper()} ON true")
        assert rows(qy, "SELECT v FROM good") == [(1,)]
        assert ("good",) in rows(qy, "SHOW TABLES")


def test_a_file_that_is_cut_off_in_the_middle(tmp_path):
    write(tmp_path / "t.parquet", v=list(range(100_000)))
    write(tmp_path / "good.parquet", v=[1])
    with queryard.connect(tmp_path, slots=2) as qy:
        assert rows(qy, "SELECT sum(v) FROM t") == [(4_999_950_000,)]
        raw = bytearray((tmp_path / "t.parquet").read_bytes())
        raw[100 : len(raw) // 2] = b"\x00" * (len(raw) // 2 - 100)
        (tmp_path / "t.parquet").write_bytes(raw)
        qy.refresh()
        with pytest.raises(QueryardError):
            rows(qy, "SELECT sum(hash(v)) FROM t")
        assert rows(qy, "SELECT v FROM good") == [(1,)]


def test_files_that_change_between_queries(tmp_path):
    write(tmp_path / "t.parquet", v=[1, 2, 3])
    with queryard.connect(tmp_path, slots=2) as qy:
        rows(qy, "CREATE TEMP TABLE s AS SELECT 0 AS zero")
        for number in range(4):
            write(tmp_path / "t.parquet", v=[number] * (number + 1), w=["x"] * (number + 1))
            qy.refresh()
            expected = [(number + 1, number * (number + 1))]
            assert rows(qy, "SELECT count(w), sum(v) FROM t") == expected
            assert rows(qy, "SELECT count(w), sum(v) FROM t, s") == expected
        write(tmp_path / "new.parquet", v=[9])
        (tmp_path / "t.parquet").unlink()
        qy.refresh()
        assert rows(qy, "SELECT v FROM new") == [(9,)]
        with pytest.raises(QueryardError, match=r"\bt\b"):
            rows(qy, "SELECT * FROM t")


def test_a_folder_table_gets_more_files(tmp_path):
    write(tmp_path / "t" / "a.parquet", v=[1])
    with queryard.connect(
        tmp_path, slots=2, tables={"all_t": str(tmp_path / "t" / "*.parquet")}
    ) as qy:
        assert rows(qy, "SELECT sum(v) FROM all_t") == [(1,)]
        write(tmp_path / "t" / "b.parquet", v=[10])
        qy.refresh()
        assert rows(qy, "SELECT sum(v) FROM all_t") == [(11,)]


def test_names_that_only_look_like_tables(qy):
    assert rows(qy, "WITH dims AS (SELECT 42 AS x) SELECT x FROM dims") == [(42,)]
    assert rows(qy, "SELECT 1 AS facts, 2 AS dims ORDER BY facts") == [(1, 2)]
    assert rows(qy, "SELECT facts.x FROM (SELECT 3 AS x) AS facts") == [(3,)]
    assert rows(qy, "SELECT 'dims', $$facts$$ -- none\n/* dims */") == [("dims", "facts")]
    rows(qy, "CREATE TEMP TABLE mine AS SELECT 1 AS a")
    assert rows(qy, "WITH mine AS (SELECT 42 AS a) SELECT a FROM mine") == [(42,)]
    assert rows(qy, "SELECT count(*) AS mine FROM dims") == [(1000,)]
    rows(qy, "CREATE TEMP MACRO upper2(x) AS upper(x)")
    assert rows(qy, "SELECT upper2('a')") == [("A",)]


def test_ways_to_name_a_table(qy):
    for name in (
        "dims",
        "DIMS",
        '"dims"',
        '"Dims"',
        "main.dims",
        "memory.main.dims",
        "memory.dims",
    ):
        assert rows(qy, f"SELECT count(*) FROM {name}") == [(1000,)], name
    assert rows(qy, "FROM dims SELECT count(*)") == [(1000,)]
    assert rows(qy, "TABLE dims LIMIT 0") == []
    assert rows(qy, "SELECT count(*) FROM query_table('dims')") == [(1000,)]
    assert rows(qy, "SELECT count(*) FROM query('FROM dims')") == [(1000,)]
    assert rows(qy, "SELECT count(*) FROM (SUMMARIZE dims)") == [(3,)]
    assert rows(qy, "SELECT count(COLUMNS(*)) FROM dims") == [(1000, 1000, 1000)]


def test_names_that_only_planning_knows(qy):
    assert rows(qy, "SELECT count(*) FROM query_table('di' || 'ms')") == [(1000,)]


def test_files_by_their_path(qy, data):
    assert rows(qy, f"SELECT count(*) FROM '{data / 'dims.parquet'}'") == [(1000,)]
    assert rows(
        qy, f"SELECT count(*) FROM read_parquet('{data / 'dims.parquet'}') JOIN dims USING (key)"
    ) == [(1000,)]
    with pytest.raises(QueryFailed, match="nothing"):
        rows(qy, "SELECT * FROM '/nothing/here.parquet'")


def test_looking_around(qy):
    assert set(rows(qy, "SHOW TABLES")) == {("dims",), ("facts",), ("none",)}
    assert [r[0] for r in rows(qy, "DESCRIBE dims")] == ["key", "part", "name"]
    found = rows(
        qy,
        "SELECT table_name, column_name FROM information_schema.columns "
        "WHERE table_name = 'dims' ORDER BY ordinal_position",
    )
    assert found == [("dims", "key"), ("dims", "part"), ("dims", "name")]
    assert rows(qy, "SELECT count(*) FROM information_schema.tables") == [(3,)]
    assert {r[0] for r in rows(qy, "SELECT view_name FROM duckdb_views() WHERE NOT internal")} >= {
        "dims",
        "facts",
    }
    rows(qy, "CREATE TEMP TABLE mine AS SELECT 1 AS a")
    assert ("mine",) in rows(qy, "SHOW TABLES")
    assert len(rows(qy, "SHOW ALL TABLES")) == 4
    assert [r[0] for r in rows(qy, "SHOW mine")] == ["a"]


def test_nothing_at_all():
    with queryard.connect(slots=2) as qy:
        assert rows(qy, "SELECT 42") == [(42,)]
        assert rows(qy, "SHOW TABLES") == []
        with pytest.raises(QueryFailed, match="nowhere"):
            rows(qy, "FROM nowhere")


def test_statements_without_tables(qy):
    assert rows(qy, "SELECT 1, 'two', NULL, [3], {'a': 4}") == [(1, "two", None, [3], {"a": 4})]
    assert rows(qy, "VALUES (1), (2)") == [(1,), (2,)]
    assert rows(qy, "SELECT * FROM range(3)") == [(0,), (1,), (2,)]
    assert rows(qy, "SELECT count(*) FROM range(1000000)") == [(1_000_000,)]
    assert rows(qy, "SELECT * FROM generate_series(1, 0)") == []


@pytest.mark.parametrize(
    "expression",
    [
        "1::HUGEINT",
        "1::UHUGEINT",
        "INTERVAL 1 MONTH",
        "'2020-01-01'::DATE",
        "'12:00:00+02'::TIMETZ",
        "'2020-01-01 00:00:00+00'::TIMESTAMPTZ",
        "'2020-01-01'::TIMESTAMP_NS",
        "'2020-01-01'::TIMESTAMP_S",
        "'00000000-0000-0000-0000-000000000007'::UUID",
        "'101'::BIT",
        "'a'::ENUM('a', 'b')",
        "MAP {'a': 1}",
        "[1, 2]::INTEGER[2]",
        "union_value(a := 1)",
        "NULL",
        "'\\x00'::BLOB",
        "1.5::DECIMAL(38,37)",
        "'nan'::DOUBLE",
        "'-infinity'::DATE",
        "{'a': [1, NULL], 'b': {'c': NULL}}",
        "[]",
        "'{\"a\": 1}'::JSON",
        "123456789012345678901234567890::BIGNUM",
    ],
)
def test_every_type_looks_like_duckdbs_own(qy, expression):
    sql = f"SELECT {expression} AS v"
    with duckdb.connect() as plain:
        expected = plain.sql(sql).to_arrow_table()
        kind = str(plain.sql(sql).types[0])
    answer = qy.sql(sql)
    found = answer.arrow()
    assert found.schema == expected.schema
    if "nan" not in expression and "infinity" not in expression:
        assert found.to_pylist() == expected.to_pylist()
    assert answer.types[0].replace('"', "") == kind.replace('"', "")


@pytest.mark.parametrize("expression", ["'-infinity'::DATE", "'infinity'::TIMESTAMP"])
def test_endless_dates_can_be_fetched(qy, expression):
    assert len(rows(qy, f"SELECT {expression} AS v")) == 1
