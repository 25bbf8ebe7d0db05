"""Distributions of values: ranges, shares and joins of them, bucket by bucket."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from planner_tables import Column, ColumnStatistics, PaperCatalog, PaperTable, Statistics

from queryard.sql.catalog import open_catalog
from queryard.sql.planner import plan_staged
from queryard.sql.statistics import analyze
from queryard.sql.statistics.distribution import Distribution, Range
from queryard.sql.statistics.model import Histogram

values = st.lists(st.integers(0, 40), min_size=1, max_size=200)


def spread_of(numbers: list[int], buckets: int | None = None) -> Distribution:
    """As `analyze` would make it: a bucket per value, or fewer."""
    low, high = min(numbers), max(numbers)
    many = high - low + 1 if buckets is None else buckets
    counts, seen = [0.0] * many, [set() for _ in range(many)]
    for number in numbers:
        at = 0 if high == low else min(many - 1, (number - low) * many // (high - low))
        counts[at] += 1
        seen[at].add(number)
    distincts = tuple(float(len(each)) for each in seen)
    found = Distribution.of(Histogram(low, high, tuple(counts), distincts), float(len(numbers)))
    assert found is not None
    return found


@given(values, st.integers(-2, 42), st.integers(-2, 42), st.booleans(), st.booleans())
def test_where_each_value_has_a_bucket_ranges_are_exact(
    numbers: list[int], low: int, high: int, with_low: bool, with_high: bool
) -> None:
    asked = Range(low, high, with_low, with_high)
    expected = sum(
        (low < n or (with_low and n == low)) and (n < high or (with_high and n == high))
        for n in numbers
    )
    assert spread_of(numbers).rows_in(asked) == pytest.approx(expected)


@given(values, values)
@example([0, 1], [0])
def test_where_each_value_has_a_bucket_joins_are_exact(one: list[int], other: list[int]) -> None:
    mine, theirs = Counter(one), Counter(other)
    expected = sum(mine[value] * theirs[value] for value in mine)
    joined = spread_of(one).joined(spread_of(other))
    assert joined.rows == pytest.approx(expected)
    matched = sum(count for value, count in mine.items() if value in theirs) / len(one)
    assert spread_of(one).matched_share(spread_of(other)) == pytest.approx(matched)


@given(values, values, st.integers(2, 9), st.integers(2, 9), st.floats(0.01, 1.0))
@example([20], [0], 2, 2, 1.0)
def test_whatever_the_buckets_nothing_is_claimed_that_the_inputs_cannot_carry(
    one: list[int], other: list[int], many: int, others: int, share: float
) -> None:
    mine, theirs = spread_of(one, many), spread_of(other, others)
    assert mine.rows == pytest.approx(len(one))
    for joined in (mine.joined(theirs), theirs.joined(mine)):
        assert -1e-9 <= joined.rows <= len(one) * len(other) + 1e-6
        assert joined.distinct <= min(mine.distinct, theirs.distinct) + 1e-6
    assert mine.joined(theirs).rows == pytest.approx(theirs.joined(mine).rows)
    kept = mine.kept(share)
    assert kept.rows == pytest.approx(len(one) * share)
    assert 0 <= kept.distinct <= mine.distinct + 1e-9
    assert 0 <= mine.matched_share(theirs) <= 1
    below, above = Range(high=20.0, with_high=False), Range(low=20.0)
    whole = mine.rows_in(below) + mine.rows_in(above)
    assert whole == pytest.approx(mine.rows)


def tpch_on_paper(scale: float) -> PaperCatalog:
    """nation, supplier and partsupp, with the statistics that `analyze` finds."""

    def even(low: int, high: int, rows: float) -> ColumnStatistics:
        buckets = min(64, high - low + 1)
        distinct = float(high - low + 1)
        shape = Histogram(low, high, (rows / buckets,) * buckets, (distinct / buckets,) * buckets)
        return ColumnStatistics(distinct, low, high, histogram=shape)

    suppliers, parts = round(10_000 * scale), round(200_000 * scale)
    tables = {
        "nation": (25.0, {"n_nationkey": even(0, 24, 25.0), "n_name": ColumnStatistics(25.0)}),
        "supplier": (
            10_000.0 * scale,
            {
                "s_suppkey": even(1, suppliers, 1e4 * scale),
                "s_nationkey": even(0, 24, 1e4 * scale),
            },
        ),
        "partsupp": (
            800_000.0 * scale,
            {
                "ps_partkey": even(1, parts, 8e5 * scale),
                "ps_suppkey": even(1, suppliers, 8e5 * scale),
                "ps_availqty": even(1, 9999, 8e5 * scale),
            },
        ),
    }

    class Analysed(PaperCatalog):
        def statistics(self, name: str) -> Statistics:
            rows, columns = tables[name]
            return Statistics(rows, rows * 50, columns)

    return Analysed(
        *(
            PaperTable(
                name,
                [Column(c, "VARCHAR" if c == "n_name" else "INTEGER") for c in columns],
                rows,
                rows * 50,
            )
            for name, (rows, columns) in tables.items()
        )
    )


def test_the_worked_example_of_tls() -> None:
    """Figures of the paper at scale factor 1: 96 %, 9,600, 768,000 and 200,000."""
    catalog = tpch_on_paper(1.0)
    first = "nation JOIN supplier ON n_nationkey = s_nationkey"
    both = f"{first} JOIN partsupp ON s_suppkey = ps_suppkey"
    where = "WHERE n_name <> 'CHINA'"
    rows = {
        "nation": plan_staged(f"SELECT n_nationkey FROM nation {where}", catalog),
        "first": plan_staged(f"SELECT s_suppkey FROM {first} {where}", catalog),
        "second": plan_staged(f"SELECT ps_partkey FROM {both} {where}", catalog),
        "groups": plan_staged(
            f"SELECT ps_partkey, sum(ps_availqty) FROM {both} {where} GROUP BY ps_partkey", catalog
        ),
    }
    found = {name: plan.jobs[-1].rows_expected for name, plan in rows.items()}
    assert found == {
        "nation": pytest.approx(24),
        "first": pytest.approx(9_600),
        "second": pytest.approx(768_000),
        "groups": pytest.approx(200_000, rel=1e-3),
    }


@pytest.fixture(scope="module")
def skewed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tables with keys of which few are frequent, one with nulls."""
    folder = tmp_path_factory.mktemp("skewed")
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.4)")
        for name, rows, power in (("facts", 100_000, 4), ("more", 20_000, 3)):
            connection.execute(
                f"""COPY (
                    SELECT floor(1000 * random() ** {power})::INTEGER AS k,
                        CASE WHEN random() < 0.3 THEN NULL ELSE i % 50 END AS n,
                        DATE '2020-01-01' + floor(3000 * random() ** 2)::INTEGER AS day
                    FROM range({rows}) r(i)
                ) TO '{folder / name}.parquet' (ROW_GROUP_SIZE 10000)"""
            )
    return folder


@pytest.mark.parametrize(
    ("sql", "factor"),
    [
        ("SELECT k FROM facts WHERE k < 50", 1.05),
        ("SELECT k FROM facts WHERE k >= 900", 1.3),
        ("SELECT k FROM facts WHERE k <> 0", 1.2),
        ("SELECT k FROM facts WHERE k BETWEEN 100 AND 300 AND n IS NOT NULL", 1.1),
        ("SELECT k FROM facts WHERE day < DATE '2021-01-01'", 1.1),
        ("SELECT k FROM facts WHERE NOT (day >= DATE '2021-01-01')", 1.1),
        ("SELECT k FROM facts WHERE n IN (1, 2, 3)", 1.1),
        ("SELECT k FROM facts WHERE n <> 7", 1.1),
        ("SELECT n, count(*) FROM facts WHERE k < 3 GROUP BY n", 1.1),
        # How uneven the values of one bucket are is not known; by distinct counts it were 20.
        ("SELECT f.k FROM facts f JOIN more m ON f.k = m.k", 3.5),
        ("SELECT year(day), count(*) FROM facts GROUP BY ALL", 1.2),
        ("SELECT date_trunc('month', day) AS m, count(*) FROM facts GROUP BY ALL", 1.1),
        ("SELECT month(day) AS m, k % 7 AS r, count(*) FROM facts GROUP BY ALL", 1.1),
        ("SELECT CASE WHEN k < 5 THEN 'a' ELSE 'b' END AS c, count(*) FROM facts GROUP BY c", 1.1),
        ("SELECT f.k FROM facts f JOIN more m ON f.k = m.k WHERE m.k > 200", 1.3),
        ("SELECT f.k FROM facts f SEMI JOIN more m ON f.k = m.k", 1.2),
        ("SELECT f.k FROM facts f LEFT JOIN more m ON f.k = m.k AND m.k > 200", 2.5),
    ],
)
def test_skewed_columns_are_judged_by_their_histograms(
    skewed: Path, sql: str, factor: float
) -> None:
    catalog = open_catalog(skewed)
    analyze(catalog)
    with duckdb.connect() as connection:
        for name in ("facts", "more"):
            connection.execute(f"CREATE VIEW {name} AS FROM '{skewed / name}.parquet'")
        ((real,),) = connection.execute(f"SELECT count(*) FROM ({sql})").fetchall()
    planned = plan_staged(sql, catalog).jobs[-1].rows_expected
    assert max(planned / real, real / planned) <= factor, (planned, real)
