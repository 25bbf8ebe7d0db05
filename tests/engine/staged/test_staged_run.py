"""Tasks can be run again, in any order and by many threads, cancelled, and leave nothing behind."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pytest
from long_forms import some_of
from staged_driving import LocalRun, assert_same, run_one_by_one
from staged_grammar import TABLES
from staged_tables import make_tables

from queryard.core.model import TaskId
from queryard.engine.errors import QueryCancelled, QueryFailed
from queryard.engine.staged.exchange import Superseded
from queryard.engine.staged.store import MissingRows
from queryard.sql.catalog import Catalog, open_catalog
from queryard.sql.planner import StagedPlan, plan_staged

QUERY = """
    SELECT d.name, count(*) AS n, sum(f.m) AS total, avg(f.x) AS mean
    FROM fact f JOIN dim d ON f.k = d.k LEFT JOIN other o ON o.k = f.g
    WHERE f.id > 3 GROUP BY d.name ORDER BY total, d.name
"""
SLOW = "SELECT count(*) FROM big a JOIN big b ON a.x % 7 <> b.x"


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("run")
    make_tables(folder, TABLES, seed=2)
    with duckdb.connect() as connection:
        path = folder / "big.parquet"
        connection.execute(f"COPY (SELECT i AS x FROM range(300000) t(i)) TO '{path}'")
    return open_catalog(folder)


@pytest.fixture
def instance() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


@pytest.fixture(scope="module")
def plan(catalog: Catalog) -> StagedPlan:
    return plan_staged(QUERY, catalog, target_bytes=1, partitions=3, broadcast_bytes=0)


@pytest.fixture(scope="module")
def shared_plan(catalog: Catalog) -> StagedPlan:
    return plan_staged(QUERY, catalog, target_bytes=1, partitions=2)


@pytest.fixture
def expected(catalog: Catalog) -> pa.Table:
    with duckdb.connect() as connection:
        for name in TABLES:
            connection.execute(f"CREATE VIEW {name} AS FROM {catalog[name].relation}")
        return connection.sql(QUERY).to_arrow_table()


def tasks(plan: StagedPlan) -> Iterator[TaskId]:
    for job in plan.jobs:
        yield from (TaskId(job.name, "map", i) for i in range(job.map_tasks))
        yield from (TaskId(job.name, "reduce", i) for i in range(job.partitions))


def schemas(instance: duckdb.DuckDBPyConnection) -> int:
    rows = instance.execute("SELECT count(*) FROM duckdb_schemas() WHERE NOT internal").fetchone()
    assert rows is not None
    return int(rows[0])


@pytest.mark.parametrize("seed", some_of(range(8), 3))
def test_any_order_the_jobs_allow_gives_the_answer(
    plan: StagedPlan, instance: duckdb.DuckDBPyConnection, expected: pa.Table, seed: int
) -> None:
    with LocalRun(plan, instance, 1e9) as run:
        assert_same(run_one_by_one(run, Random(seed)), expected, ordered=True)


@pytest.mark.parametrize("memory_bytes", [0.0, 1e9])
def test_running_tasks_again_changes_nothing(
    shared_plan: StagedPlan,
    instance: duckdb.DuckDBPyConnection,
    expected: pa.Table,
    memory_bytes: float,
) -> None:
    rng = Random(5)
    done: list[TaskId] = []
    with LocalRun(shared_plan, instance, memory_bytes) as run:
        for task in tasks(shared_plan):
            first = run.run(task)
            done.append(task)
            again = run.run(rng.choice(done))
            assert run.run(task).rows == first.rows
            assert again.seconds > 0
        assert_same(run.result().read_all(), expected, ordered=True)


def test_many_threads_run_tasks_at_once(
    shared_plan: StagedPlan, instance: duckdb.DuckDBPyConnection, expected: pa.Table
) -> None:
    def work(task: TaskId) -> None:
        with contextlib.suppress(Superseded):  # by the same task on another thread
            run.run(task)

    with LocalRun(shared_plan, instance, 1e9) as run:
        for job in shared_plan.jobs:
            for kind, count in (("map", job.map_tasks), ("reduce", job.partitions)):
                every = [TaskId(job.name, kind, i % count) for i in range(2 * count)]  # type: ignore[arg-type]
                threads = [threading.Thread(target=work, args=(task,)) for task in every]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
        assert_same(run.result().read_all(), expected, ordered=True)


def test_build_sides_are_made_once(
    shared_plan: StagedPlan, instance: duckdb.DuckDBPyConnection
) -> None:
    builds = {name for job in shared_plan.jobs for name in job.builds}
    assert builds
    with LocalRun(shared_plan, instance, 1e9) as run:
        run_one_by_one(run)
        found = instance.execute(
            "SELECT table_name FROM duckdb_tables() WHERE schema_name LIKE 'staged_%'"
        ).fetchall()
        assert {name for (name,) in found} == {f"build_{name}" for name in builds}


def test_actual_figures_are_known_for_every_job(
    plan: StagedPlan, instance: duckdb.DuckDBPyConnection, expected: pa.Table
) -> None:
    with LocalRun(plan, instance, 1e9) as run:
        run_one_by_one(run)
        actuals = run.query.actuals()
    assert list(actuals) == [job.name for job in plan.jobs]
    for job in plan.jobs:
        assert actuals[job.name].tasks_done == job.map_tasks + job.partitions
        assert actuals[job.name].seconds > 0
    assert actuals[plan.jobs[-1].name].rows == expected.num_rows


def test_nothing_is_left_behind(
    plan: StagedPlan, instance: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    before = schemas(instance)
    with LocalRun(plan, instance, memory_bytes=0, temp=tmp_path) as run:
        run_one_by_one(run)
        assert run.store.spilled_bytes > 0
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())
    assert schemas(instance) == before


def test_two_runs_share_an_instance(
    shared_plan: StagedPlan, instance: duckdb.DuckDBPyConnection, expected: pa.Table
) -> None:
    with LocalRun(shared_plan, instance, 1e9) as one, LocalRun(shared_plan, instance, 0) as two:
        for task in tasks(shared_plan):
            one.run(task)
            two.run(task)
        assert_same(one.result().read_all(), expected, ordered=True)
        assert_same(two.result().read_all(), expected, ordered=True)


def test_a_task_before_its_inputs_is_an_error(
    plan: StagedPlan, instance: duckdb.DuckDBPyConnection
) -> None:
    with LocalRun(plan, instance, 1e9) as run, pytest.raises(MissingRows):
        run.run(TaskId(plan.jobs[-1].name, "map", 0))


def test_an_error_is_duckdbs_and_the_instance_stays_usable(
    catalog: Catalog, instance: duckdb.DuckDBPyConnection
) -> None:
    plan = plan_staged("SELECT CAST(s AS INTEGER) FROM fact", catalog, target_bytes=1)
    with LocalRun(plan, instance, 1e9) as run:
        with pytest.raises(QueryFailed, match="Could not convert string"):
            run_one_by_one(run)
        assert instance.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, (SELECT k FROM dim) FROM fact",
        "SELECT k, (SELECT k FROM dim) FROM void",
        "SELECT id FROM fact WHERE id < -1000 AND k = (SELECT k FROM dim)",
        "SELECT k FROM void WHERE k = (SELECT k FROM dim)",
        "SELECT id, CASE WHEN id < -1000 THEN (SELECT k FROM dim) END FROM fact",
        "SELECT id, coalesce(id, (SELECT k FROM dim)) FROM fact",
        "SELECT k, (SELECT max(k) FROM fact GROUP BY k) FROM void",
        "SELECT k, (SELECT k FROM fact LIMIT 2) FROM void",
        "SELECT k, (SELECT k FROM dim UNION ALL SELECT k FROM fact) FROM void",
        "SELECT k, count(*) FROM void GROUP BY k HAVING count(*) > (SELECT k FROM dim)",
        "SELECT id FROM fact WHERE k IN (SELECT k FROM void WHERE k = (SELECT k FROM dim))",
        "SELECT k FROM fact UNION ALL SELECT (SELECT k FROM dim) FROM void",
        "SELECT s.v FROM (SELECT k, (SELECT k FROM dim) AS v FROM fact) s JOIN void USING (k)",
    ],
)
@pytest.mark.parametrize(
    "options", [{}, {"target_bytes": 1, "partitions": 3}, {"broadcast_bytes": 0, "partitions": 2}]
)
def test_a_second_row_of_a_scalar_subquery_is_an_error(
    catalog: Catalog, instance: duckdb.DuckDBPyConnection, sql: str, options: dict[str, int]
) -> None:
    with duckdb.connect() as native:
        for name in TABLES:
            native.execute(f"CREATE VIEW {name} AS FROM {catalog[name].relation}")
        with pytest.raises(duckdb.Error, match="More than one row"):
            native.execute(sql).fetchall()
    plan = plan_staged(sql, catalog, **options)
    with (
        LocalRun(plan, instance, 1e9) as run,
        pytest.raises(QueryFailed, match="More than one row"),
    ):
        run_one_by_one(run)


def test_an_error_in_the_middle_of_a_stream_leaves_nothing(
    catalog: Catalog, instance: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    sql = "SELECT x, CASE WHEN x = 250000 THEN CAST('a' || x AS INTEGER) END FROM big"
    plan = plan_staged(sql, catalog)
    with LocalRun(plan, instance, 0, tmp_path) as run:
        with pytest.raises(QueryFailed, match="Could not convert string 'a250000'"):
            run_one_by_one(run)
        assert run.store.spilled_bytes > 0
        assert not list(tmp_path.rglob("*.arrow"))
        assert run.store.memory_used_bytes == 0
        assert instance.execute("SELECT 1").fetchone() == (1,)


def test_build_sides_are_not_kept_twice(
    shared_plan: StagedPlan, instance: duckdb.DuckDBPyConnection
) -> None:
    with LocalRun(shared_plan, instance, 1e9) as run:
        run_one_by_one(run)
        kept_bytes = sum(
            found.bytes + found.shuffled_bytes for found in run.query.actuals().values()
        )
        assert 0 < run.store.memory_used_bytes < kept_bytes


def test_cancel_stops_running_tasks_at_once(
    catalog: Catalog, instance: duckdb.DuckDBPyConnection
) -> None:
    plan = plan_staged(SLOW, catalog)
    errors: list[BaseException] = []

    def work(run: LocalRun) -> None:
        try:
            run_one_by_one(run)
        except QueryCancelled as error:
            errors.append(error)

    with LocalRun(plan, instance, 1e9) as run:
        threads = [threading.Thread(target=work, args=(run,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        started_s = time.monotonic()
        run.node.cancel()
        for thread in threads:
            thread.join()
        assert time.monotonic() - started_s < 1.0
        assert len(errors) == 2
        with pytest.raises(QueryCancelled):
            run.run(TaskId(plan.jobs[0].name, "map", 0))
    assert instance.execute("SELECT 1").fetchone() == (1,)


def test_frames_are_read_by_tasks(instance: duckdb.DuckDBPyConnection) -> None:
    frame = pa.table({"k": [1, 2, None, 2], "Weird Name": ["a", "b", "{}", None]})
    other = pa.table({"k": [2, 2, 3]})
    catalog = open_catalog(tables={"one": frame, "two": other})
    sql = 'SELECT one.k, count(*) AS n, max("Weird Name") FROM one JOIN two USING (k) GROUP BY 1'
    plan = plan_staged(sql, catalog, target_bytes=1, partitions=2, broadcast_bytes=0)
    with LocalRun(plan, instance, 1e9) as run:
        answer = run_one_by_one(run)
    assert answer.to_pylist() == [{"k": 2, "n": 4, 'max("Weird Name")': "b"}]
