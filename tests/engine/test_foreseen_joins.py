"""Rows of joins in DuckDB's plans, foreseen from frequent values and buckets of their keys."""

from __future__ import annotations

import duckdb
import pytest

from queryard.engine.planning import Planner
from queryard.engine.syntax.classify import classify
from queryard.sql.catalog import Catalog, open_catalog
from queryard.sql.planner import plan_staged
from queryard.sql.statistics import analyze, quick_statistics

TABLES = {
    # Half of the sales are of a hundredth of the customers; days are written as numbers.
    "sales": """SELECT floor(2000 * random() ** 7)::INTEGER AS customer,
        (strftime(DATE '2018-01-01' + (i % 2500)::INTEGER, '%Y%m%d'))::INTEGER AS day,
        i % 4 AS way FROM range(120_000) r(i)""",
    # Tables with the same columns, the second with fewer rows.
    "facts": "SELECT floor(1000 * random() ** 4)::INTEGER AS k, i % 50 AS n "
    "FROM range(100_000) r(i)",
    "more": "SELECT floor(1000 * random() ** 3)::INTEGER AS k, i % 40 AS n FROM range(20_000) r(i)",
    # Values that come about equally often, most of them in one tenth of their range.
    "dense": "SELECT CASE WHEN i % 10 < 9 THEN i * 7919 % 400 ELSE i * 7919 % 4000 END AS d "
    "FROM range(60_000) r(i)",
    "denser": "SELECT CASE WHEN i % 10 < 8 THEN i * 7907 % 400 ELSE i * 7907 % 4000 END AS d "
    "FROM range(12_000) r(i)",
    "customers": "SELECT range AS id, range % 40 AS country FROM range(2000)",
    "days": """SELECT (strftime(moment, '%Y%m%d'))::INTEGER AS day, year(moment) AS year,
        year(moment) * 100 + month(moment) AS month
        FROM (SELECT unnest(range(DATE '2018-01-01', DATE '2025-01-01', INTERVAL 1 DAY)) AS moment)
        """,
}
QUERIES = {
    "keys skewed on both sides": ("SELECT f.k FROM facts f JOIN more m ON f.k = m.k", 1.2),
    "only the most frequent key": (
        "SELECT f.k FROM facts f JOIN more m ON f.k = m.k WHERE m.k = 0",
        1.2,
    ),
    "without frequent keys": (
        "SELECT f.k FROM facts f JOIN more m ON f.k = m.k WHERE m.k > 200",
        1.3,
    ),
    "a filter on another column": (
        "SELECT f.k FROM facts f JOIN more m ON f.k = m.k WHERE m.n = 3",
        1.5,
    ),
    "a chain that shares its key": (
        "SELECT f.k FROM facts f JOIN more m ON f.k = m.k JOIN sales s ON m.k = s.customer "
        "WHERE f.k BETWEEN 100 AND 300",
        2.0,
    ),
    "dense buckets": ("SELECT a.d FROM dense a JOIN denser b ON a.d = b.d", 1.3),
    "a range of a dimension": (
        "SELECT way FROM sales s JOIN days d ON s.day = d.day WHERE year = 2020",
        1.2,
    ),
    "a month of numbers with gaps": (
        "SELECT way FROM sales s JOIN days d ON s.day = d.day WHERE month = 202002",
        1.3,
    ),
    "a few keys of a skewed column": (
        "SELECT way FROM sales s JOIN customers c ON s.customer = c.id WHERE country = 0",
        1.3,
    ),
    "a few keys without the frequent one": (
        "SELECT way FROM sales s JOIN customers c ON s.customer = c.id WHERE country = 7",
        2.0,
    ),
    "keys that are there": (
        "SELECT id FROM customers c SEMI JOIN sales s ON s.customer = c.id AND s.way = 1",
        1.5,
    ),
}


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("joined")
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SELECT setseed(0.4)")
        for name, sql in TABLES.items():
            connection.execute(f"COPY ({sql}) TO '{folder / name}.parquet' (ROW_GROUP_SIZE 10000)")
    found = open_catalog(folder)
    for key in found.tables:
        quick_statistics(found, key)
    return found


def counted(catalog: Catalog, sql: str) -> float:
    with duckdb.connect() as connection:
        for table in catalog.tables.values():
            connection.execute(f'CREATE VIEW "{table.name}" AS FROM {table.relation}')
        return float(connection.execute(f"SELECT count(*) FROM ({sql})").fetchall()[0][0])


@pytest.mark.parametrize("name", QUERIES)
def test_joins_are_foreseen_within_a_factor(catalog: Catalog, name: str) -> None:
    sql, factor = QUERIES[name]
    real = counted(catalog, sql)
    planner = Planner(catalog)
    features = planner.features(classify(sql)[0])
    planner.close()
    assert features is not None
    foreseen = features.operators[0].rows
    assert max(foreseen / real, real / foreseen) <= factor, (foreseen, real)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k FROM facts WHERE k > 0",
        "SELECT k FROM facts WHERE k < 700",
        "SELECT f.k FROM facts f JOIN more m ON f.k = m.k",
        "SELECT f.k FROM facts f JOIN more m ON f.k = m.k WHERE f.k BETWEEN 100 AND 700",
    ],
)
def test_analysed_skew_is_planned_as_it_is(catalog: Catalog, sql: str) -> None:
    analyze(catalog)
    planned = plan_staged(sql, catalog).jobs[-1].rows_expected
    real = counted(catalog, sql)
    assert max(planned / real, real / planned) <= 1.3, (planned, real)


def test_tables_with_equal_columns_are_told_apart_by_all_their_rows(catalog: Catalog) -> None:
    planner = Planner(catalog)
    statement = classify("SELECT f.k FROM facts f JOIN more m ON f.k = m.k")[0]
    features = planner.features(statement)
    planner.close()
    assert features is not None
    assert {scan.table for scan in features.scans} == {
        key for key, table in catalog.tables.items() if table.name in ("facts", "more")
    }
