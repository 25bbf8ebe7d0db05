"""The 22 queries of TPC-H, staged at several sizes, against DuckDB; also with empty tables."""

from __future__ import annotations

from pathlib import Path
from random import Random

import duckdb
import pyarrow.parquet as pq
import pytest
from long_forms import one_each
from staged_driving import LocalRun, assert_same, run_one_by_one

from queryard.sql.catalog import Catalog, open_catalog
from queryard.sql.planner import plan_staged
from queryard.workload.tpch import TABLES, generate, query

QUERIES = range(1, 23)
SIZES = {
    "as estimated": {},
    "row groups": {"target_bytes": 1},
    "row groups, all shuffled": {"target_bytes": 1, "partitions": 3, "broadcast_bytes": 0},
    "halves, all shuffled": {"target_bytes": 300_000, "partitions": 5, "broadcast_bytes": 0},
}
LIMITED_TIES = {2, 3, 10, 18, 21}  # ORDER BY may leave rows in any order


class Yard:
    """Tables in a folder, seen by DuckDB itself and by the planner."""

    def __init__(self, folder: Path) -> None:
        self.catalog: Catalog = open_catalog(folder)
        self.native = duckdb.connect(config={"threads": 1})
        for name in TABLES:
            path = folder / f"{name}.parquet"
            self.native.execute(f"CREATE VIEW {name} AS FROM read_parquet('{path}')")
        self.instance = duckdb.connect(config={"threads": 1})

    def compare(self, number: int, sizes: dict[str, float], memory_bytes: float = 1e9) -> int:
        """Run a query both ways; how many jobs it was."""
        expected = self.native.sql(query(number)).to_arrow_table()
        plan = plan_staged(query(number), self.catalog, **sizes)  # type: ignore[arg-type]
        with LocalRun(plan, self.instance, memory_bytes) as run:
            answer = run_one_by_one(run, Random(number))
        ordered = "order by" in query(number).lower() and number not in LIMITED_TIES
        assert_same(answer, expected, ordered)
        return len(plan.jobs)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tpch")
    generate(made, 0.01)
    split = tmp_path_factory.mktemp("split")
    for name in TABLES:
        table = pq.read_table(made / f"{name}.parquet")
        rows = max(table.num_rows // 4, 1)
        pq.write_table(table, split / f"{name}.parquet", row_group_size=rows)
    return split


@pytest.fixture(scope="module")
def yard(folder: Path) -> Yard:
    return Yard(folder)


@pytest.fixture(scope="module")
def empty_yard(
    request: pytest.FixtureRequest, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Yard:
    made = tmp_path_factory.mktemp("empty")
    for name in TABLES:
        table = pq.read_table(folder / f"{name}.parquet")
        gone = request.param in (name, "every table")
        pq.write_table(table.slice(0, 0) if gone else table, made / f"{name}.parquet")
    return Yard(made)


@pytest.mark.parametrize(("number", "sizes"), one_each(QUERIES, list(SIZES)))
def test_answers_are_duckdbs(yard: Yard, number: int, sizes: str) -> None:
    yard.compare(number, SIZES[sizes])


def test_most_queries_are_several_jobs(yard: Yard) -> None:
    jobs = [len(plan_staged(query(n), yard.catalog, target_bytes=1).jobs) for n in QUERIES]
    assert sum(count > 1 for count in jobs) >= 16


@pytest.mark.parametrize("number", [3, 9, 13, 16, 18, 21])
def test_answers_are_duckdbs_with_everything_spilled(yard: Yard, number: int) -> None:
    yard.compare(number, SIZES["row groups, all shuffled"], memory_bytes=0)


@pytest.mark.parametrize(
    ("number", "empty_yard"),
    one_each(QUERIES, ["lineitem", "orders", "customer", "part", "every table"]),
    indirect=["empty_yard"],
)
def test_answers_over_empty_tables_are_duckdbs(empty_yard: Yard, number: int) -> None:
    empty_yard.compare(number, {"target_bytes": 1, "partitions": 2})
