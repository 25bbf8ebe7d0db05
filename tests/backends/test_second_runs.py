"""Tasks that are far behind run a second time: answers stay DuckDB's, and nothing is left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from engine.staged.staged_driving import assert_same
from long_forms import some_of
from waiting import wait_until

import queryard
import queryard.sql.planner
from queryard.core.commands import Kill
from queryard.core.model import Node
from queryard.engine.staged.node import StagedNode
from queryard.live.session import Session
from queryard.sql.catalog import open_catalog
from queryard.workload.tpch import TABLES, query

from .fake_ray import FakeRay, ray_faked
from .split_tpch import split_tpch

pytestmark = pytest.mark.usefixtures("cut_small")

EAGER = {"name": "late", "factor": 1.0, "done": 0.0, "share": 1.0, "least_s": 0.0}
LATE = {"name": "late", "factor": 2.0, "done": 0.1, "share": 1.0, "least_s": 0.05}
UNORDERED = {2, 3, 10, 18, 21}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return split_tpch(tmp_path_factory, 0.002)


@pytest.fixture(scope="module")
def expected(folder: Path) -> Callable[[int], Any]:
    connection = duckdb.connect(config={"threads": 1})
    for name in TABLES:
        path = folder / f"{name}.parquet"
        connection.execute(f"CREATE VIEW {name} AS FROM read_parquet('{path}')")
    return lambda number: connection.sql(query(number)).to_arrow_table()


@pytest.fixture
def ray() -> Iterator[FakeRay]:
    with ray_faked(2, 2) as fake:
        yield fake


def on_ray(folder: Path, speculation: Any) -> Any:
    profile = {"base": "fair", "speculation": speculation}
    options: Any = {"memory": "1 GB", "history": False, "statistics": "off", "profile": profile}
    return queryard.connect(folder, backend="ray", address="auto", **options)


def kills(session: Any, monkeypatch: pytest.MonkeyPatch) -> list[Kill]:
    """The kills that the backend is asked for, from now on."""
    seen: list[Kill] = []
    backend = session.host.backend
    execute = backend.execute

    def noted(command: Any) -> None:
        if isinstance(command, Kill):
            seen.append(command)
        execute(command)

    monkeypatch.setattr(backend, "execute", noted)
    return seen


def check(number: int, answer: Any, expected: Callable[[int], Any]) -> None:
    ordered = "order by" in query(number).lower() and number not in UNORDERED
    assert_same(answer, expected(number), ordered)


def all_free(session: Any) -> bool:
    return session.host.ask(
        lambda coordinator: all(
            node.free == node.spec.slots for node in coordinator.kernel.state.nodes.values()
        )
    )


@pytest.mark.parametrize("numbers", some_of(["1 9 18", "3 5 13", "7 8 21", "2 12 17"], 1))
def test_answers_are_duckdbs_although_tasks_run_twice(ray, folder, expected, numbers, monkeypatch):
    with on_ray(folder, EAGER) as session:
        seen = kills(session, monkeypatch)
        for number in map(int, numbers.split()):
            check(number, session.sql(query(number), plan="staged").arrow(), expected)
        wait_until(lambda: all_free(session))
        session.host.ask(lambda coordinator: coordinator.kernel.validate())
        reports = session.host.backend.reports
        wait_until(lambda: not any(report.objects for report in reports().values()))
    assert seen, "no task has run a second time"


def test_a_query_does_not_wait_for_a_node_that_is_stuck(ray, folder, expected, monkeypatch):
    """A task that never ends by itself: the second run of it ends the query."""
    stuck = threading.Event()
    run = StagedNode.run

    def hang(self: Any, spec: Any, cancelled: Any = None) -> Any:
        if spec.kind == "map" and spec.index == 1 and not stuck.is_set():
            stuck.set()
            wait_until(lambda: cancelled.is_asked)
            cancelled.check()
        return run(self, spec, cancelled)

    with on_ray(folder, LATE) as session:
        seen = kills(session, monkeypatch)
        monkeypatch.setattr(StagedNode, "run", hang)
        check(1, session.sql(query(1), plan="staged").arrow(), expected)
        assert stuck.is_set()
        assert seen
        wait_until(lambda: all_free(session))


def test_between_nodes_of_one_process(folder, expected, monkeypatch):
    """The rows of two runs of a task come under one name: the later replaces, and none add up."""
    slowly = StagedNode.run
    turns = iter(range(10_000))

    def run(self: Any, spec: Any, cancelled: Any = None) -> Any:
        if next(turns) % 7 == 3:
            time.sleep(0.05)
        return slowly(self, spec, cancelled)

    monkeypatch.setattr(StagedNode, "run", run)
    profile = {"base": "fair", "speculation": EAGER}
    nodes = [Node("a", 2), Node("b", 2)]
    catalog = open_catalog(folder)
    options: Any = {"memory": "1 GB", "history": False, "statistics": "off", "profile": profile}
    with Session(catalog, nodes=nodes, **options) as session:
        seen = kills(session, monkeypatch)
        for number in (1, 3, 5):
            check(number, session.sql(query(number), plan="staged").arrow(), expected)
        wait_until(lambda: all_free(session))
    assert seen, "no task has run a second time"
