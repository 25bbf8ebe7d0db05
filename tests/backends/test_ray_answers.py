"""Answers of sessions on a Ray cluster are DuckDB's, also while its nodes die and others join."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from engine.staged.staged_driving import assert_same
from long_forms import some_of
from waiting import turns_until, wait_until

import queryard
import queryard.sql.planner
from queryard.backends.ray import members
from queryard.backends.ray.runs import NodeGone
from queryard.core.events import TaskFinished
from queryard.sql.catalog import canonical
from queryard.sql.planner import physical
from queryard.workload.tpch import TABLES, query

from .ray_cluster import ray_cluster, skip_without_ray
from .split_tpch import split_tpch
from .store_stats import stored

LIMITED_TIES = {2, 3, 10, 18, 21}
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    skip_without_ray()
    return split_tpch(tmp_path_factory, 0.01)


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Any]:
    with ray_cluster(1) as made:
        yield made


@pytest.fixture(scope="module")
def session(cluster: Any, folder: Path) -> Iterator[queryard.Session]:
    """One node at first; tests that need more add them."""
    with queryard.connect(
        folder,
        backend="ray",
        address=cluster.address,
        memory="800 MB",
        history=False,
        statistics="off",
    ) as made:
        yield made


@pytest.fixture(scope="module")
def plain(folder: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    for name in TABLES:
        path = folder / f"{name}.parquet"
        connection.execute(f"CREATE VIEW {name} AS FROM read_parquet('{path}')")
    return connection


def check(session: queryard.Session, plain: Any, number: int, plan: Any) -> None:
    sql = query(number)
    handle = session.submit(sql, plan=plan, time_limit=PATIENCE_S)
    answer = handle.take().arrow()
    expected = plain.sql(sql).to_arrow_table()
    ordered = "order by" in sql.lower() and number not in LIMITED_TIES
    assert_same(answer, expected, ordered)


def objects(session: queryard.Session) -> int:
    reports = session.host.backend.reports().values()
    return sum(report.objects + report.queries for report in reports)


@pytest.mark.parametrize("number", some_of(range(1, 23), 4))
def test_native_answers_are_duckdbs(session, plain, number):
    check(session, plain, number, "native")


@pytest.mark.parametrize("number", some_of(range(1, 23), 6))
def test_staged_answers_at_one_node_are_duckdbs(session, plain, cut_small, number):
    check(session, plain, number, "staged")
    wait_until(lambda: objects(session) == 0)


def test_rows_stream_in_batches_and_a_slow_reader_holds_the_query_up(session):
    sql = "SELECT a.range AS n, repeat('x', 100) AS text FROM range(2000000) a"
    handle = session.submit(sql)
    batches = iter(handle.take().batches())
    rows = next(batches).num_rows
    time.sleep(0.5)
    assert handle.status == "running"
    for batch in batches:
        rows += batch.num_rows
    assert rows == 2_000_000
    wait_until(lambda: objects(session) == 0)


def test_errors_are_told_in_duckdbs_words(session):
    with pytest.raises(queryard.QueryFailed, match="nonsense"):
        session.sql("SELECT nonsense FROM lineitem").arrow()
    with pytest.raises(queryard.QueryFailed, match="Could not convert"):
        session.sql("SELECT count(CAST(o_comment AS INT)) FROM orders", plan="staged").arrow()


def test_what_belongs_to_the_client_runs_with_the_driver(session):
    session.sql("CREATE TEMP TABLE mine AS SELECT 41 AS n")
    assert session.sql("SELECT n + 1 AS n FROM mine").fetchall() == [(42,)]
    session.register("frame", pa.table({"n": [1, 2, 3]}))
    assert session.sql("SELECT sum(n) FROM frame").fetchall() == [(6,)]
    assert session.sql("SELECT sum(n) FROM frame", plan="staged").fetchall() == [(6,)]


def test_identical_queries_are_all_answered(session, plain):
    sql = "SELECT count(*) FROM lineitem a, orders b WHERE l_orderkey % 100 = o_orderkey % 100"
    expected = plain.sql(sql).fetchall()
    handles = [session.submit(sql) for _ in range(3)]
    assert [handle.take().fetchall() for handle in handles] == [expected] * 3


def test_a_cancelled_query_leaves_nothing(session, cut_small):
    native = session.submit("SELECT count(*) FROM range(10000000000)")
    staged = session.submit(query(9), plan="staged")
    time.sleep(0.2)
    native.cancel()
    staged.cancel()
    wait_until(lambda: not session.queries())
    wait_until(lambda: objects(session) == 0)


# --- two nodes -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_nodes(cluster: Any, session: queryard.Session) -> Iterator[queryard.Session]:
    """A node joins while the session is open; nodes may die as often as they like."""
    cluster.add(1)
    wait_until(lambda: len(session.host.backend.nodes) == 2)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(members, "QUICK_S", 0.0)
        yield session


@pytest.mark.parametrize("number", some_of(range(1, 23), 6))
def test_staged_answers_at_two_nodes_are_duckdbs(two_nodes, plain, cut_small, number):
    check(two_nodes, plain, number, "staged")


def test_tasks_run_at_both_nodes(two_nodes, plain, cut_small, monkeypatch):
    places = Places(two_nodes, monkeypatch)
    check(two_nodes, plain, 9, "staged")
    assert len(places.seen) == 2


@pytest.mark.parametrize("rows", some_of([300_000, 1_000_000], 1))
def test_rows_between_nodes_respect_the_object_store_and_none_stay_there(
    two_nodes, folder, cut_small, rows
):
    """In the long form more passes between the nodes than a store can hold."""
    import ray

    file = folder / "wide.parquet"
    duckdb.sql(
        f"COPY (SELECT range AS n, range * 7919 % {rows} AS m, repeat(md5(range::VARCHAR), 3) AS t "
        f"FROM range({rows})) TO '{file}' (ROW_GROUP_SIZE 102400)"
    )
    two_nodes.register("wide", str(file))
    handle = two_nodes.submit(
        "SELECT count(*), sum(length(a.t)), count(DISTINCT b.t) FROM wide a, wide b "
        "WHERE a.m = b.n",
        plan="staged",
        memory="400 MB",
        time_limit=PATIENCE_S,
    )
    seen = []
    for _ in turns_until(lambda: handle.status not in ("waiting", "running")):
        seen += stored(ray)
        time.sleep(0.05)
    assert handle.take().fetchall() == [(rows, 96 * rows, rows)]
    assert any(store.used for store in seen), "nothing has passed between the nodes"
    assert all(store.used <= store.size and not store.beyond for store in seen)
    wait_until(lambda: objects(two_nodes) == 0)
    wait_until(lambda: not any(store.used for store in stored(ray)))


def test_splits_are_read_again_where_they_were_read(two_nodes, folder, monkeypatch):
    """The locality rate rises: at first no node is near to a split, then most are read nearby."""
    monkeypatch.setattr(canonical, "SMALL_S", 0.0)
    monkeypatch.setattr(canonical, "SPLIT_S", 0.00001)
    monkeypatch.setattr(physical, "SMALL_S", 0.0)
    wait_until(lambda: len(two_nodes.host.backend.nodes) == 2)
    rates = []
    for _ in range(3):
        near = read = 0
        for node, places in scanned(
            two_nodes, "SELECT count(*), c_nationkey FROM customer GROUP BY ALL"
        ):
            read += 1
            near += node in places
        assert read >= 4
        rates.append(near / read)
    assert rates[0] == 0.0
    assert min(rates[1:]) >= 0.5


def scanned(session: queryard.Session, sql: str) -> list[tuple[str, tuple[str, ...]]]:
    """The map tasks of a query over tables: the node of each, and the nodes near to its split."""
    found: list[tuple[str, tuple[str, ...]]] = []
    backend: Any = session.host.backend
    launch = backend._launches.launch

    def launched(command: Any, link: Any) -> None:
        (task,) = command.tasks
        state = session.host._loop._coordinator.kernel.state
        job = state.jobs.get(task.job)
        if task.kind == "map" and job is not None and job.scanned:
            found.append((command.node, job.scanned[0][0].splits[task.index].nodes))
        launch(command, link)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(backend._launches, "launch", launched)
        session.sql(sql, plan="staged").fetchall()
    return found


class Places:
    """Where tasks have ended; after so many of them something is done to the node there."""

    def __init__(
        self,
        session: queryard.Session,
        monkeypatch: pytest.MonkeyPatch,
        kill_after: int = 0,
        killing: Callable[[Any, str], object] | None = None,
    ) -> None:
        self.seen: set[str] = set()
        self.killed = ""
        self._left = kill_after
        self._kill = killing or kill
        self._backend = session.host.backend
        self._post = self._backend._launches._post
        monkeypatch.setattr(self._backend._launches, "_post", self._hear)

    def _hear(self, event: Any) -> None:
        if isinstance(event, TaskFinished):
            self.seen.add(event.place)
            self._left -= 1
            if self._left == 0:
                self.killed = event.place
                self._kill(self._backend, event.place)
        self._post(event)


def kill(backend: Any, node: str) -> None:
    """Kill the process of a node, with all that it holds."""
    os.kill(backend._links[node].facts.pid, signal.SIGKILL)


@pytest.mark.parametrize("after", some_of([1, 2, 4, 7, 11, 16, 23], 3))
@pytest.mark.parametrize("number", some_of([1, 3, 5, 9, 18, 21], 2))
def test_a_node_dies_in_the_middle_and_answers_are_duckdbs(
    two_nodes, plain, cut_small, monkeypatch, number, after
):
    wait_until(lambda: len(two_nodes.host.backend.nodes) == 2)
    places = Places(two_nodes, monkeypatch, after)
    check(two_nodes, plain, number, "staged")
    wait_until(lambda: places.killed not in {node.id for node in two_nodes.host.backend.nodes})
    wait_until(lambda: objects(two_nodes) == 0)


def test_a_native_query_of_which_no_row_was_read_begins_again_elsewhere(two_nodes, plain):
    backend = two_nodes.host.backend
    wait_until(lambda: len(backend.nodes) == 2)
    sql = (
        "SELECT count(*), sum(a.l_quantity) FROM lineitem a, lineitem b "
        "WHERE a.l_orderkey % 500 = b.l_orderkey % 500"
    )
    handle = two_nodes.submit(sql, plan="native")
    wait_until(lambda: any(run.link is not None for run in backend._runs))
    (run,) = backend._runs
    time.sleep(0.1)
    kill(backend, run.link.name)
    assert handle.take().fetchall() == plain.sql(sql).fetchall()


def test_a_native_query_of_which_rows_were_read_fails_and_names_the_node(two_nodes):
    backend = two_nodes.host.backend
    wait_until(lambda: len(backend.nodes) == 2)
    sql = "SELECT range AS n, repeat('x', 200) AS t FROM range(3000000)"
    handle = two_nodes.submit(sql, plan="native")
    batches = iter(handle.take().batches())
    next(batches)
    (run,) = backend._runs
    name = run.link.name
    kill(backend, name)
    with pytest.raises(NodeGone, match=name):
        for _ in batches:
            pass


def test_a_raylet_dies_and_another_node_joins(two_nodes, cluster, plain, cut_small):
    backend = two_nodes.host.backend
    wait_until(lambda: len(backend.nodes) == 2)
    handle = two_nodes.submit(query(9), plan="staged")
    cluster.kill(cluster.alive[-1])
    answer = handle.take().arrow()
    assert_same(answer, plain.sql(query(9)).to_arrow_table(), True)
    wait_until(lambda: len(backend.nodes) == 1)
    cluster.add(1)
    wait_until(lambda: len(backend.nodes) == 2)
    check(two_nodes, plain, 3, "staged")


# --- a raylet that dies alone: its workers notice it when they like, and talk until then ---------


def kill_raylet(cluster: Any, backend: Any, node: str) -> None:
    link = backend._links[node]
    cluster.kill_raylet(next(each for each in cluster.alive if each.node_id == link.ray_node))


def node_is_gone(cluster: Any, session: queryard.Session, node: str) -> None:
    """Wait until a node is lost with all its processes; then another one joins."""
    backend: Any = session.host.backend
    wait_until(lambda: node not in {each.id for each in backend.nodes})
    wait_until(lambda: not cluster.left_of_killed())
    wait_until(lambda: objects(session) == 0)
    cluster.add(1)
    wait_until(lambda: len(backend.nodes) == 2)


@pytest.mark.parametrize("after", some_of([3, 1, 9], 1))
def test_a_raylet_dies_alone_under_a_staged_query(
    two_nodes, cluster, plain, cut_small, monkeypatch, after
):
    wait_until(lambda: len(two_nodes.host.backend.nodes) == 2)
    places = Places(two_nodes, monkeypatch, after, partial(kill_raylet, cluster))
    check(two_nodes, plain, 9, "staged")
    assert places.killed
    node_is_gone(cluster, two_nodes, places.killed)
    check(two_nodes, plain, 3, "staged")


@pytest.mark.long
def test_a_raylet_dies_alone_under_a_native_query(two_nodes, cluster, plain):
    backend = two_nodes.host.backend
    wait_until(lambda: len(backend.nodes) == 2)
    sql = (
        "SELECT count(*), sum(a.l_quantity) FROM lineitem a, lineitem b "
        "WHERE a.l_orderkey % 250 = b.l_orderkey % 250"
    )
    handle = two_nodes.submit(sql, plan="native", time_limit=PATIENCE_S)
    wait_until(lambda: any(run.link is not None for run in backend._runs))
    (run,) = backend._runs
    name = run.link.name
    kill_raylet(cluster, backend, name)
    assert handle.take().fetchall() == plain.sql(sql).fetchall()
    node_is_gone(cluster, two_nodes, name)


@pytest.mark.long
def test_a_raylet_dies_alone_while_rows_are_read(two_nodes, cluster):
    backend = two_nodes.host.backend
    wait_until(lambda: len(backend.nodes) == 2)
    sql = "SELECT range AS n, repeat('x', 200) AS t FROM range(3000000)"
    batches = iter(two_nodes.submit(sql, plan="native").take().batches())
    next(batches)
    (run,) = backend._runs
    name = run.link.name
    kill_raylet(cluster, backend, name)
    with pytest.raises(NodeGone, match=name):
        for _ in batches:
            pass
    node_is_gone(cluster, two_nodes, name)


@pytest.mark.long
def test_a_frozen_node_is_given_up_and_its_process_ends(two_nodes, plain, cut_small, monkeypatch):
    """It lives for Ray, and says nothing."""
    monkeypatch.setattr(members, "GIVE_UP_S", 6.0)
    backend = two_nodes.host.backend
    wait_until(lambda: len(backend.nodes) == 2)
    link = next(iter(backend._links.values()))
    handle = two_nodes.submit(query(9), plan="staged", time_limit=PATIENCE_S)
    os.kill(link.facts.pid, signal.SIGSTOP)
    try:
        answer = handle.take().arrow()
        assert_same(answer, plain.sql(query(9)).to_arrow_table(), True)
        wait_until(lambda: link.name not in backend._links)
        wait_until(lambda: len(backend.nodes) == 2)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(link.facts.pid, signal.SIGCONT)
    check(two_nodes, plain, 3, "staged")
