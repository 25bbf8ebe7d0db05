"""What looks like a statement that is refused, and is safe, is split. Refusals: rules/*.toml."""

from __future__ import annotations

import pickle

import pytest
from planner_tables import paper_catalog

from queryard.sql.planner import NotStageable, plan_staged

STAGED = [
    "SELECT count(*) FROM gone",
    "SELECT id FROM sale LIMIT 10",
    "SELECT max(name) FROM item",
    "SELECT id FROM sale ORDER BY price DESC NULLS FIRST LIMIT 3 OFFSET 4",
    "SELECT DISTINCT item FROM sale",
    "SELECT id FROM sale WHERE item NOT IN (SELECT item FROM item)",
    "SELECT 1 + 1",
    "SELECT id, (SELECT item FROM item) FROM sale LIMIT 10",
    "SELECT id, (SELECT max(item) FROM item) FROM sale WHERE 1 = 2",
    "SELECT 1 UNION SELECT 2 INTERSECT SELECT 2",
    "SELECT max(day) FROM (SELECT day FROM sale ORDER BY id)",
    "(SELECT item FROM sale) EXCEPT (SELECT item FROM item)",
    "SELECT day + INTERVAL '3 days', day + INTERVAL 3 DAY, day + INTERVAL '3' DAY FROM sale",
    "SELECT id FROM sale;",
    "-- a comment\nSELECT id /* here */ FROM sale",
]


@pytest.mark.parametrize("sql", STAGED)
def test_what_can_be_split_is(sql: str) -> None:
    assert plan_staged(sql, paper_catalog()).jobs


def test_a_statement_nested_too_deeply_is_refused() -> None:
    with pytest.raises(NotStageable, match=r"nested too deeply|DuckDB says"):
        plan_staged(f"SELECT {'(' * 900}1{')' * 900}", paper_catalog())


def test_the_refusal_travels() -> None:
    again = pickle.loads(pickle.dumps(NotStageable("windows")))
    assert again.reason == "windows"
