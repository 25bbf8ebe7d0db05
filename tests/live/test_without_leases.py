"""A DuckDB that cannot lend threads: whole statements run on one slot, with the same answers."""

from __future__ import annotations

import time

import pytest
from engine.native_driving import check_same, plain

import queryard
from queryard.engine.capi import Library, MissingFunctions, library
from queryard.engine.errors import QueryCancelled, QueryFailed

QUERIES = [
    "SELECT key, sum(price) AS s FROM facts GROUP BY key",
    "SELECT id, words FROM facts ORDER BY words, id LIMIT 30",
    "SELECT * FROM facts",
    "SELECT part, count(*) AS n FROM facts JOIN dims USING (key) GROUP BY part",
    "SELECT * FROM none",
]


@pytest.fixture
def whole(data, tmp_path, monkeypatch):
    monkeypatch.setattr(Library, "leases", property(lambda self: False))
    with queryard.connect(data, slots=2, memory="512 MB", temp=tmp_path / "temp") as session:
        yield session


def test_answers(whole, data):
    for sql in QUERIES:
        check_same(whole.sql(sql).arrow(), plain(data, sql))
    whole.sql("CREATE TEMP TABLE t AS FROM dims")
    assert whole.sql("SELECT count(*) FROM t").fetchall() == [(1000,)]


def test_two_at_once_and_a_slow_reader(whole, data):
    slow = whole.submit("SELECT * FROM facts, range(8)", memory="64 MB").result(30)
    handles = [whole.submit(sql, memory="64 MB") for sql in QUERIES]
    for handle, sql in zip(handles, QUERIES, strict=True):
        check_same(handle.result(60).arrow(), plain(data, sql))
    assert sum(batch.num_rows for batch in slow.batches()) == 3_200_000


def test_cancelling_and_errors(whole):
    handle = whole.submit("SELECT count(*) FROM facts a JOIN facts b USING (key)")
    time.sleep(0.2)
    handle.cancel()
    assert handle.wait(10)
    assert isinstance(handle.error, QueryCancelled)
    with pytest.raises(QueryFailed, match="stop"):
        whole.sql("SELECT error('stop') FROM facts").arrow()
    assert whole.sql("SELECT count(*) FROM dims").fetchall() == [(1000,)]


def test_a_missing_function_is_named():
    with pytest.raises(MissingFunctions, match=r"duckdb_no_such_thing.*install"):
        library().no_such_thing()
