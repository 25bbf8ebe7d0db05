"""The catalogs show the tables that are there when they are asked."""

from __future__ import annotations

import duckdb
import pytest

from queryard.engine.sealing.access import Access
from tests.service.postgres.served_postgres import a_server

psycopg = pytest.importorskip("psycopg")

WRITES = Access(sealed=True, writes=frozenset({"shop"}))
TABLES = "SELECT relname FROM pg_catalog.pg_class WHERE relkind = 'r' ORDER BY 1"


@pytest.mark.parametrize("session", [{}, {"fresh": "1 h"}])
def test_a_table_that_was_made_or_dropped_a_moment_ago(tmp_path, session):
    (tmp_path / "data").mkdir()
    with duckdb.connect(str(tmp_path / "data" / "shop.duckdb")) as shop:
        shop.execute("CREATE TABLE old (a INTEGER)")
    with (
        a_server(tmp_path, grants={"sales": WRITES}, session=session) as served,
        psycopg.connect(served.dsn(), autocommit=True) as connection,
    ):

        def tables():
            return [name for (name,) in connection.execute(TABLES)]

        before = tables()
        connection.execute("CREATE TABLE shop.made (a INTEGER)")
        assert tables() == sorted([*before, "made"])
        connection.execute("ALTER TABLE shop.made ADD COLUMN b DATE")
        named = "SELECT attname FROM pg_attribute WHERE attrelid = 'shop.made'::regclass"
        assert [name for (name,) in connection.execute(f"{named} AND attnum > 0")] == ["a", "b"]
        connection.execute("DROP TABLE shop.made")
        assert tables() == before


def test_after_use_of_a_database_statements_need_not_name_it(tmp_path):
    (tmp_path / "data").mkdir()
    with duckdb.connect(str(tmp_path / "data" / "shop.duckdb")) as shop:
        shop.execute("CREATE TABLE old AS SELECT 5 AS a")
    with (
        a_server(tmp_path, grants={"sales": WRITES}) as served,
        psycopg.connect(served.dsn(), autocommit=True) as connection,
    ):
        connection.execute("USE shop")
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert connection.execute("SELECT a + %s FROM old", [1]).fetchone() == (6,)


def test_a_file_that_has_just_come(tmp_path):
    with (
        a_server(tmp_path) as served,
        psycopg.connect(served.dsn(), autocommit=True) as connection,
    ):
        before = connection.execute(TABLES).fetchall()
        (served.data / "zebras.csv").write_text("a\n1\n")
        assert connection.execute(TABLES).fetchall() == [*before, ("zebras",)]
