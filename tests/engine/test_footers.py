"""Footers are cached only of files that cannot be confused with earlier ones."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import queryard
from queryard.engine.instances.footers import SETTLED_S, FooterCache
from queryard.engine.instances.instance import Connection, Instance
from queryard.engine.syntax.classify import classify
from queryard.sql.catalog.locations import local_file

LONG_AGO_S = int(time.time()) - 1000


@pytest.fixture
def connection(tmp_path):
    instance = Instance(1, 64 << 20, tmp_path)
    connection = Connection(instance)
    yield connection
    connection.close()
    instance.close()


def remembers(connection: Connection) -> bool:
    (row,) = connection.rows("SELECT current_setting('parquet_metadata_cache') AS it")
    return bool(row["it"])


def write(path: Path, number: int, time_s: float | None = LONG_AGO_S) -> None:
    """Files of the same size, whatever the number."""
    pq.write_table(pa.table({"v": [number] * (number + 1), "w": ["x"] * (number + 1)}), path)
    if time_s is not None:
        os.utime(path, (time_s, time_s))


def choose(footers: FooterCache, connection: Connection, path: Path, sql: str = "FROM t") -> bool:
    (statement,) = classify(sql)
    footers.choose(connection, statement, [local_file(path)])
    return remembers(connection)


def test_a_file_that_has_been_left_alone(connection, tmp_path):
    path = tmp_path / "t.parquet"
    write(path, 1)
    assert not remembers(connection)
    assert choose(FooterCache(), connection, path)


@pytest.mark.parametrize("age_s", [0.0, SETTLED_S - 2, -3600.0])
def test_a_file_that_may_still_be_written(connection, tmp_path, age_s):
    path = tmp_path / "t.parquet"
    write(path, 1, time.time() - age_s)
    assert not choose(FooterCache(), connection, path)


def test_a_file_that_is_not_what_the_catalog_knows(connection, tmp_path):
    path = tmp_path / "t.parquet"
    write(path, 1)
    known = local_file(path)
    write(path, 2, LONG_AGO_S + 60)
    (statement,) = classify("FROM t")
    footers = FooterCache()
    footers.choose(connection, statement, [known])
    assert not remembers(connection)
    path.unlink()
    footers.choose(connection, statement, [known])
    assert not remembers(connection)


def test_a_file_in_the_place_of_one_that_looks_the_same(connection, tmp_path):
    path = tmp_path / "t.parquet"
    footers = FooterCache()
    write(path, 1)
    assert choose(footers, connection, path)
    write(path, 2, LONG_AGO_S + 0.5)
    assert not choose(footers, connection, path)
    write(path, 3, LONG_AGO_S + 60)
    assert choose(footers, connection, path)


@pytest.mark.parametrize("sql", ["FROM 'u.parquet'", "FROM read_parquet('u')", "FROM t, 'a/b'"])
def test_files_that_are_no_tables(connection, tmp_path, sql):
    path = tmp_path / "t.parquet"
    write(path, 1)
    assert not choose(FooterCache(), connection, path, sql)


@pytest.mark.parametrize("step_s", [0.0, 0.1, 1.0, 60.0])
def test_answers_are_those_of_the_file_there_is(tmp_path, step_s):
    path = tmp_path / "t.parquet"
    write(path, 0)
    with queryard.connect(tmp_path, slots=1, history=False) as qy:
        for number in range(4):
            write(path, number, LONG_AGO_S + number * step_s + number * 1e-3)
            qy.refresh()
            found = qy.sql("SELECT count(w), sum(v) FROM t").fetchall()
            assert found == [(number + 1, number * (number + 1))]
