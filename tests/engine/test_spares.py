"""Instances of several sizes side by side, and some that are ready before they are needed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from waiting import wait_until

import queryard
from engine.native_driving import MIB, write_facts
from queryard.engine.instances.pool import IDLE_PER_SLOT, SPARES, InstancePool
from queryard.engine.instances.spares import Spares
from queryard.sql.catalog import open_catalog

SIZE = 64 * MIB


@pytest.fixture
def pool(tmp_path):
    made = InstancePool(1, 4 * SIZE, tmp_path)
    yield made
    assert made.limits_bytes <= 4 * SIZE
    made.close()


@pytest.fixture
def catalog(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    write_facts(folder, rows=1000)
    return open_catalog(folder)


def test_every_size_keeps_its_own_instance(pool):
    small, large = pool.take(SIZE), pool.take(2 * SIZE)
    pool.give_back(large)
    pool.give_back(small)
    assert pool.take(2 * SIZE) is large
    assert pool.take(SIZE) is small


def test_without_room_the_last_one_changes_its_size(pool):
    first = pool.take(3 * SIZE)
    pool.give_back(first)
    second = pool.take(2 * SIZE)
    assert second is first
    assert pool.limits_bytes == 2 * SIZE


def test_not_more_than_a_few_are_idle_for_the_sake_of_their_size(pool):
    for number in range(20):
        pool.give_back(pool.take(SIZE // 2 + number * MIB // 4))
    assert len(pool._idle) <= IDLE_PER_SLOT
    assert pool.limits_bytes <= 4 * SIZE


def test_spares_are_opened_later_and_once(pool, catalog):
    spares = Spares(pool, catalog)
    asked = []
    spares.taken()  # `keep` was not called
    spares.keep([SIZE], asked.append)
    first = pool.take(SIZE)
    spares.taken()
    spares.taken()
    assert len(asked) == 1
    asked.pop()()
    assert [idle.instance.memory_bytes for idle in pool._idle] == [SIZE] * SPARES
    spares.taken()
    assert asked == []  # there are enough
    second = pool.take(SIZE)
    assert second is not first
    # It has the views of all tables, as no query has named one yet.
    (row,) = second.connection.rows("SELECT count(*) AS n FROM facts")
    assert row["n"] == 1000
    pool.give_back(first)
    pool.give_back(second)


def test_a_spare_has_the_tables_that_were_named(pool, catalog):
    spares = Spares(pool, catalog)
    asked = []
    spares.keep([SIZE], asked.append)
    spares.named([catalog["dims"]])
    spares.taken()
    asked.pop()()
    spare = pool._idle[0]
    rows = spare.connection.rows("SELECT view_name FROM duckdb_views() WHERE NOT internal")
    assert [row["view_name"] for row in rows] == ["dims"]


def test_no_spare_without_room_or_in_a_closed_pool(pool, catalog):
    spares = Spares(pool, catalog)
    asked = []
    spares.keep([SIZE], asked.append)
    taken = pool.take(4 * SIZE)
    spares.taken()
    assert asked == []
    pool.give_back(taken)
    pool.open_spare(5 * SIZE, lambda spare: None)
    assert pool._idle == [taken]
    pool.close()
    pool.open_spare(SIZE, lambda spare: None)
    assert pool._idle == []


def test_a_spare_that_cannot_be_opened_fails_no_query(tmp_path, catalog, monkeypatch):
    pool = InstancePool(1, 4 * SIZE, tmp_path)
    monkeypatch.setattr("queryard.engine.instances.pool.PooledInstance", None)
    spares = Spares(pool, catalog)
    spares.keep([SIZE], lambda work: work())
    spares.taken()
    assert pool.limits_bytes == 0
    spares.taken()  # and is tried again
    pool.close()


def test_a_session_has_some_ready(tmp_path):
    write_facts(Path(tmp_path), rows=1000)
    with queryard.connect(tmp_path, slots=2, memory="16 GB", history=False) as qy:
        qy.sql("SELECT 42").fetchall()
        pool = qy.host.engine.pool
        wait_until(lambda: len(pool._idle) == 1 + 2 * SPARES)
        before = {id(idle) for idle in pool._idle}
        assert qy.sql("SELECT count(*) FROM facts").fetchall() == [(1000,)]
        time.sleep(0.05)
        assert {id(idle) for idle in pool._idle} == before
