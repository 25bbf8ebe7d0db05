"""What a writing session makes lies in a file, or is refused: nothing is lost without a word."""

from __future__ import annotations

import duckdb
import pytest

import queryard
from queryard.engine.errors import NotAllowed

LOST = [
    ("CREATE TABLE t (a INTEGER)", "the table t would lie in memory"),
    ("CREATE TABLE IF NOT EXISTS t AS SELECT 1", "the table t would lie in memory"),
    ("CREATE OR REPLACE TABLE main.t AS SELECT 1", "the table main.t would lie in memory"),
    ("EXPLAIN ANALYZE CREATE TABLE t AS SELECT 1", "the table t would lie in memory"),
    ("CREATE VIEW v AS SELECT 1", r"the view v would .*CREATE TEMP VIEW"),
    ("CREATE SCHEMA s", "the schema s would lie in memory"),
    ("CREATE SEQUENCE q", r"the sequence q would .*CREATE TEMP SEQUENCE"),
    ("CREATE TYPE y AS ENUM ('a')", "the type y would lie in memory"),
]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "people.csv").write_text("id\n1\n2\n")
    return tmp_path


@pytest.fixture
def shop(tmp_path):
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE old AS SELECT 1 AS a")
    return tmp_path / "shop.duckdb"


def tables_in(file) -> list[str]:
    with duckdb.connect(str(file), read_only=True) as connection:
        return sorted(row[0] for row in connection.execute("SHOW TABLES").fetchall())


@pytest.mark.parametrize(("sql", "message"), LOST)
def test_what_would_be_lost_with_the_session_is_refused_with_the_remedy(folder, sql, message):
    with queryard.connect(folder, slots=1, history=False, write=True) as qy:
        with pytest.raises(NotAllowed, match=message):
            qy.sql(sql)
        with pytest.raises(NotAllowed, match="open the session on a database file, or ATTACH one"):
            qy.sql(sql)


def test_a_table_that_would_be_lost_has_three_ways_out(folder):
    with queryard.connect(folder, slots=1, history=False, write=True) as qy:
        with pytest.raises(NotAllowed, match=r"ATTACH .*CREATE TEMP TABLE.*COPY .*parquet"):
            qy.sql("CREATE TABLE t AS FROM people")
        qy.sql("CREATE TEMP TABLE t AS FROM people")
        qy.sql("CREATE INDEX i ON t (id)")
        qy.sql(f"COPY t TO '{folder / 'copied.parquet'}'")
        assert qy.sql("SELECT count(*) FROM copied").fetchall() == [(2,)]
        qy.sql(f"ATTACH '{folder / 'mine.duckdb'}' AS mine")
        qy.sql("CREATE TABLE mine.t AS FROM people")
        qy.sql("CREATE VIEW memory.main.v AS SELECT 5 AS five")  # memory is named: it is meant
        assert qy.sql("SELECT five FROM v").fetchall() == [(5,)]
    assert tables_in(folder / "mine.duckdb") == ["t"]


def test_in_a_session_on_one_database_file_tables_go_there(shop):
    with queryard.connect(shop, slots=1, history=False, write=True) as qy:
        qy.sql("CREATE TABLE fresh AS SELECT 2 AS b")
        qy.sql("CREATE SCHEMA s")
        qy.sql("CREATE VIEW w AS SELECT 3 AS c")
    assert tables_in(shop) == ["fresh", "old", "w"]


def test_beside_other_data_a_database_file_must_be_named(folder, shop):
    with queryard.connect(folder, slots=1, history=False, write=True) as qy:
        with pytest.raises(NotAllowed, match=r"CREATE TABLE shop\.fresh"):
            qy.sql("CREATE TABLE fresh AS SELECT 2 AS b")
        qy.sql("CREATE TABLE shop.fresh AS SELECT 2 AS b")
        qy.sql("USE shop")
        qy.sql("CREATE TABLE used AS SELECT 2 AS b")
    assert tables_in(shop) == ["fresh", "old", "used"]


def test_a_session_that_only_reads_has_views_that_go_with_it(folder):
    with queryard.connect(folder, slots=1, history=False) as qy:
        qy.sql("CREATE VIEW v AS FROM people")
        assert qy.sql("SELECT count(*) FROM v").fetchall() == [(2,)]
