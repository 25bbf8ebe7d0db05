"""TPC-H queries with drawn parameters: they run, differ, and stay what they are."""

from __future__ import annotations

import re
from random import Random

import duckdb
import pytest

from queryard.workload import tpch
from queryard.workload.tpch import parameters

NUMBERS = range(1, 23)
# Values as they may be drawn: texts, dates, numbers.
_LITERAL = re.compile(r"'[^']*'|\d+(?:\.\d+)?")


@pytest.fixture(scope="module")
def two_scales(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    """The same small data as the schemas `small` and `big`."""
    folder = tmp_path_factory.mktemp("tpch")
    tpch.generate(folder, 0.01)
    connection = duckdb.connect()
    for schema in ("small", "big"):
        connection.execute(f"CREATE SCHEMA {schema}")
        for table in tpch.TABLES:
            file = folder / f"{table}.parquet"
            connection.execute(f"CREATE VIEW {schema}.{table} AS FROM '{file}'")
    return connection


@pytest.mark.parametrize("number", NUMBERS)
def test_every_drawn_text_runs_in_its_schema(two_scales: duckdb.DuckDBPyConnection, number: int):
    rng = Random(number)
    columns = two_scales.sql(tpch.in_schema(tpch.query(number), "small")).columns
    for schema in ("small", "big"):
        for _ in range(3):
            sql = tpch.in_schema(tpch.draw_query(number, rng), schema)
            answer = two_scales.sql(sql)
            assert answer.columns == columns
            assert answer.fetchall() is not None


@pytest.mark.parametrize("number", NUMBERS)
def test_only_literals_differ_between_draws(number: int):
    rng = Random(1)
    shapes = {_LITERAL.sub("?", tpch.draw_query(number, rng)) for _ in range(50)}
    assert shapes == {_LITERAL.sub("?", tpch.query(number))}


@pytest.mark.parametrize("number", NUMBERS)
def test_draws_differ_and_the_same_draws_are_the_same_text(number: int):
    texts = [tpch.draw_query(number, Random(seed)) for seed in range(30)]
    assert len(set(texts)) >= 4
    assert texts == [tpch.draw_query(number, Random(seed)) for seed in range(30)]


@pytest.mark.parametrize("number", NUMBERS)
def test_every_place_is_in_the_text(number: int):
    text = tpch.query(number)
    assert all(place in text for place in parameters._RULES[number].places)


def test_the_region_of_query_8_is_that_of_its_nation():
    for seed in range(20):
        text = tpch.draw_query(8, Random(seed))
        region = re.search(r"r_name = '(.*?)'", text)[1]  # type: ignore[index]
        nation = re.search(r"WHEN nation = '(.*?)'", text)[1]  # type: ignore[index]
        assert parameters.REGIONS[nation] == region


def test_a_column_called_like_a_table_stays_a_column():
    sql = tpch.in_schema(tpch.query(9), "big")
    assert "n_name AS nation" in sql
    assert "GROUP BY nation, o_year" in sql
    assert "big.nation" in sql


def test_nations_are_those_of_the_data(two_scales: duckdb.DuckDBPyConnection):
    found = two_scales.execute(
        "SELECT n_name, r_name FROM small.nation JOIN small.region ON n_regionkey = r_regionkey "
        "ORDER BY n_nationkey"
    ).fetchall()
    assert dict(found) == parameters.REGIONS
    assert [name for name, _ in found] == list(parameters.REGIONS)
