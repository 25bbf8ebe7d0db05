"""Plans that share the splits of a table, so that queries can share its scan."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from planner_tables import paper_catalog

from queryard.core.model import Query
from queryard.sql.catalog import Catalog, open_catalog
from queryard.sql.catalog.canonical import canonical_splits
from queryard.sql.planner import plan_staged
from queryard.sql.planner.plan import TableRead


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    rows = "SELECT i AS id, i % 7 AS k, 'x' || i AS s FROM range(4000) r(i)"
    duckdb.sql(f"COPY ({rows}) TO '{tmp_path / 'text.csv'}'")
    duckdb.sql(f"COPY ({rows}) TO '{tmp_path / 'columns.parquet'}' (ROW_GROUP_SIZE 2048)")
    return open_catalog(tmp_path)


ASKED = (
    "SELECT k, count(*) FROM text GROUP BY k",
    "SELECT sum(id) FROM text WHERE s > 'x3'",
    "SELECT id, s FROM text WHERE k = 3",
)


def test_all_plans_of_one_state_of_a_text_have_the_same_splits(catalog: Catalog) -> None:
    plans = [plan_staged(sql, catalog, split_bytes=8e3) for sql in ASKED]
    reads = [plan.scanned()["text"] for plan in plans]
    assert len({read.splits for read in reads}) == 1
    assert len(reads[0].splits) > 3
    assert all(read.is_segment(0) for read in reads)
    assert [read.columns for read in reads] == [("k",), ("id", "s"), ("id", "k", "s")]
    for plan in plans:
        (scan, *_) = plan.to_jobs()
        assert scan.scans == ("text",)
        assert scan.map is not None
        assert scan.map.tasks == len(reads[0].as_table.splits)
        Query("q", plan.to_jobs())


def test_a_file_that_changes_has_other_splits(catalog: Catalog, tmp_path: Path) -> None:
    before = plan_staged(ASKED[0], catalog, split_bytes=8e3).scanned()["text"]
    with (tmp_path / "text.csv").open("a") as file:
        file.write("4000,1,new\n" * 500)
    catalog.refresh()
    after = plan_staged(ASKED[0], catalog, split_bytes=8e3).scanned()["text"]
    assert before.fingerprint != after.fingerprint
    assert before.splits != after.splits


def test_a_small_table_and_a_plan_with_sizes_of_its_own_share_nothing(catalog: Catalog) -> None:
    assert not plan_staged(ASKED[0], catalog).scanned()
    own = plan_staged("SELECT k FROM columns", catalog, target_bytes=1e3)
    assert own.jobs[0].map_tasks > 1
    assert own.to_jobs()[0].scans == ()


def test_columnar_tables_are_cut_by_their_rows_and_by_nothing_else() -> None:
    found = paper_catalog()
    sql = ("SELECT shop, sum(price) FROM sale GROUP BY shop", "SELECT max(id) FROM sale")
    reads = [plan_staged(each, found).scanned()["sale"] for each in sql]
    assert reads[0].splits == reads[1].splits
    assert len(reads[0].splits) == len(canonical_splits(found["sale"]))


def test_a_job_over_two_tables_names_both_one_after_another() -> None:
    sql = "SELECT max(price + l.item) FROM sale s JOIN line l ON s.id = l.id"
    job = plan_staged(sql, paper_catalog()).jobs[0]
    reads = [branch.read for branch in job.branches]
    assert all(isinstance(read, TableRead) and read.canonical for read in reads)
    assert job.scans == tuple(read.table for read in reads if isinstance(read, TableRead))
    assert sum(read.tasks for read in reads) == job.map_tasks
