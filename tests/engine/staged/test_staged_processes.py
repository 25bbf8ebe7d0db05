"""A task is data: every task of a query runs in another process, and the answer is DuckDB's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from staged_driving import assert_same
from staged_workers import Worker, Workers

from queryard.core.model import TaskId
from queryard.engine.staged.query import StagedQuery
from queryard.sql.catalog import Catalog, open_catalog
from queryard.sql.planner import plan_staged
from queryard.workload.tpch import TABLES, generate, query

SHARED = {"target_bytes": 1, "partitions": 3}
SHUFFLED = {**SHARED, "broadcast_bytes": 0}
LIMITED_TIES = {2, 3, 10, 18, 21}  # ORDER BY may leave rows in any order


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tpch")
    generate(made, 0.01)
    split = tmp_path_factory.mktemp("split")
    for name in TABLES:
        table = pq.read_table(made / f"{name}.parquet")
        pq.write_table(table, split / f"{name}.parquet", row_group_size=max(table.num_rows // 3, 1))
    return split


@pytest.fixture(scope="module")
def catalog(folder: Path) -> Catalog:
    return open_catalog(folder)


@pytest.fixture(scope="module")
def native(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        for name in TABLES:
            connection.execute(f"CREATE VIEW {name} AS FROM '{folder / name}.parquet'")
        yield connection


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    made = Workers(tmp_path_factory.mktemp("exchange"), 2)
    yield made
    made.close()


def check(number: int, answer: pa.Table, native: duckdb.DuckDBPyConnection) -> None:
    ordered = "order by" in query(number).lower() and number not in LIMITED_TIES
    assert_same(answer, native.sql(query(number)).to_arrow_table(), ordered)


def run(
    number: int,
    sizes: dict[str, int],
    catalog: Catalog,
    native: duckdb.DuckDBPyConnection,
    workers: Workers,
) -> None:
    check(number, workers.answer(plan_staged(query(number), catalog, **sizes)), native)
    assert set(workers.runs.values()) == {1}


@pytest.mark.parametrize(("number", "sizes"), [(1, SHARED), (9, SHARED), (18, SHUFFLED)])
def test_every_task_runs_in_another_process(
    number: int,
    sizes: dict[str, int],
    catalog: Catalog,
    native: duckdb.DuckDBPyConnection,
    workers: Workers,
) -> None:
    run(number, sizes, catalog, native, workers)


@pytest.mark.long
@pytest.mark.parametrize("sizes", [SHARED, SHUFFLED], ids=["shared", "shuffled"])
@pytest.mark.parametrize("number", range(1, 23))
def test_every_query_of_tpch_runs_in_other_processes(
    number: int,
    sizes: dict[str, int],
    catalog: Catalog,
    native: duckdb.DuckDBPyConnection,
    workers: Workers,
) -> None:
    run(number, sizes, catalog, native, workers)


@pytest.mark.parametrize("told", ["by the end of the process", "by a task that misses its rows"])
def test_what_a_killed_process_held_is_made_again(
    told: str, catalog: Catalog, native: duckdb.DuckDBPyConnection, workers: Workers
) -> None:
    plan = plan_staged(query(3), catalog, **SHUFFLED)
    lost: list[TaskId] = []

    def kill_in_the_middle(staged: StagedQuery, worker: Worker) -> None:
        """When some tasks have read what the first maps made, and others still will."""
        if lost or "reduce" not in {task.kind for task in workers.places}:
            return
        lost.extend(task for task, place in workers.places.items() if place == worker.place)
        workers.kill(worker)  # which runs a task
        if told == "by the end of the process":
            assert set(staged.lost(worker.place)) == set(lost)

    check(3, workers.answer(plan, kill_in_the_middle), native)
    assert any(workers.runs[task] > 1 for task in lost)


def test_registered_frames_are_put_once_for_all_processes(workers: Workers) -> None:
    frame = pa.table({"k": [i % 100 for i in range(10_000)], "Weird Name": range(10_000)})
    catalog = open_catalog(tables={"one": frame, "two": pa.table({"k": [2, 2, 3]})})
    sql = (
        'SELECT one.k, count(*) AS n, max("Weird Name") AS m FROM one JOIN two USING (k) GROUP BY 1'
    )
    plan = plan_staged(sql, catalog, **SHUFFLED)
    rows = sorted(workers.answer(plan).to_pylist(), key=lambda row: row["k"])
    assert rows == [{"k": 2, "n": 200, "m": 9902}, {"k": 3, "n": 100, "m": 9903}]


def test_an_error_of_a_task_comes_back(catalog: Catalog, workers: Workers) -> None:
    plan = plan_staged("SELECT CAST(o_comment AS INTEGER) FROM orders", catalog)
    with pytest.raises(AssertionError, match="Conversion Error: Could not convert string"):
        workers.answer(plan)
    for worker in workers._all.values():
        worker.task = None
