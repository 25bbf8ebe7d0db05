"""EXPLAIN ANALYZE shows what DuckDB shows, however the statement was run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import duckdb
import pytest

import queryard
from engine.native_driving import write_facts

SQL = "SELECT part, count(*) AS n FROM facts JOIN dims USING (key) WHERE id > {} GROUP BY part"
# With a parameter a statement is prepared; without one it is handed to DuckDB in one call.
ASKED = [(SQL.format("5"), ()), (SQL.format("?"), (5,))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("analyzed")
    write_facts(folder)
    return folder


@pytest.fixture(scope="module")
def qy(folder):
    with queryard.connect(folder, slots=2, memory="512MB", history=False) as session:
        yield session


@pytest.fixture(scope="module")
def plain(folder):
    with duckdb.connect() as connection:
        for name in ("facts", "dims"):
            file = folder / f"{name}.parquet"
            connection.execute(f"CREATE VIEW {name} AS FROM read_parquet('{file}')")
        yield connection


def operators(plan: str) -> list[str]:
    return re.findall(r"╭─ (\w[\w ]*) [─┴┚┖]", plan)


def chain(document: dict) -> list[str]:
    """The names from the root down its first branch."""
    found, nodes = [], document["operator"]
    while nodes:
        found.append(nodes[0]["type"])
        nodes = nodes[0].get("children", [])
    return found


@pytest.mark.parametrize(("sql", "parameters"), ASKED)
def test_the_drawn_plan_has_the_operators_of_plain_duckdb(qy, plain, sql, parameters) -> None:
    ((key, ours),) = qy.sql(f"EXPLAIN ANALYZE {sql}", parameters).fetchall()
    ((_, theirs),) = plain.execute(f"EXPLAIN ANALYZE {SQL.format('5')}").fetchall()
    assert key == "analyzed_plan"
    assert operators(ours) == operators(theirs)
    assert "400,000 rows" in ours or "399,994 rows" in ours
    # Nothing is drawn above the topmost operator.
    root = next(line for line in ours.splitlines() if line.startswith(f"╭─ {operators(ours)[1]}"))
    assert not set(root) & set("┴┚┖")


@pytest.mark.parametrize(("sql", "parameters"), ASKED)
def test_the_plan_as_json_has_the_operators_of_plain_duckdb(qy, plain, sql, parameters) -> None:
    ((_, ours),) = qy.sql(f"EXPLAIN (ANALYZE, FORMAT json) {sql}", parameters).fetchall()
    ((_, theirs),) = plain.execute(f"EXPLAIN (ANALYZE, FORMAT json) {SQL.format('5')}").fetchall()
    assert chain(json.loads(ours)) == chain(json.loads(theirs))


def test_the_plan_of_a_statement_on_the_own_connection(qy) -> None:
    qy.sql("CREATE TEMP TABLE few AS FROM range(10)")
    ((_, plan),) = qy.sql("EXPLAIN ANALYZE SELECT sum(range) FROM few").fetchall()
    assert operators(plan)[:2] == ["Summary", "Ungrouped Aggregate"]
    assert "10 rows" in plan


def test_a_plan_without_analyze_is_left_alone(qy) -> None:
    asked = "EXPLAIN SELECT range FROM range(10) WHERE range > ?"
    ((key, plan),) = qy.sql(asked, (5,)).fetchall()
    assert (key, operators(plan)) == ("physical_plan", ["Filter", "Range"])


def test_a_plan_is_shown_as_it_is_drawn(qy, capsys: pytest.CaptureFixture[str]) -> None:
    answer = qy.sql("EXPLAIN ANALYZE SELECT sum(range) FROM range(1000)")
    ((_, plan),) = answer.fetchall()
    assert repr(answer) == plan.rstrip("\n")
    assert "╭─ Table Scan" in answer._repr_html_()
    answer.show()
    assert capsys.readouterr().out == plan
