"""Which queries of TPC-H are answered online, and that all files together give DuckDB's answer."""

from __future__ import annotations

import pytest
from online_yard import OnlineYard

from queryard.sql.online import NotOnline
from queryard.workload.tpch import TABLES, generate, query

ONLINE = (1, 3, 5, 6, 7, 8, 9, 10, 12, 14, 19)
REFUSED = {
    2: "an inner aggregate reads partsupp, too",
    4: "rows of lineitem, the largest table, are only looked for",
    11: "an inner aggregate reads partsupp, too",
    13: "an aggregate of an aggregate over orders",
    15: "an inner aggregate reads lineitem, too",
    16: "ORDER BY a quantile, minimum, maximum or count of distinct values",
    17: "an inner aggregate reads lineitem, too",
    18: "an inner aggregate reads lineitem, too",
    20: "a semi join of groups of lineitem with other rows",
    21: "lineitem is read 3 times",
    22: "rows of orders, the largest table, are only looked for",
}


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> OnlineYard:
    folder = tmp_path_factory.mktemp("tpch")
    generate(folder, 0.01)
    return OnlineYard(folder, TABLES)


@pytest.mark.parametrize("number", ONLINE)
def test_all_files_together_give_the_exact_answer(yard: OnlineYard, number: int):
    plan = yard.assert_exact(query(number), ordered=number not in (3, 10))
    assert plan.table == "lineitem"


@pytest.mark.parametrize("number", REFUSED)
def test_what_cannot_be_estimated_is_refused_with_a_reason(yard: OnlineYard, number: int):
    with pytest.raises(NotOnline) as refused:
        yard.plan(query(number))
    assert REFUSED[number] in refused.value.reason


def test_estimates_of_half_the_files_are_near(yard: OnlineYard):
    plan = yard.plan(query(1))
    found = yard.estimated(plan, read=6)
    exact = yard.native.sql(query(1)).fetchall()
    assert len(found.rows) == len(exact)
    assert found.error is not None
    assert 0 < found.error < 0.5
    for row, wanted in zip(found.rows, exact, strict=True):
        assert row.values[:2] == wanted[:2]
        assert row.settled is True
        for each, true in zip(row.estimates[2:], wanted[2:], strict=True):
            assert each is not None
            assert each.value == pytest.approx(float(true), rel=0.2)


def test_once_all_files_are_read_the_estimates_are_the_answer(yard: OnlineYard):
    plan = yard.plan(query(1))
    found = yard.estimated(plan, read=8)
    assert found.error == 0
    for row, wanted in zip(found.rows, yard.native.sql(query(1)).fetchall(), strict=True):
        assert [float(v) for v in row.values[2:]] == pytest.approx([float(v) for v in wanted[2:]])


def test_groups_of_few_rows_have_no_interval(yard: OnlineYard):
    found = yard.estimated(yard.plan(query(3)), read=6)
    assert found.error is None
    assert found.notes == {"few rows": 10}
    assert found.unsettled >= 10


def test_dimensions_are_filtered_before_they_are_joined(yard: OnlineYard):
    plan = yard.plan(query(3))
    (dimension,) = plan.dimensions
    assert set(dimension.tables) == {"customer", "orders"}
    kept = yard.native.sql(f"SELECT count(*) FROM {dimension.name}").fetchall()[0][0]
    assert 0 < kept < 2_000  # of 15,000 orders
    assert set(plan.columns) == {"l_orderkey", "l_shipdate", "l_extendedprice", "l_discount"}


def test_a_large_dimension_is_thinned_out_by_a_small_one(yard: OnlineYard):
    plan = yard.plan(query(5))
    rows = [
        yard.native.sql(f"SELECT count(*) FROM {d.name}").fetchall()[0][0] for d in plan.dimensions
    ]
    of_asia = yard.native.sql(
        "SELECT count(*) FROM orders JOIN customer ON o_custkey = c_custkey "
        "WHERE year(o_orderdate) = 1994 AND c_nationkey IN "
        "(SELECT n_nationkey FROM nation WHERE n_regionkey = 2)"
    ).fetchall()[0][0]
    assert max(rows) == of_asia
