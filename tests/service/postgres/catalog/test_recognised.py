"""Which statements are for the catalogs, and which are for data."""

from __future__ import annotations

import pytest

from queryard.service.postgres.catalog import CatalogQueries, UnknownCatalogQuery

CATALOG = [
    "SELECT relname FROM pg_class",
    "select relname from PG_CATALOG.PG_CLASS",
    "SELECT * FROM information_schema.tables",
    'SELECT * FROM "postgres".INFORMATION_SCHEMA.columns',
    "SELECT version()",
    "SELECT current_user",
    "SELECT user",
    "SELECT current_schema()",
    "SELECT current_database() AS db, 1",
    "SELECT 'orders'::regclass",
    "SELECT CAST('orders' AS regclass)",
    "SELECT pg_backend_pid()",
    "SELECT set_config('jit', 'off', false)",
    "WITH x AS (SELECT oid FROM pg_class) SELECT * FROM x",
    "-- a comment\nSELECT oid FROM pg_type",
    "/* a comment */ (SELECT oid FROM pg_type)",
    "SELECT 1 FROM orders WHERE id IN (SELECT oid FROM pg_class)",
    "TABLE pg_class",
    "SELECT oid FROM pg_class WHERE",
    "SELECT * FROM pg_nothing",
    "INSERT INTO orders SELECT * FROM pg_class",
    "CREATE TEMP TABLE t AS SELECT * FROM information_schema.tables",
    "EXPLAIN SELECT * FROM pg_catalog.pg_class",
    "FROM pg_class",
    "FROM orders, pg_class",
    "INSERT INTO orders SELECT 1 FROM orders o JOIN x USING (id), pg_catalog.pg_class",
    'DELETE FROM orders USING "postgres".information_schema.tables t WHERE t.a = 1',
    "SELECT * EXCLUDE (a) FROM orders JOIN x ON f(a, b), (pg_class CROSS JOIN y)",
]
# What looks at a relation as a whole, and would be answered by DuckDB's own catalogs.
LOOKING = [
    "SUMMARIZE pg_class",
    'summarize "pg_catalog" . PG_CLASS',
    "SUMMARIZE TABLE pg_class",
    "DESCRIBE information_schema.tables",
    "DESC pg_class",
    "SHOW TABLE pg_class",
    "PIVOT pg_class ON relkind USING count(*)",
    "PIVOT_WIDER pg_class ON relkind USING count(*)",
    "PIVOT (pg_class) ON relkind USING count(*)",
    "PIVOT (FROM pg_class) ON relkind USING count(*)",
    "UNPIVOT pg_class ON oid INTO NAME n VALUE v",
    "FROM (SUMMARIZE pg_class)",
    "FROM (DESCRIBE memory.pg_catalog.pg_class)",
    "SELECT * FROM (SUMMARIZE pg_class)",
    "SELECT * FROM (SHOW pg_class)",
    "SELECT * FROM orders, (PIVOT pg_class ON relkind USING count(*))",
    "SELECT * FROM pg_class PIVOT (count(*) FOR relkind IN ('r'))",
    "WITH c AS (SUMMARIZE pg_class) SELECT * FROM c",
    "WITH c AS (PIVOT pg_class ON relkind USING count(*)) FROM c",
    "EXPLAIN SUMMARIZE pg_class",
    "PREPARE p AS SUMMARIZE pg_class",
    "CREATE TEMP TABLE t AS TABLE pg_class",
    "CREATE TEMP VIEW v AS FROM (SUMMARIZE pg_class)",
    "INSERT INTO orders TABLE pg_catalog.pg_class",
    "SELECT * FROM orders UNION ALL TABLE pg_class",
    "FROM histogram(pg_class, oid)",
    "SELECT * FROM pragma_table_info('pg_class')",
    "PRAGMA table_info('pg_catalog.pg_class')",
    "CALL pragma_show('pg_class')",
    "-- a comment\nSUMMARIZE /* another */ pg_class",
]

# DuckDB would answer these by its own session.
BESIDE_DATA = [
    ("SELECT version() FROM orders", "version\\(\\)"),
    ("SELECT current_user, count(*) FROM main.orders", "current_user"),
    ("SELECT * FROM orders WHERE note = CURRENT_USER", "current_user"),
    ("SELECT pg_catalog.current_database() FROM orders", "current_database\\(\\)"),
    ("INSERT INTO orders VALUES (1, session_user)", "session_user"),
    ("UPDATE orders SET note = current_schema", "current_schema"),
    ("EXPLAIN SELECT current_role FROM orders", "current_role"),
    ("FROM orders SELECT current_catalog", "current_catalog"),
]
DATA = [
    "SELECT 1",
    "SELECT * FROM orders",
    "SELECT 'pg_class' FROM orders",
    'SELECT t.version, "current_user" FROM orders t',
    "SELECT note AS pg_note FROM orders",
    "WITH pg_x AS (SELECT 1 AS a) SELECT * FROM pg_x",
    "SELECT now()",
    "SELECT current_date, current_timestamp",
    "INSERT INTO orders VALUES (1, 'from pg_class')",
    "DELETE FROM orders WHERE note = 'pg_'",
    "SET search_path TO pg_catalog",
    "UPDATE orders SET a = 1, pg_note = 2 WHERE a IS DISTINCT FROM 2",
    "INSERT INTO orders SELECT a IS DISTINCT FROM b, pg_note FROM orders JOIN x USING (pg_id)",
    "SELECT lower('information_schema')",
    "SUMMARIZE orders",
    "DESCRIBE orders; SELECT pg_note FROM orders",
    "PIVOT orders ON note USING sum(pg_note)",
    "SELECT note FROM orders ORDER BY a DESC, pg_note",
    "CREATE TEMP TABLE pg_mine (a INTEGER)",
    "ALTER TABLE pg_mine ADD COLUMN b INTEGER",
    "SELECT * FROM histogram(orders, pg_note)",
    "",
]


@pytest.mark.parametrize("sql", CATALOG + LOOKING)
def test_catalog_queries_are_known(sql: str, queries: CatalogQueries):
    assert queries.concerns(sql)


@pytest.mark.parametrize("sql", DATA)
def test_others_are_left_alone(sql: str, queries: CatalogQueries):
    assert not queries.concerns(sql)


@pytest.mark.parametrize(("sql", "word"), BESIDE_DATA)
def test_values_of_the_session_are_not_duckdbs(sql: str, word: str, queries: CatalogQueries):
    for _ in range(2):
        with pytest.raises(UnknownCatalogQuery, match=f"^{word} beside data") as refused:
            queries.concerns(sql)
        assert refused.value.sqlstate == "0A000"


@pytest.mark.parametrize(
    "sql", [sql for sql in CATALOG if sql[:6] in ("INSERT", "CREATE", "EXPLAI")] + LOOKING
)
def test_what_is_no_query_is_refused(sql: str, queries: CatalogQueries, caplog):
    with pytest.raises(UnknownCatalogQuery) as refused:
        queries.answer(sql)
    assert refused.value.sqlstate in ("0A000", "42601", "42P01")
    assert sql in caplog.text
