"""Rows of DuckDB's plans, foreseen from statistics and samples, beside those that were counted."""

from __future__ import annotations

import json
import math

import duckdb
import pytest

from queryard.engine.planning import Planner
from queryard.engine.plans.features import PlanAmounts
from queryard.engine.plans.tables import TableFacts
from queryard.engine.plans.tree import PlanNames, root_of
from queryard.engine.syntax.aliases import aliases
from queryard.engine.syntax.classify import classify
from queryard.estimate.prices import Features
from queryard.sql.catalog import Catalog, open_catalog
from queryard.sql.statistics.quick import quick_statistics

ORDERS = 60_000


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Catalog:
    """A skewed and correlated pair of facts and two dimensions, sampled."""
    folder = tmp_path_factory.mktemp("shop")
    tables = {
        "cities": "SELECT range AS city_id, 'city ' || range % 40 AS city, "
        "'land ' || range % 8 AS land FROM range(400)",
        "people": "SELECT range AS person_id, (hash(range) % 400)::BIGINT AS home, "
        "'p' || range AS name FROM range(5000)",
        "orders": "SELECT range AS order_id, (hash(range) % 5000)::BIGINT AS buyer, "
        "TIMESTAMP '2024-01-01' + INTERVAL (range) MINUTE AS moment, "
        "CASE WHEN hash(range) % 10 = 0 THEN 'returned' ELSE 'kept' END AS state, "
        "repeat('word ', (range % 7)::INTEGER) || CASE WHEN range % 20 = 0 THEN 'gift' ELSE '' END "
        f"AS note, hash(range) % 1000 AS price FROM range({ORDERS})",
    }
    for name, sql in tables.items():
        duckdb.sql(f"COPY ({sql}) TO '{folder}/{name}.parquet' (ROW_GROUP_SIZE 6000)")
    catalog = open_catalog(folder)
    for key in catalog.tables:
        quick_statistics(catalog, key)
    return catalog


def foreseen(catalog: Catalog, sql: str) -> Features:
    planner = Planner(catalog)
    found = planner.features(classify(sql)[0])
    planner.close()
    assert found is not None
    return found


def counted(catalog: Catalog, sql: str) -> Features:
    """The same of a query that has run, with rows as they were."""
    connection = duckdb.connect(config={"threads": 1})
    for table in catalog.tables.values():
        connection.execute(f'CREATE VIEW "{table.name}" AS FROM {table.relation}')
    ran = connection.execute(f"EXPLAIN (ANALYZE, FORMAT json) {sql}").fetchall()[0][1]
    root = root_of(json.loads(ran))
    assert root is not None
    names = PlanNames(catalog, classify(sql)[0].names)
    facts = {key: TableFacts(catalog[key], catalog.statistics(key)) for key in names.columns}
    return PlanAmounts(names, facts, None, aliases(sql), counted=True).of(root)


QUERIES = {
    "a function of a column": "SELECT count(*) FROM orders WHERE note LIKE '%gift%'",
    "two conditions": "SELECT price FROM orders WHERE state = 'returned' AND price < 100",
    "a range that lies together": "SELECT price FROM orders "
    "WHERE moment >= TIMESTAMP '2024-01-10' AND moment < TIMESTAMP '2024-01-12'",
    "a filter that a join hands down": "SELECT sum(price) FROM orders "
    "JOIN people ON buyer = person_id JOIN cities ON home = city_id WHERE land = 'land 3'",
    "a semi join": "SELECT count(*) FROM orders WHERE buyer IN "
    "(SELECT person_id FROM people JOIN cities ON home = city_id WHERE city = 'city 7')",
    "groups of one table": "SELECT land, city, count(*) FROM cities GROUP BY ALL",
    "groups of a filtered table": "SELECT land, count(*) FROM people JOIN cities "
    "ON home = city_id WHERE land IN ('land 1', 'land 2') GROUP BY land",
    "groups by a name that hides a column": "SELECT date_trunc('day', moment) AS moment, count(*) "
    "FROM orders GROUP BY 1",
    "a common table joined with itself": "WITH t AS MATERIALIZED (SELECT buyer AS k, state AS s, "
    "count(*) AS n FROM orders GROUP BY ALL) "
    "SELECT count(*) FROM t a JOIN t b ON a.k = b.k AND a.s = b.s",
    "a rank": "SELECT count(*), sum(price) FROM (SELECT price FROM orders "
    "QUALIFY rank() OVER (PARTITION BY buyer ORDER BY moment) <= 3)",
    "the row before": "SELECT sum(p) FROM (SELECT lag(price) OVER (PARTITION BY state "
    "ORDER BY moment) AS p FROM orders) WHERE p IS NOT NULL",
    "groups of few rows": "SELECT count(*), sum(n) FROM (SELECT buyer, count(*) AS n FROM orders "
    "WHERE order_id % 10 = 0 GROUP BY buyer HAVING count(*) > 1)",
    "groups of a large sum": "SELECT count(*) FROM (SELECT buyer FROM orders "
    "GROUP BY buyer HAVING sum(price) > 8000)",
    "a function of a column of a table that a join sifts": "SELECT sum(price) FROM orders "
    "JOIN people ON buyer = person_id WHERE name LIKE 'p1%' AND price % 20 = 0",
    "a union": "SELECT d, count(*) FROM (SELECT 'a' AS s, date_trunc('day', moment) AS d "
    "FROM orders UNION ALL SELECT 'b', date_trunc('day', moment) FROM orders) GROUP BY d",
}


@pytest.mark.parametrize("name", QUERIES)
def test_rows_of_all_operators_are_foreseen_within_a_factor(shop, name):
    expected, real = (f(shop, QUERIES[name]) for f in (foreseen, counted))
    assert len(expected.operators) == len(real.operators)
    for mine, its in zip(expected.operators, real.operators, strict=True):
        if its.amounts and its.rows > 0:  # common tables and unions are no operators of their own
            assert abs(math.log(max(mine.rows, 1) / max(its.rows, 1))) < math.log(3.0), (mine, its)


def test_an_outer_join_has_the_rows_of_both_sides_without_a_partner(shop):
    sql = (
        "SELECT * FROM (SELECT * FROM orders WHERE order_id % 50 = 0) "
        "FULL JOIN (SELECT * FROM people WHERE name LIKE 'p1%') ON buyer = person_id"
    )
    assert foreseen(shop, sql).rows == pytest.approx(counted(shop, sql).rows, rel=0.15)


def test_a_filter_on_a_key_that_is_no_range_leaves_rows_without_a_partner(shop):
    sql = (
        "SELECT * FROM cities ANTI JOIN (SELECT * FROM people WHERE home % 8 = 0) ON city_id = home"
    )
    assert foreseen(shop, sql).rows == pytest.approx(counted(shop, sql).rows, rel=0.15)


def test_a_join_without_a_sample_still_has_finite_rows(tmp_path):
    duckdb.sql(f"COPY (SELECT range AS a FROM range(1000)) TO '{tmp_path}/t.parquet'")
    found = foreseen(open_catalog(tmp_path), "SELECT count(*) FROM t x JOIN t y ON x.a = y.a + 1")
    assert all(0 <= operator.rows <= 1e6 for operator in found.operators)


def test_a_scan_that_joins_sift_reads_less_and_keeps_a_doubt(shop):
    all_of_it = foreseen(shop, "SELECT sum(price) FROM orders JOIN people ON buyer = person_id")
    some = foreseen(
        shop,
        "SELECT sum(price) FROM orders JOIN people ON buyer = person_id WHERE name LIKE 'p12%'",
    )
    assert some.amounts["indexed_rows"] < 0.2 * all_of_it.amounts["indexed_rows"]
    assert max(operator.doubt for operator in some.operators) > 0


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT a + 1 AS b FROM t", {"b": "a + 1"}),
        ("SELECT upper(x.a) b, c FROM t x", {"b": "upper(a)"}),
        ('SELECT "A b" || \'AS c\' AS "Q" FROM t AS u', {"q": "\"A b\" || 'AS c'"}),
        ("WITH w AS (SELECT a AS k FROM t) SELECT k FROM w AS v", {"k": "a"}),
        ("SELECT a -- AS b\n FROM t /* AS c */", {}),
        ("SELECT (SELECT max(a) FROM t) AS m", {"m": "(SELECT max(a) FROM t)"}),
        ("", {}),
        (")) AS", {}),
    ],
)
def test_names_of_expressions(sql, found):
    assert aliases(sql) == found
