"""Queries that are easy to get wrong (answers.sql), staged in two ways, against DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import duckdb
import pytest
from staged_driving import LocalRun, assert_same, run_one_by_one
from staged_grammar import TABLES
from staged_tables import make_tables

from queryard.sql.catalog import Catalog, open_catalog
from queryard.sql.planner import plan_staged

HERE = Path(__file__).parent
LINES = (HERE / "answers.sql").read_text().splitlines()
QUERIES = "\n".join(line for line in LINES if not line.startswith("--")).split(";\n")
WIDE = """
    SELECT i AS "Weird Name", i % 3 AS "select", if(i % 4 = 0, NULL, i) AS "A""b",
        'x{}y{source}' || i AS txt, (i % 3)::UTINYINT AS ut, (i % 3)::SMALLINT AS sm,
        i::HUGEINT * 100000000000000000000 AS hu, md5(i::VARCHAR)::UUID AS u,
        ['nan', '-0.0', '0.0'][i % 3 + 1]::DOUBLE AS fz, i::FLOAT AS f32, [i, NULL, i % 2] AS li,
        {'a': i % 2, 'b': 'q'} AS st, INTERVAL (i % 3) MONTH AS iv, '\\x01'::BLOB AS bl,
        TIMESTAMP '2020-01-01' + INTERVAL (i) HOUR AS ts, DATE '2020-01-01' + i::INT AS dd,
        TIMESTAMPTZ '2020-01-01 00:00:00+00' AS tz, (i % 5)::DECIMAL(18, 3) AS de,
        TIME '12:00:00' AS ti, i % 2 = 0 AS fl
    FROM range(40) r(i)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answers")
    make_tables(folder, TABLES, seed=3)
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({WIDE}) TO '{folder}/wide.parquet'")
    return folder


@pytest.fixture(scope="module")
def catalog(folder: Path) -> Catalog:
    return open_catalog(folder)


@pytest.fixture(scope="module")
def native(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        for name in (*TABLES, "wide"):
            path = folder / f"{name}.parquet"
            connection.execute(f"CREATE VIEW {name} AS FROM read_parquet('{path}')")
        yield connection


@pytest.mark.parametrize("query", [query for query in QUERIES if query.strip()])
@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param({"target_bytes": 1, "partitions": 3, "broadcast_bytes": 0}, id="split"),
        pytest.param({}, id="whole", marks=pytest.mark.long),
    ],
)
def test_the_answer_is_duckdbs(
    query: str,
    sizes: dict[str, int],
    catalog: Catalog,
    native: duckdb.DuckDBPyConnection,
) -> None:
    expected = native.sql(query).to_arrow_table()
    ordered = "order by" in query.rsplit(")", 1)[-1]
    plan = plan_staged(query, catalog, **sizes)
    with LocalRun(plan, native, memory_bytes=1e9) as run:
        assert_same(run_one_by_one(run, Random(1)), expected, ordered)
