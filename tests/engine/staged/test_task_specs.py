"""What a node is told of a task: small, plain, and the same as bytes."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from staged_driving import assert_same, ready_tasks
from staged_grammar import TABLES
from staged_tables import make_tables

from queryard.core.model import TaskId
from queryard.engine.errors import (
    OutOfMemory,
    QueryCancelled,
    QueryFailed,
    QueryTimedOut,
    failure,
    failure_kind,
)
from queryard.engine.staged.cancellation import Cancellation
from queryard.engine.staged.exchange import Piece, PieceLost
from queryard.engine.staged.file_exchange import FileExchange
from queryard.engine.staged.local_exchange import LocalExchange
from queryard.engine.staged.node import StagedNode
from queryard.engine.staged.query import StagedQuery
from queryard.engine.staged.task import TaskOutcome, TaskSpec
from queryard.sql.catalog import Catalog, open_catalog
from queryard.sql.planner import plan_staged
from queryard.workload.tpch import generate, query

SLOW = "SELECT count(*) FROM big a JOIN big b ON a.x % 7 <> b.x"


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("specs")
    make_tables(folder, TABLES, seed=2)
    generate(folder, 0.001)
    with duckdb.connect() as connection:
        path = folder / "big.parquet"
        connection.execute(f"COPY (SELECT i AS x FROM range(300000) t(i)) TO '{path}'")
    return open_catalog(folder)


@pytest.fixture
def instance() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def specs(staged: StagedQuery, node: StagedNode) -> Iterator[tuple[TaskSpec, TaskOutcome]]:
    """Run all tasks one by one, with what each was told."""
    while tasks := ready_tasks(staged):
        for task in tasks:
            spec = staged.spec(task, 1)
            outcome = node.run(spec)
            assert staged.done(task, outcome)
            yield spec, outcome


@pytest.mark.parametrize("number", [1, 3, 9, 18, 21])
def test_specs_of_tpch_are_small_and_the_same_as_bytes(
    catalog: Catalog, instance: duckdb.DuckDBPyConnection, tmp_path: Path, number: int
) -> None:
    plan = plan_staged(query(number), catalog, partitions=8, broadcast_bytes=0)
    exchange = FileExchange(tmp_path, "here")
    with StagedNode(instance, exchange) as node:
        for spec, outcome in specs(StagedQuery(plan, "q", 1e9), node):
            assert pickle.loads(pickle.dumps(spec)) == spec
            assert pickle.loads(pickle.dumps(outcome)) == outcome
            assert len(pickle.dumps(spec)) < 4096


def test_the_rows_do_not_depend_on_the_exchange(
    catalog: Catalog, instance: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    plan = plan_staged(query(3), catalog, target_bytes=1, partitions=3, broadcast_bytes=0)
    answers = []
    for exchange in (LocalExchange(1e9), FileExchange(tmp_path, "here")):
        staged = StagedQuery(plan, "q", 1e9)
        with StagedNode(instance, exchange) as node:
            outcomes = [outcome for _, outcome in specs(staged, node)]
            assert all(0 <= o.fetch_s + o.put_s <= o.seconds for o in outcomes)
        answers.append(staged.result(exchange).read_all())
    assert_same(*answers, ordered=True)


def test_a_plan_carries_no_frames(catalog: Catalog) -> None:
    with_frame = open_catalog(tables={"one": duckdb.sql("FROM range(10000)").to_arrow_table()})
    plan = plan_staged("SELECT count(*) FROM one", with_frame, target_bytes=1)
    copy = pickle.loads(pickle.dumps(plan))
    assert plan.frames
    assert not copy.frames
    assert copy == plan
    assert len(pickle.dumps(plan)) < 4096


def test_a_late_attempt_does_not_count(catalog: Catalog) -> None:
    staged = StagedQuery(plan_staged("SELECT k FROM dim", catalog), "q", 1e9)
    task = TaskId("j1", "map", 0)
    early = TaskOutcome(1, (Piece("q/j1:m0", None, "a", 5, 40),), 5, 40.0, 1.0, 0.0, 0.0)
    late = replace(early, attempt=2, pieces=(Piece("q/j1:m0", None, "b", 5, 40),))
    assert staged.done(task, late)
    assert not staged.done(task, early)
    assert staged.lost("a") == ()
    assert staged.needed() == ()
    assert staged.lost("b") == (task,)
    assert staged.needed() == (task,)
    assert staged.done(task, early)  # its rows lie elsewhere, and no others stand


def test_one_task_is_stopped_and_another_goes_on(
    catalog: Catalog, instance: duckdb.DuckDBPyConnection
) -> None:
    staged = StagedQuery(plan_staged(SLOW, catalog), "q", 1e9)
    (task,) = ready_tasks(staged)
    ends: dict[str, BaseException] = {}

    def work(name: str, spec: TaskSpec, cancelled: Cancellation) -> None:
        try:
            node.run(spec, cancelled)
        except BaseException as error:
            ends[name] = error

    with StagedNode(instance, LocalExchange(1e9)) as node:
        tokens = [Cancellation(), Cancellation()]
        threads = [
            threading.Thread(target=work, args=(str(i), staged.spec(task, i), token))
            for i, token in enumerate(tokens)
        ]
        for thread in threads:
            thread.start()
        time.sleep(0.2)
        tokens[0].stop(QueryCancelled("killed"))
        threads[0].join(30)
        assert list(ends) == ["0"]
        assert str(ends["0"]) == "killed"
        assert threads[1].is_alive()
        node.cancel(task)
        threads[1].join(30)
        assert isinstance(ends["1"], QueryCancelled)
        with pytest.raises(QueryTimedOut, match="deadline"):
            node.run(staged.spec(task, 9, deadline_s=time.time() + 0.05))
        stopped = Cancellation()
        stopped.ask()
        with pytest.raises(QueryCancelled):
            node.run(staged.spec(task, 10), stopped)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (failure("Out of Memory Error: could not allocate block"), "may pass"),
        (failure("IO Error: Could not read from file"), "may pass"),
        (failure("INTERRUPT Error: Interrupted!"), "may pass"),
        (QueryCancelled("killed"), "may pass"),
        (PieceLost([Piece("q/j1:m0", None, "a", 1, 8)]), "may pass"),
        (OSError(5, "Input/output error"), "may pass"),
        (MemoryError(), "may pass"),
        (OutOfMemory("…"), "may pass"),
        (failure("Conversion Error: Could not convert string 'a' to INT32"), "never"),
        (failure("Out of Range Error: Overflow in addition of INT64"), "never"),
        (failure("Constraint Error: NOT NULL constraint failed"), "never"),
        (failure("Invalid Input Error: IO Error: in words of the user's"), "never"),
        (failure("INTERNAL Error: Attempted to access index 1"), "never"),
        (QueryTimedOut("the query ran into its time limit"), "never"),
        (ImportError("no module"), "never"),
        (TypeError("a mistake"), "never"),
    ],
)
def test_some_failures_may_pass_and_others_never_do(error: BaseException, kind: str) -> None:
    assert failure_kind(error) == kind


def test_an_error_that_crosses_processes_stays_what_it_is() -> None:
    error = PieceLost([Piece("q/j1:m0", None, "a", 1, 8)])
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.keys, copy.holders, str(copy)) == (
        PieceLost,
        error.keys,
        error.holders,
        str(error),
    )
    assert isinstance(failure("Parser Error: x"), QueryFailed)
