"""What jobs leave at most, whatever they read."""

from __future__ import annotations

import math

import duckdb
import pytest

from queryard.engine.staged.times import planned_query
from queryard.sql.catalog import Catalog, open_catalog
from queryard.sql.planner import plan_staged
from queryard.sql.statistics import analyze

ROWS = 50_000


@pytest.fixture(scope="module")
def catalog(tmp_path_factory) -> Catalog:
    folder = tmp_path_factory.mktemp("bounded")
    facts = f"SELECT i, i % 25 AS k, i % 3 AS n FROM range({ROWS}) r(i)"
    duckdb.sql(f"COPY ({facts}) TO '{folder}/facts.parquet' (ROW_GROUP_SIZE 5000)")
    duckdb.sql(f"COPY (SELECT i AS k FROM range(25) r(i)) TO '{folder}/few.parquet'")
    duckdb.sql(f"COPY (SELECT i AS k FROM range(25) r(i)) TO '{folder}/lines.csv'")
    found = open_catalog(folder)
    analyze(found)
    return found


@pytest.mark.parametrize(
    ("sql", "most"),
    [
        ("SELECT i FROM facts WHERE i % 7 = 3", ROWS),
        ("SELECT i FROM facts ORDER BY i LIMIT 10", 10),
        ("SELECT count(*) FROM facts", 1),
        ("SELECT k, count(*) FROM facts WHERE i < 50 GROUP BY k", 26),
        ("SELECT k, n, count(*) FROM facts GROUP BY k, n", 26 * 4),
        ("SELECT i % 7 AS m, count(*) FROM facts GROUP BY m", ROWS),
        ("SELECT DISTINCT k FROM facts", 26),
        ("SELECT few.k FROM facts JOIN few USING (k)", 25 * ROWS),
        ("SELECT k FROM facts SEMI JOIN few USING (k)", ROWS),
        ("SELECT k FROM facts UNION ALL SELECT k FROM few", ROWS + 25),
        ("SELECT k FROM lines", math.inf),
        ("SELECT count(*) FROM (SELECT k FROM lines LIMIT 5)", 1),
    ],
)
def test_a_job_leaves_no_more_than_limits_keys_and_tables_let_it(catalog, sql, most):
    assert plan_staged(sql, catalog).jobs[-1].most_rows == pytest.approx(most)


def test_no_job_is_expected_to_leave_more_than_its_bound(catalog):
    for sql in ("SELECT k, sum(i) s FROM facts GROUP BY k ORDER BY s LIMIT 3", "SELECT k FROM few"):
        for job in plan_staged(sql, catalog).jobs:
            assert job.rows_expected <= job.most_rows


def test_the_start_of_a_task_takes_no_longer_when_there_is_more_to_read(catalog):
    sql = "SELECT i FROM facts ORDER BY i LIMIT 3"
    plan = plan_staged(sql, catalog, target_bytes=20_000)
    query = planned_query(plan)
    last = plan.jobs[-1]
    usual_s, fixed_s = query.seconds(last.name, "map"), query.jobs[last.name].fixed_s
    assert 0 < fixed_s < usual_s
    for name in last.upstream:
        query.finished(name, 3 * plan.job(name).bytes_expected)
    factor = query.size_factor(last.name)
    assert 2 < factor <= 3
    assert query.seconds(last.name, "map") == pytest.approx(fixed_s + factor * (usual_s - fixed_s))
