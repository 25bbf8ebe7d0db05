"""Several statements in one instance: slots lent to any of them work on the tasks of all."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import duckdb
import pytest
from waiting import wait_until

from engine.native_driving import MIB, PATIENCE_S, Slots, check_same, collect, plain
from engine.test_random_widths import FAILING, QUERIES, disturb
from queryard.engine.errors import QueryCancelled, QueryFailed
from queryard.engine.instances.budget import Budget
from queryard.engine.native import NativeEngine, NativeQuery, NativeStatement
from queryard.engine.session.session import SessionInstance
from queryard.engine.syntax.classify import classify
from queryard.results.streams import ResultStream
from queryard.sql.catalog import open_catalog


class Writing:
    """An engine that writes one database file."""

    def __init__(self, where: Path, file: Path, temp: Path) -> None:
        with duckdb.connect(str(file)) as connection:
            for table in ("facts", "dims", "none"):
                connection.execute(f"CREATE TABLE {table} AS FROM '{where / table}.parquet'")
            connection.execute("CREATE TABLE written (n BIGINT)")
        self.where = where
        budget = Budget(session_bytes=512 * MIB, pool_bytes=64 * MIB)
        catalog = open_catalog(file)
        self.engine = NativeEngine(catalog, 3, budget.pool_bytes, temp)
        self.client = SessionInstance(3, budget.session_bytes, temp, self.engine.reach, writes=True)
        self._expected: dict[str, object] = {}

    def query(self, sql: str, sprints: bool = False) -> NativeQuery:
        statement = NativeStatement(tuple(classify(sql)), (), 0, sprints, self.client)
        return self.engine.open(statement, ResultStream())

    def expected(self, name: str):
        if name not in self._expected:
            self._expected[name] = plain(self.where, QUERIES[name])
        return self._expected[name]

    def run(self, sql: str):
        query = self.query(sql)
        slots = Slots(query).widen(1)
        try:
            return collect(query)
        finally:
            slots.close()

    def check_idle(self) -> None:
        """No query is left in the instance, and the next one has the right answer."""
        session = self.client
        wait_until(lambda: not session._inside and not session.readers._taken)
        found = self.run("SELECT count(*) AS n FROM facts")
        check_same(found, plain(self.where, "SELECT count(*) AS n FROM facts"))


@pytest.fixture(scope="module")
def writing(facts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("written")
    made = Writing(facts, folder / "all.duckdb", folder / "temp")
    yield made
    made.client.close()
    made.engine.close()


def together(*jobs) -> None:
    """Run all at once; none may fail or hang."""
    failures: list[BaseException] = []

    def run(job) -> None:
        try:
            job()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * PATIENCE_S)
        assert not thread.is_alive(), "a query did not end"
    assert failures == []


def disturbed(writing: Writing, name: str, seed: int) -> None:
    query = writing.query(QUERIES[name])
    assert not query.on_session
    assert not query.pooled
    slots = Slots(query).widen(1)
    draw = random.Random(seed)
    disturber = threading.Thread(target=disturb, args=(slots, draw), daemon=True)
    disturber.start()
    try:
        found = collect(query)
    finally:
        disturber.join(PATIENCE_S)
        slots.close()
    check_same(found, writing.expected(name), ordered=name in ("sort", "top"))


def cancelled(writing: Writing, name: str, seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(4):
        query = writing.query(QUERIES[name], sprints=draw.random() < 0.5)
        slots = Slots(query).widen(draw.randint(0, 2))
        time.sleep(draw.choice((0.0, 0.001, 0.005, 0.02, 0.06)))
        slots.set_width(draw.randint(0, 2))
        query.cancel()
        slots.close()
        assert query.ended
        assert query.error is None or isinstance(query.error, QueryCancelled)


def failing(writing: Writing, name: str) -> None:
    sql, message = FAILING[name]
    query = writing.query(sql)
    slots = Slots(query).widen(1)
    with pytest.raises(QueryFailed, match=message):
        collect(query)
    slots.close()


def inserting(writing: Writing, times: int) -> None:
    for _ in range(times):
        query = writing.query("INSERT INTO written SELECT id FROM facts WHERE key = 3")
        assert query.on_session
        slots = Slots(query).widen(2)
        collect(query)
        slots.close()
        assert query.error is None


@pytest.mark.parametrize("seed", range(3))
def test_statements_with_changing_slots_all_end_with_the_right_answer(writing, seed):
    names = random.Random(seed).sample(sorted(QUERIES), 5)
    together(
        *(lambda name=name: disturbed(writing, name, seed) for name in names),
        lambda: inserting(writing, 3),
    )
    writing.check_idle()


@pytest.mark.parametrize("seed", range(3))
def test_cancelled_and_failing_statements_do_not_disturb_the_others(writing, seed):
    draw = random.Random(100 + seed)
    names = draw.sample(sorted(QUERIES), 4)
    together(
        *(lambda name=name: cancelled(writing, name, seed) for name in names[:2]),
        *(lambda name=name: disturbed(writing, name, seed) for name in names[2:]),
        lambda: failing(writing, draw.choice(sorted(FAILING))),
        lambda: inserting(writing, 2),
    )
    writing.check_idle()


def test_a_statement_without_slots_is_ended_by_its_own_once_they_come(writing):
    """Slots of another may have done all its work meanwhile."""
    paused = writing.query(QUERIES["aggregate"])
    slots = Slots(paused).widen(1)
    wait_until(lambda: paused.started)
    for thread in slots.narrow(1):
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    disturbed(writing, "window", 1)
    slots.widen(1)
    check_same(collect(paused), writing.expected("aggregate"))
    slots.close()
    writing.check_idle()


def test_sprints_in_company(writing):
    def sprint() -> None:
        for _ in range(20):
            query = writing.query("SELECT count(*) AS n FROM dims WHERE key > 5", sprints=True)
            slots = Slots(query).widen(1)
            assert collect(query).to_pylist() == [{"n": 994}]
            slots.close()

    together(sprint, sprint, lambda: disturbed(writing, "sort", 5))
    writing.check_idle()
