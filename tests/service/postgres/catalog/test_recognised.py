"""Which statements are for the catalogs, and which are for data."""

from __future__ import annotations

import pytest

from queryard.service.postgres.catalog import CatalogQueries

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
]
DATA = [
    "SELECT 1",
    "SELECT * FROM orders",
    "SELECT 'pg_class' FROM orders",
    "SELECT version() FROM orders",
    "SELECT current_user, count(*) FROM main.orders",
    "SELECT note AS pg_note FROM orders",
    "WITH pg_x AS (SELECT 1 AS a) SELECT * FROM pg_x",
    "SELECT now()",
    "SELECT current_date, current_timestamp",
    "INSERT INTO orders SELECT * FROM pg_class",
    "COPY (SELECT * FROM pg_class) TO STDOUT",
    "SET search_path TO pg_catalog",
    "SELECT lower('information_schema')",
    "",
]


@pytest.mark.parametrize("sql", CATALOG)
def test_catalog_queries_are_known(sql: str, queries: CatalogQueries):
    assert queries.concerns(sql)


@pytest.mark.parametrize("sql", DATA)
def test_others_are_left_alone(sql: str, queries: CatalogQueries):
    assert not queries.concerns(sql)
