"""The 22 queries of TPC-H, natively: DuckDB's own answers, Arrow types too, at two scales."""

from __future__ import annotations

import duckdb
import pytest
from engine.native_driving import check_same

import queryard
from queryard.workload import tpch

SCALES = (0.01, pytest.param(0.03, marks=pytest.mark.long))
# Sorted completely by their ORDER BY; the others only up to ties.
TOTAL_ORDER = {1, 4, 5, 7, 8, 9, 12, 13, 16, 20, 21, 22}


@pytest.fixture(scope="module", params=SCALES)
def scale(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(f"tpch{request.param}")
    tpch.generate(folder, request.param)
    with queryard.connect(folder, slots=2, memory="1 GB") as qy, duckdb.connect() as plain:
        for table in tpch.TABLES:
            plain.execute(f"CREATE VIEW {table} AS FROM read_parquet('{folder / table}.parquet')")
        yield qy, plain


@pytest.mark.parametrize("number", range(1, 23))
def test_answers_and_types_are_duckdbs(scale, number):
    qy, plain = scale
    sql = tpch.query(number)
    check_same(qy.sql(sql).arrow(), plain.sql(sql).to_arrow_table(), number in TOTAL_ORDER)


def test_all_at_once(scale):
    qy, plain = scale
    handles = {number: qy.submit(tpch.query(number)) for number in range(1, 23)}
    for number, handle in handles.items():
        expected = plain.sql(tpch.query(number)).to_arrow_table()
        check_same(handle.result(60).arrow(), expected, number in TOTAL_ORDER)


def test_all_on_little_memory(scale):
    qy, plain = scale
    for number in (3, 9, 13, 18, 21):
        answer = qy.sql(tpch.query(number), memory="64 MB").arrow()
        check_same(answer, plain.sql(tpch.query(number)).to_arrow_table(), number in TOTAL_ORDER)
