"""Sizes of staged jobs from samples: functions, correlation, skew, and laws that always hold."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from queryard.sql.catalog import Catalog, open_catalog
from queryard.sql.planner import plan_staged
from queryard.sql.statistics import quick_statistics
from queryard.sql.statistics.matching import Side, joined, matched_share

SALES, CUSTOMERS = 60_000, 2_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sales by day, of customers of which few buy often; the amount says much of the status."""
    place = tmp_path_factory.mktemp("judged")
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.3)")
        connection.execute(
            f"""CREATE TABLE sales AS
                SELECT i AS id, (floor({CUSTOMERS} * random() ** 5)::INTEGER * 7919)
                        % {CUSTOMERS} AS customer,
                    DATE '2020-01-01' + (i // 50)::INTEGER AS day,
                    floor(1000 * random() ** 3)::INTEGER AS amount,
                    ['gift', 'plain', 'late'][1 + (random() * 2.4)::INTEGER % 3] || ' ' || i % 977
                        AS note
                FROM range({SALES}) t(i)"""
        )
        connection.execute(
            f"""COPY (SELECT *, CASE WHEN amount > 300 THEN 'late' WHEN id % 3 = 0 THEN 'open'
                    ELSE 'paid' END AS status FROM sales)
                TO '{place}/sales.parquet' (ROW_GROUP_SIZE 4096)"""
        )
        connection.execute(
            f"""COPY (SELECT i AS cid, i % 40 AS country, i % 40 // 10 AS region
                FROM range({CUSTOMERS}) t(i)) TO '{place}/customers.parquet'"""
        )
    return place


@pytest.fixture(scope="module")
def catalog(folder: Path) -> Catalog:
    found = open_catalog(folder)
    for key in found.tables:
        quick_statistics(found, key)
    return found


def expected(catalog: Catalog, sql: str) -> float:
    return plan_staged(sql, catalog).jobs[-1].rows_expected


def true_rows(folder: Path, sql: str) -> float:
    with duckdb.connect() as connection:
        for name in ("sales", "customers"):
            connection.execute(f"CREATE VIEW {name} AS FROM '{folder / name}.parquet'")
        found = connection.execute(f"SELECT count(*) FROM ({sql})").fetchone()
    assert found is not None
    return float(found[0])


@pytest.mark.parametrize(
    ("sql", "factor"),
    [
        ("SELECT id FROM sales WHERE note LIKE 'gift%'", 1.1),
        ("SELECT id FROM sales WHERE length(note) = 6 AND upper(status) = 'OPEN'", 1.3),
        # As if independent: 4,000 rows.
        ("SELECT id FROM sales WHERE amount > 300 AND status = 'late'", 1.1),
        ("SELECT id FROM sales WHERE amount > 300 AND status <> 'late'", 20),  # none: half a row
        # Rows lie by day: the sample sees some days only, the histogram all.
        ("SELECT id FROM sales WHERE year(day) = 2021 AND month(day) = 6", 1.2),
        ("SELECT id FROM sales WHERE day = DATE '2021-02-03'", 1.2),
        ("SELECT id FROM sales WHERE day < DATE '2020-03-01' AND status = 'open'", 1.4),
        ("SELECT customer, count(*) FROM sales WHERE amount > 500 GROUP BY customer", 1.5),
        ("SELECT substr(note, 1, 4) k, status, count(*) FROM sales GROUP BY ALL", 1.01),
        ("SELECT country, region, count(*) FROM customers GROUP BY country, region", 1.01),
        # Bucket by bucket alone: a third of it.
        (
            "SELECT a.id FROM sales a JOIN sales b ON a.customer = b.customer AND a.amount > 990",
            1.4,
        ),
        ("SELECT id FROM sales JOIN customers ON customer = cid WHERE country < 2", 1.15),
        ("SELECT cid FROM customers WHERE cid IN (SELECT customer FROM sales)", 1.2),
        ("SELECT id FROM sales LEFT JOIN customers ON customer = cid AND region = 1", 1.05),
        ("SELECT country, region, customer FROM sales, customers WHERE cid = customer", 1.05),
        ("SELECT id FROM sales ORDER BY amount LIMIT 10", 1.01),
    ],
)
def test_sizes_are_near_the_truth(catalog: Catalog, folder: Path, sql: str, factor: float) -> None:
    found, true = max(expected(catalog, sql), 1.0), max(true_rows(folder, sql), 1.0)
    assert max(found / true, true / found) <= factor


CONDITIONS = [
    "amount > 500",
    "status = 'late'",
    "note LIKE '%9'",
    "customer % 2 = 0",
    "day >= DATE '2022-01-01'",
    "year(day) = 2020",
    "status = 'no such'",
    "customer = 17",
]


@given(st.lists(st.sampled_from(CONDITIONS), max_size=4, unique=True), st.data())
@settings(max_examples=6, deadline=None, phases=(Phase.explicit, Phase.generate))
def test_no_size_is_more_than_its_inputs_carry(catalog: Catalog, conditions, data) -> None:
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    filtered = expected(catalog, f"SELECT id, customer, status FROM sales {where}")
    assert 0 <= filtered <= SALES
    keys = data.draw(st.sampled_from(["customer", "customer, status", "year(day), note"]))
    groups = expected(catalog, f"SELECT {keys}, count(*) FROM sales {where} GROUP BY ALL")
    assert 0 <= groups <= max(filtered, 1.0) * (1 + 1e-9)
    joined = expected(catalog, f"SELECT id FROM sales JOIN customers ON customer = cid {where}")
    assert 0 <= joined <= filtered * CUSTOMERS
    some = f"SELECT id FROM sales {where + ' AND' if where else 'WHERE'} customer IN"
    matched = expected(catalog, f"{some} (SELECT cid FROM customers WHERE region = 1)")
    assert 0 <= matched <= filtered * (1 + 1e-9)
    assert expected(catalog, f"SELECT id FROM sales {where} LIMIT 7") <= 7


@st.composite
def sides(draw: st.DrawFn) -> Side:
    rows = draw(st.floats(1, 1e6))
    values = draw(st.lists(st.integers(0, 50), max_size=10, unique=True))
    weights = [draw(st.floats(0.01, 1)) for _ in values]
    whole = draw(st.floats(0, 1)) / max(sum(weights), 1e-9)
    distinct = draw(st.floats(1, rows)) + len(values)
    return Side(rows, distinct, {v: w * whole for v, w in zip(values, weights, strict=True)})


@given(sides(), sides())
def test_matches_are_shares_and_pairs(one: Side, other: Side) -> None:
    assert 0 <= joined(one, other).rows <= one.rows * other.rows * (1 + 1e-6)
    assert joined(one, other).rows == pytest.approx(joined(other, one).rows)
    assert 0 <= matched_share(one, other) <= 1
