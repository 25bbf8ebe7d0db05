"""Partial results are put together as segments pass, so that they do not grow with the table."""

from __future__ import annotations

from pathlib import Path
from random import Random

import duckdb
import pytest
from staged_driving import LocalRun, run_one_by_one

from queryard.core.model import TaskId
from queryard.engine.staged.instance import open_instance
from queryard.sql.catalog import Catalog, open_catalog
from queryard.sql.planner import plan_staged

ROWS = 60_000
SQL = (
    "SELECT k, count(*), sum(v), avg(v), min(v), max(v), stddev(f), var_pop(f), bool_or(v > 90), "
    "bit_xor(v), count_if(v > 5) FROM facts GROUP BY k ORDER BY k",
    "SELECT count(*), sum(v), avg(f), var_samp(f) FROM facts WHERE v <> 3",
    "SELECT count(f), sum(f) FROM facts WHERE v < 0",
)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    place = tmp_path_factory.mktemp("folding")
    duckdb.sql(
        f"COPY (SELECT i % 13 AS k, (i * 7) % 101 AS v, i / 3.0 AS f FROM range({ROWS}) r(i)) "
        f"TO '{place / 'facts.parquet'}' (ROW_GROUP_SIZE 2048)"
    )
    return open_catalog(place)


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("sql", SQL)
def test_folded_partial_results_give_the_same_answer(
    catalog: Catalog, sql: str, partitions: int, tmp_path: Path
) -> None:
    plan = plan_staged(sql, catalog, target_bytes=3e3, partitions=partitions)
    assert plan.jobs[0].map_tasks > 24
    assert plan.jobs[0].fold_sql
    with open_instance(1 << 28, tmp_path) as instance, LocalRun(plan, instance, 1e8) as run:
        found = run_one_by_one(run, Random(3)).to_pylist()
    with duckdb.connect() as connection:
        file = catalog["facts"].files[0].uri
        connection.execute(f"CREATE VIEW facts AS SELECT * FROM '{file}'")
        wanted = connection.sql(sql).to_arrow_table().to_pylist()
    for mine, theirs in zip(found, wanted, strict=True):
        assert mine.keys() == theirs.keys()
        for value, other in zip(mine.values(), theirs.values(), strict=True):
            assert value == (other if other is None else pytest.approx(other, rel=1e-9))


def test_what_a_query_holds_does_not_grow_with_the_number_of_segments(
    catalog: Catalog, tmp_path: Path
) -> None:
    plan = plan_staged(SQL[0], catalog, target_bytes=3e3)
    held = []
    with open_instance(1 << 28, tmp_path) as instance, LocalRun(plan, instance, 1e8) as run:
        for index in range(plan.jobs[0].map_tasks - 1):
            run.run(TaskId(plan.jobs[0].name, "map", index))
            held.append(run.store.memory_used_bytes)
    assert max(held) <= 10 * held[0]


def test_a_map_that_runs_again_after_it_was_folded_counts_once(
    catalog: Catalog, tmp_path: Path
) -> None:
    plan = plan_staged(SQL[1], catalog, target_bytes=3e3)
    job = plan.jobs[0]
    with open_instance(1 << 28, tmp_path) as instance, LocalRun(plan, instance, 1e8) as run:
        for index in range(job.map_tasks):
            run.run(TaskId(job.name, "map", index))
            if index == 12:
                run.run(TaskId(job.name, "map", 2))
        for other in plan.jobs:
            for index in range(other.partitions):
                run.run(TaskId(other.name, "reduce", index))
        (row,) = run.result().read_all().to_pylist()
    assert next(iter(row.values())) == sum(i * 7 % 101 != 3 for i in range(ROWS))
