"""Random queries, natively, against plain DuckDB: rows, order and Arrow types."""

from __future__ import annotations

import os

import duckdb
import pytest
from engine.native_driving import check_same
from long_forms import some_of
from staged_grammar import TABLES, Grammar, is_rounded
from staged_tables import make_tables

import queryard
from queryard.core.errors import QueryardError

COUNT = int(os.environ.get("QUERYARD_RANDOM_QUERIES", "400"))
SEED = int(os.environ.get("QUERYARD_RANDOM_SEED", "0"))
BATCHES = 4


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    make_tables(folder, TABLES, seed=7)
    return folder


@pytest.fixture(scope="module")
def both(small):
    with queryard.connect(small, slots=2, memory="512 MB") as qy, duckdb.connect() as plain:
        plain.execute("SET threads = 2")
        for name in TABLES:
            plain.execute(f"CREATE VIEW {name} AS FROM read_parquet('{small / name}.parquet')")
        yield qy, plain


def answer_of(plain, sql: str):
    """DuckDB's answer, or why there is none."""
    try:
        return plain.sql(sql).to_arrow_table(), ""
    except duckdb.Error as error:
        return None, str(error)


def compare(qy, plain, sql: str) -> None:
    expected, refusal = answer_of(plain, sql)
    if expected is None:
        # What DuckDB refuses is refused here, for the same reason.
        with pytest.raises(QueryardError) as refused:
            qy.sql(sql).arrow()
        assert str(refused.value).split(":")[0] == refusal.split(":")[0]
        return
    found = qy.sql(sql).arrow()
    if is_rounded(sql) and "LIMIT" in sql:
        # The last bit decides which rows are in; their number and types do not depend on it.
        assert found.schema == expected.schema
        assert found.num_rows == expected.num_rows
    else:
        check_same(found, expected)


@pytest.mark.parametrize("batch", some_of(range(BATCHES), 2))
def test_random_queries_equal_duckdb(both, batch):
    qy, plain = both
    for seed in range(SEED + batch, SEED + COUNT, BATCHES):
        sql = Grammar(seed).query()
        try:
            compare(qy, plain, sql)
        except BaseException as error:
            raise AssertionError(f"seed {seed}: {sql}") from error


def test_random_queries_at_once(both):
    """Many are under way together, each on an instance of its own or waiting for one."""
    qy, plain = both
    queries = [Grammar(seed).query() for seed in range(SEED + 10**6, SEED + 10**6 + COUNT // 4)]
    handles = [qy.submit(sql, memory="40 MB") for sql in queries]
    for sql, handle in zip(queries, handles, strict=True):
        expected, _ = answer_of(plain, sql)
        if expected is None:
            continue
        if not (is_rounded(sql) and "LIMIT" in sql):
            check_same(handle.result(60).arrow(), expected)


def test_the_same_on_the_sessions_own_instance(both):
    """Copied into temporary tables, where types and answers are the same again."""
    qy, plain = both
    for name in TABLES:
        qy.sql(f"CREATE TEMP TABLE {name} AS FROM {name}")
    try:
        for seed in range(SEED + 2 * 10**6, SEED + 2 * 10**6 + COUNT // 4):
            sql = Grammar(seed).query()
            try:
                compare(qy, plain, sql)
            except BaseException as error:
                raise AssertionError(f"seed {seed}: {sql}") from error
    finally:
        for name in TABLES:
            qy.sql(f"DROP TABLE {name}")
