"""Plans as data: how jobs are sized, what they say of themselves, and how they travel."""

from __future__ import annotations

import pickle

import duckdb
import pytest
from planner_tables import paper_catalog

from queryard.core.errors import InvalidModel
from queryard.core.model import Query
from queryard.sql.planner import StagedPlan, plan_staged


def plan(sql: str, **sizes: float) -> StagedPlan:
    return plan_staged(sql, paper_catalog(), **sizes)  # type: ignore[arg-type]


def shapes(found: StagedPlan) -> list[tuple[str, int, int]]:
    return [(job.operator, job.map_tasks, job.partitions) for job in found.jobs]


def test_tasks_are_sized_by_work_unless_told() -> None:
    sql = "SELECT shop, sum(price) FROM sale GROUP BY shop"
    assert 2 <= plan(sql).jobs[0].map_tasks <= 8
    assert plan(sql, target_bytes=60e6).jobs[0].map_tasks == 10
    assert plan("SELECT city FROM shop WHERE city > 'a'").jobs[0].map_tasks == 1


def test_two_large_sides_are_brought_together_by_key() -> None:
    found = plan("SELECT max(price + l.item) FROM sale s JOIN line l ON s.id = l.id")
    joined = found.jobs[0]
    assert joined.operator == "join"
    assert joined.partitions > 1
    assert joined.sides == 2
    assert not joined.builds
    assert {table.table for table in joined.tables} == {"sale", "line"}


def test_keys_of_different_types_are_hashed_as_one() -> None:
    found = plan("SELECT count(*) FROM sale s JOIN line l ON s.item = l.id", broadcast_bytes=0)
    texts = [found.task("j1", "map", i).sql for i in range(found.jobs[0].map_tasks)]
    assert all("AS HUGEINT" in text for text in texts)


def test_an_empty_table_is_one_task_without_rows() -> None:
    found = plan("SELECT id FROM gone")
    assert shapes(found) == [("extract", 1, 0)]
    with duckdb.connect() as connection:
        assert connection.execute(found.task("j1", "map", 0).sql).fetchall() == []


def test_names_and_types_are_duckdbs() -> None:
    sql = 'SELECT sum(item), avg(price), price * 2 AS "Two", id, id FROM sale GROUP BY ALL'
    assert [tuple(field) for field in plan(sql).fields] == [
        ("sum(item)", "HUGEINT"),
        ("avg(price)", "DOUBLE"),
        ("Two", "DECIMAL(18,2)"),
        ("id", "BIGINT"),
        ("id", "BIGINT"),
    ]


def test_a_plan_travels_and_the_kernel_takes_its_jobs() -> None:
    sql = "SELECT name, count(DISTINCT id) FROM sale JOIN item USING (item) GROUP BY name"
    found = plan(sql, target_bytes=100e6, partitions=3)
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    query = Query("q", jobs=again.to_jobs())
    for job, staged in zip(query.jobs, found.jobs, strict=True):
        assert job.map is not None
        assert job.map.tasks == staged.map_tasks
        assert (job.reduce.tasks if job.reduce else 0) == staged.partitions
    assert sum(i.bytes for job in query.jobs for i in job.inputs) == pytest.approx(600e6 + 60e3)


def test_a_plan_describes_itself() -> None:
    (only,) = plan("SELECT shop, sum(price) FROM sale GROUP BY shop ORDER BY 2").describe()
    assert only["operator"] == "groupby"
    assert only["tables"] == {"sale": pytest.approx(600e6)}
    assert only["rows"] == pytest.approx(100)
    assert only["description"].startswith("scan sale")
    assert only["upstream"] == []


def test_asking_for_a_task_that_is_not_there_names_the_job() -> None:
    found = plan("SELECT id FROM gone")
    with pytest.raises(InvalidModel, match="unknown job 'j9'"):
        found.task("j9", "map", 0)
    with pytest.raises(InvalidModel, match="has 1 map tasks"):
        found.task("j1", "map", 7)
    with pytest.raises(InvalidModel, match="no reduce task"):
        found.task("j1", "reduce", 0)


def test_a_wrong_number_of_partitions_is_refused() -> None:
    with pytest.raises(ValueError, match="partitions"):
        plan("SELECT 1", partitions=0)
