"""Values of the session and parameters of queries."""

from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from queryard.service.postgres.catalog import (
    CatalogFacts,
    CatalogQueries,
    ColumnFacts,
    TableFacts,
)
from queryard.service.postgres.catalog.from_catalog import facts_of
from queryard.service.postgres.catalogs import Catalogs
from tests.service.postgres.catalog.shop import SHOP
from tests.service.yard_ground import a_ground


def value(queries: CatalogQueries, sql: str, parameters: Any = (), **session: str) -> Any:
    (column,) = queries.answer(sql, parameters, session).table.columns
    (found,) = column.to_pylist()
    return found


def test_a_session_says_what_it_is(queries: CatalogQueries):
    assert value(queries, "SELECT current_user") == "postgres"
    assert value(queries, "SELECT current_user", user="ann") == "ann"
    assert value(queries, "SELECT current_database()", database="shop") == "shop"
    assert value(queries, "SELECT pg_backend_pid()", pid="42") == 42
    assert value(queries, "SELECT version()", version="PostgreSQL 15.1") == "PostgreSQL 15.1"
    assert value(queries, "SELECT current_setting('TimeZone')", timezone="CET") == "CET"
    assert value(queries, "SELECT current_setting($1, true)", ["none"]) is None
    sql = "SELECT setting FROM pg_settings WHERE name = 'search_path'"
    assert value(queries, sql, search_path="sales") == "sales"


def test_what_set_config_asks_for_is_told(queries: CatalogQueries):
    answer = queries.answer(
        "SELECT current_setting('jit') AS cur, set_config('jit', $1, false) AS new", ["off"]
    )
    assert answer.table.to_pylist() == [{"cur": "off", "new": "off"}]
    assert answer.settings == (("jit", "off", False),)


def test_parameters_have_the_types_of_what_they_are_compared_with(queries: CatalogQueries):
    sql = (
        "SELECT $1::int + 1 FROM pg_class WHERE oid = $2 AND relname = $3 AND relkind = ANY($4) "
        "AND relhasindex = $5 AND relnatts IN ($6, $7) AND relname LIKE $8 AND oid = any($9::oid[])"
        " AND relname = $10::regclass::text LIMIT $11"
    )
    described = queries.describe(sql)
    assert described.parameters == (23, 26, 19, 1002, 16, 21, 21, 25, 1028, 25, 20)
    assert queries.describe("SELECT relname = $1 FROM pg_class", [25]).parameters == (25,)


@pytest.mark.parametrize("kinds", [["r", "v"], '{r, "v"}'])
def test_arrays_may_be_lists_or_texts(kinds: Any, queries: CatalogQueries):
    sql = (
        "SELECT relname FROM pg_class WHERE relkind = ANY($1) AND relnamespace = $2::regnamespace "
        "ORDER BY 1"
    )
    answer = queries.answer(sql, [kinds, "main"])
    assert answer.table.column(0).to_pylist() == ["customers", "orders", "v_orders"]


def test_a_relation_may_be_given_by_name_or_number(queries: CatalogQueries):
    sql = "SELECT relname FROM pg_class WHERE oid = CAST($1 AS regclass)"
    oid = value(queries, "SELECT 'orders'::regclass::oid")
    for given in ("orders", "main.orders", '"orders"', str(oid), oid):
        assert value(queries, sql, [given]) == "orders"


def test_columns_have_the_arrow_types_of_their_oids(queries: CatalogQueries):
    answer = queries.answer(
        "SELECT oid, relname, relkind, relnatts, relpages, reltuples, relhasindex, relacl, "
        "oid::regclass AS r, ARRAY[oid] AS a, count(*) OVER () AS n, now() AS t FROM pg_class "
        "WHERE relname = 'orders'"
    )
    assert answer.oids == (26, 19, 18, 21, 23, 700, 16, 1034, 2205, 1028, 20, 1184)
    kinds = [str(kind) for kind in answer.table.schema.types]
    assert kinds[:7] == ["uint32", "string", "string", "int16", "int32", "float", "bool"]
    assert answer.table.schema.field("r").type == pa.string()
    assert answer.table.schema.field("a").type.value_type == pa.uint32()
    assert isinstance(answer.table.column("t")[0].as_py(), dt.datetime)


def test_many_threads_ask_at_once():
    queries = CatalogQueries(SHOP)
    asked = [
        "SELECT count(*) FROM pg_class WHERE relnamespace = 'main'::regnamespace",
        "SELECT count(*) FROM information_schema.columns WHERE table_name = 'orders'",
        "SELECT count(*) FROM pg_tables WHERE schemaname = 'sales'",
        "SELECT count(*) FROM pg_class WHERE format_type(relnatts, NULL) IS NOT NULL AND false",
    ]
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda n: value(queries, asked[n % 4]), range(80)))
    finally:
        queries.close()
    assert found == [6, 17, 1, 0] * 20


def test_an_instance_that_was_closed_is_begun_again():
    queries = CatalogQueries(SHOP)
    assert value(queries, "SELECT count(*) FROM pg_tables WHERE schemaname = 'main'") == 2
    queries.close()
    assert value(queries, "SELECT count(*) FROM pg_tables WHERE schemaname = 'main'") == 2
    queries.close()


def test_a_catalog_of_thousands_of_columns():
    tables = tuple(
        TableFacts("main", f"t{n}", tuple(ColumnFacts(f"c{m}", "BIGINT") for m in range(50)))
        for n in range(100)
    )
    queries = CatalogQueries(CatalogFacts(tables))
    try:
        sql = "SELECT count(*) FROM information_schema.columns WHERE table_schema = 'main'"
        assert value(queries, sql) == 5000
    finally:
        queries.close()


def test_catalogs_that_two_threads_make_at_once_are_kept_once(tmp_path, monkeypatch):
    closed = []
    monkeypatch.setattr(CatalogQueries, "close", lambda each: closed.append(each))
    with a_ground(tmp_path) as ground, ground.yard.open(ground.principal("ann")) as client:
        catalogs = Catalogs()
        inner = []

        def facts(*given, **named):
            if not inner:  # another thread is faster
                inner.append(None)
                inner[0] = catalogs.of(client, "yard")
            return facts_of(*given, **named)

        monkeypatch.setattr("queryard.service.postgres.catalogs.facts_of", facts)
        assert catalogs.of(client, "yard") is inner[0]
        assert len(closed) == 1
        assert closed[0] is not inner[0]
        catalogs.close()
        assert closed[1:] == inner
