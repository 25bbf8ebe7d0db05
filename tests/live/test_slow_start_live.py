"""Slow start of staged queries: reduces wait in their slots for maps, and can be stopped there."""

from __future__ import annotations

import threading
import time
from functools import partial

import duckdb
import pyarrow.parquet as pq
import pytest
from engine.native_driving import check_same
from waiting import wait_until

import queryard
from queryard.core.commands import Kill
from queryard.core.errors import QueryardError
from queryard.engine.errors import OutOfMemory, QueryCancelled
from queryard.engine.staged import node
from queryard.engine.staged.query import StagedQuery
from queryard.sql import planner
from queryard.workload import tpch

TOTAL_ORDER = {1, 4, 5, 7, 8, 9, 12, 13, 16, 20, 21, 22}
SQL = "SELECT l_suppkey, count(*) AS n FROM lineitem GROUP BY l_suppkey ORDER BY l_suppkey"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made, split = tmp_path_factory.mktemp("tpch"), tmp_path_factory.mktemp("split")
    tpch.generate(made, 0.01)
    for name in tpch.TABLES:
        table = pq.read_table(made / f"{name}.parquet")
        rows = max(table.num_rows // 4, 1)
        pq.write_table(table, split / f"{name}.parquet", row_group_size=rows)
    return split


@pytest.fixture(scope="module")
def plain(folder):
    with duckdb.connect() as connection:
        for table in tpch.TABLES:
            path = f"{folder / table}.parquet"
            connection.execute(f"CREATE VIEW {table} AS FROM read_parquet('{path}')")
        yield connection


@pytest.fixture
def qy(folder, monkeypatch):
    """A session in which every job has four maps or so, and three reduces, which start at once."""
    small = {"target_bytes": 1, "partitions": 3, "broadcast_bytes": 0}
    monkeypatch.setattr(planner, "plan_staged", partial(planner.plan_staged, **small))
    settings = {"slots": 2, "memory": "1 GB", "plan": "staged", "history": False}
    with queryard.connect(folder, statistics="off", slow_start=0.0, **settings) as session:
        yield session


class Watch:
    """Counts the reduces that wait, and lets maps wait or fail as a test wants."""

    def __init__(self, monkeypatch) -> None:
        self.waits = 0
        self.waiting: set[threading.Thread] = set()
        self.held = threading.Event()  # maps of the last kind wait for it
        self.held.set()
        self.fails = lambda spec: None
        self.launches: list[tuple[str, str, int]] = []
        real_run, real_wait = node.run_task, StagedQuery.wait_for_maps

        def run_task(spec, *rest):
            self.launches.append((spec.job, spec.kind, spec.attempt))
            if spec.kind == "map" and spec.index == 0:
                self.held.wait(60)
            error = self.fails(spec)
            if error is not None:
                raise error
            return real_run(spec, *rest)

        def wait_for_maps(query, job, cancelled):
            self.waits += 1
            self.waiting.add(threading.current_thread())
            try:
                real_wait(query, job, cancelled)
            finally:
                self.waiting.discard(threading.current_thread())

        monkeypatch.setattr(node, "run_task", run_task)
        monkeypatch.setattr(StagedQuery, "wait_for_maps", wait_for_maps)

    def wait_for_a_wait(self) -> None:
        wait_until(lambda: self.waiting, what="a reduce was launched early")


@pytest.fixture
def watch(monkeypatch):
    return Watch(monkeypatch)


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.long)])
def test_answers_of_tpch_are_duckdbs(qy, plain, watch, every):
    handles = {number: qy.submit(tpch.query(number)) for number in range(1, 23, every)}
    for number, handle in handles.items():
        answer = handle.result(100).arrow()
        expected = plain.sql(tpch.query(number)).to_arrow_table()
        check_same(answer, expected, number in TOTAL_ORDER)
    assert watch.waits > 20 / every


def test_a_reduce_that_waits_sleeps(qy, plain, watch):
    watch.held.clear()
    handle = qy.submit(SQL)
    watch.wait_for_a_wait()
    began_s = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - began_s < 0.25
    assert handle.status == "running"
    assert watch.waiting
    watch.held.set()
    assert handle.result(30).fetchall() == plain.sql(SQL).fetchall()


def test_a_kill_stops_a_reduce_that_waits(qy, plain, watch):
    watch.held.clear()
    handle = qy.submit(SQL)
    watch.wait_for_a_wait()
    backend = qy.host.backend
    (launch,) = (
        number
        for number, launched in dict(backend._tasks._launched).items()
        if launched.tasks[0].kind == "reduce"
    )
    waits = watch.waits
    began_s = time.monotonic()
    backend.execute(Kill(launch))
    # It is launched again, and waits again.
    wait_until(lambda: watch.waits != waits)
    assert time.monotonic() - began_s < 1
    watch.held.set()
    assert handle.result(30).fetchall() == plain.sql(SQL).fetchall()
    assert launch not in {attempt for _, kind, attempt in watch.launches if kind == "reduce"}


def test_a_cancel_stops_a_reduce_that_waits(qy, plain, watch):
    watch.held.clear()
    handle = qy.submit(SQL)
    watch.wait_for_a_wait()
    (waiting,) = watch.waiting
    began_s = time.monotonic()
    handle.cancel()
    wait_until(lambda: waiting not in watch.waiting)
    assert time.monotonic() - began_s < 1
    watch.held.set()
    with pytest.raises(QueryCancelled):
        handle.result(30)
    assert qy.sql(SQL).fetchall() == plain.sql(SQL).fetchall()


def test_a_reduce_waits_on_while_a_map_fails_and_runs_again(qy, plain, watch):
    watch.held.clear()
    failed = []

    def fail_once(spec):
        if spec.kind == "map" and spec.index == 0 and not failed:
            failed.append(spec.attempt)
            return OSError(5, "Input/output error")
        return None

    watch.fails = fail_once
    handle = qy.submit(SQL)
    watch.wait_for_a_wait()
    watch.held.set()
    assert handle.result(30).fetchall() == plain.sql(SQL).fetchall()
    assert failed


def test_a_map_that_fails_for_good_ends_the_query_and_those_that_wait(qy, plain, watch):
    watch.held.clear()
    error = OutOfMemory("Out of Memory Error: no block")
    watch.fails = lambda spec: error if (spec.kind, spec.index) == ("map", 0) else None
    handle = qy.submit(SQL)
    watch.wait_for_a_wait()
    watch.held.set()
    with pytest.raises(OutOfMemory, match="failed 4 times"):
        handle.result(30)
    watch.fails = lambda spec: None
    assert qy.sql(SQL).fetchall() == plain.sql(SQL).fetchall()
    assert not watch.waiting


def test_a_session_closes_while_a_reduce_waits(qy, watch):
    watch.held.clear()
    handle = qy.submit(SQL)
    watch.wait_for_a_wait()
    (waiting,) = watch.waiting
    threading.Timer(0.2, watch.held.set).start()
    qy.close()
    waiting.join(5)
    assert not waiting.is_alive()
    assert handle.status == "cancelled"


def test_many_queries_with_failing_tasks_all_end(qy, plain, watch):
    """Every third attempt fails for a reason that passes: no slot is held for ever."""
    watch.fails = lambda spec: OSError(5, "bad luck") if spec.attempt % 3 == 0 else None
    numbers = [1, 3, 6, 12, 14, 18] * 2
    handles = [qy.submit(tpch.query(number)) for number in numbers]
    for number, handle in zip(numbers, handles, strict=True):
        expected = plain.sql(tpch.query(number)).to_arrow_table()
        check_same(handle.result(100).arrow(), expected, number in TOTAL_ORDER)


def test_without_it_no_reduce_waits(folder, monkeypatch, watch):
    small = {"target_bytes": 1, "partitions": 3}
    monkeypatch.setattr(planner, "plan_staged", partial(planner.plan_staged, **small))
    with queryard.connect(folder, slots=2, memory="1 GB", plan="staged", history=False) as qy:
        assert qy.sql(SQL).arrow().num_rows == 100
    assert watch.waits == 0


def test_a_catalog_file_may_say_so_and_a_wrong_share_is_refused(folder, tmp_path):
    catalog = tmp_path / "catalog.toml"
    catalog.write_text(
        f'[session]\nslow_start = 0.25\n[tables]\nnation = "{folder}/nation.parquet"\n'
    )
    with queryard.connect(catalog, slots=1, history=False) as qy:
        settings = qy.host._loop.ask(lambda coordinator: coordinator.kernel.state.settings)
        assert settings.slow_start == 0.25
    with pytest.raises(QueryardError, match=r"slow_start: must be a share from 0 to 1.*got 2"):
        queryard.connect(folder, slow_start=2)
