"""Random queries, staged in random sizes and orders, give DuckDB's answers.

QUERYARD_RANDOM_QUERIES says how many (some hundreds by default), QUERYARD_RANDOM_SEED where to
start.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import duckdb
import pytest
from long_forms import some_of
from staged_driving import LocalRun, assert_same, run_one_by_one
from staged_grammar import TABLES, Grammar, is_rounded
from staged_tables import make_tables

from queryard.sql.catalog import Catalog, open_catalog
from queryard.sql.planner import NotStageable, plan_staged

QUERIES = int(os.environ.get("QUERYARD_RANDOM_QUERIES", "240"))
SEED = int(os.environ.get("QUERYARD_RANDOM_SEED", "0"))
BATCHES = 6
SIZES: list[dict[str, float]] = [
    {},
    {"target_bytes": 1},
    {"target_bytes": 1, "partitions": 2},
    {"target_bytes": 1, "partitions": 3, "broadcast_bytes": 0},
    {"target_bytes": 600, "partitions": 4, "broadcast_bytes": 0},
    {"partitions": 2, "broadcast_bytes": 0},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("random")
    make_tables(folder, TABLES, seed=1)
    return folder


@pytest.fixture(scope="module")
def catalog(folder: Path) -> Catalog:
    return open_catalog(folder)


@pytest.fixture(scope="module")
def native(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        for name in TABLES:
            path = folder / f"{name}.parquet"
            connection.execute(f"CREATE VIEW {name} AS FROM read_parquet('{path}')")
        yield connection


@pytest.fixture(scope="module")
def instance() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


@pytest.mark.parametrize("batch", some_of(range(BATCHES), 1))
def test_random_queries_give_duckdbs_answers(
    batch: int,
    catalog: Catalog,
    native: duckdb.DuckDBPyConnection,
    instance: duckdb.DuckDBPyConnection,
) -> None:
    staged = refused = 0
    for seed in range(SEED + batch, SEED + QUERIES, BATCHES):
        query = Grammar(seed).query()
        try:
            expected = native.sql(query).to_arrow_table()
        except duckdb.Error:
            continue  # an overflow, a second row of a scalar subquery: nothing to compare
        rng = Random(seed)
        sizes = rng.choice(SIZES)
        try:
            plan = plan_staged(query, catalog, **sizes)  # type: ignore[arg-type]
        except NotStageable:
            refused += 1
            continue
        with LocalRun(plan, instance, memory_bytes=rng.choice([1e9, 2000.0])) as run:
            answer = run_one_by_one(run, rng)
        ordered = "ORDER BY" in query.rsplit(")", 1)[-1] and not is_rounded(query)
        try:
            assert_same(answer, expected, ordered)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {sizes}: {query}") from error
        staged += 1
    assert refused < 0.1 * (staged + refused), "too many queries were refused to learn anything"
