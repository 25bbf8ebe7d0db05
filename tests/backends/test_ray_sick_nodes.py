"""One sick node of a cluster fails no query while healthy ones stand by."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

import queryard
import queryard.sql.planner
from queryard.backends.ray.node_tasks import NodeTasks
from queryard.backends.ray.workplace import DuckWorkplace, EngineHere
from queryard.engine.errors import QueryFailed
from queryard.live.coordinating.health import MOST_FAILED

from .fake_ray import ray_faked

SUM = "SELECT sum(n) + {0} FROM numbers{0}"
# A table per query: a node that has read one attracts its next query.
TABLES = MOST_FAILED + 2
FULL = "No space left on device"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("data")
    for table in range(TABLES):
        (made / f"numbers{table}").mkdir()
        for part in range(8):
            rows = "SELECT range AS n FROM range(1000)"
            duckdb.sql(f"COPY ({rows}) TO '{made}/numbers{table}/{part}.parquet'")
    return made


class Ward:
    """A session on two nodes, with what fails where."""

    def __init__(self, session: queryard.Session) -> None:
        self.session = session
        self.sick: set[str] = set()
        # Nodes at which something was tried, one after another.
        self.tried: list[str] = []
        self.lock = threading.Lock()

    def tries(self, node: str) -> bool:
        """Note that something is tried at a node; whether it fails there."""
        with self.lock:
            self.tried.append(node)
        return node in self.sick

    @property
    def names(self) -> list[str]:
        return [node.name for node in self.session.cluster().nodes]

    def ask(self, number: int, plan: str) -> Any:
        handle = self.session.submit(SUM.format(number), plan=plan)
        rows = handle.result(60.0).fetchall()
        assert handle.wait(60.0)  # else the next one begins at another node, which is free
        return rows


@pytest.fixture
def ward(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ward]:
    staged = partial(queryard.sql.planner.plan_staged, target_bytes=1, partitions=3)
    monkeypatch.setattr(queryard.sql.planner, "plan_staged", lambda *given, **named: staged(*given))
    setting = {"memory": "1 GB", "history": False, "statistics": "off"}
    with (
        ray_faked(2, 2),
        queryard.connect(folder, backend="ray", address="auto", **setting) as session,
    ):
        yield Ward(session)


@pytest.fixture
def full_disk(ward: Ward, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks of sick nodes cannot write their rows, natively nothing can be read there."""
    run, open_ = NodeTasks.run, EngineHere.open
    names: dict[int, str] = {}
    opened = DuckWorkplace.__init__

    def note(self: DuckWorkplace, setting: Any) -> None:
        opened(self, setting)
        names[id(self.engine)] = setting.name

    def run_task(self: NodeTasks, launch: int, task: Any, source: str = "") -> float:
        if ward.tries(self._exchange.place):
            raise QueryFailed(f"IO Error: Could not write file: {FULL}")
        return run(self, launch, task, source)

    def open_query(self: EngineHere, statement: Any, output: Any) -> Any:
        if ward.tries(ward_name(self)):
            gone = "SELECT * FROM read_parquet('/no/such/file.parquet')"
            parts = tuple((gone, kind) for _, kind in statement.statements)
            statement = replace(statement, statements=parts)
        return open_(self, statement, output)

    def ward_name(engine: EngineHere) -> str:
        return names[id(engine)]

    for actor in ward.session.host.backend._cluster.ray.actors:
        place = actor.target.result()._workplace
        names[id(place.engine)] = place._setting.name
    monkeypatch.setattr(DuckWorkplace, "__init__", note)
    monkeypatch.setattr(NodeTasks, "run", run_task)
    monkeypatch.setattr(EngineHere, "open", open_query)


@pytest.mark.usefixtures("full_disk")
@pytest.mark.parametrize("plan", ["staged", "native"])
def test_every_query_is_answered_while_one_node_is_sick_which_then_rests(ward, plan):
    ward.ask(0, plan)
    sick = ward.tried[-1]  # natively, where queries begin that are near to none
    ward.sick.add(sick)
    for number in range(1, 1 + MOST_FAILED):
        ward.tried.clear()
        assert ward.ask(number, plan) == [(3996000 + number,)]
        assert sick in ward.tried
    ward.tried.clear()
    assert ward.ask(1 + MOST_FAILED, plan) == [(3996001 + MOST_FAILED,)]
    assert sick not in ward.tried, "it gets no work"
    (found,) = [node for node in ward.session.cluster().nodes if node.name == sick]
    assert not found.silent
    assert found.resting.startswith("for ")
    assert "IO Error" in found.resting
    assert f"node {sick} at 127.0.0.1" in found.resting


@pytest.mark.usefixtures("full_disk")
def test_a_query_that_fails_at_all_nodes_natively_names_them(ward):
    ward.sick.update(ward.names)
    with pytest.raises(QueryFailed, match="IO Error") as failed:
        ward.ask(0, "native")
    assert all(name in str(failed.value) for name in ward.names)
    assert sorted(ward.tried) == sorted(ward.names), "once at each"
    assert not any(node.resting for node in ward.session.cluster().nodes)


@pytest.mark.usefixtures("full_disk")
def test_a_query_in_tasks_that_fails_at_all_nodes_names_the_last(ward):
    ward.sick.update(ward.names)
    with pytest.raises(QueryFailed, match=r"failed 4 times, .*IO Error.*\(at node ") as failed:
        ward.ask(0, "staged")
    assert any(name in str(failed.value) for name in ward.names)
    assert not any(node.resting for node in ward.session.cluster().nodes)


@pytest.mark.usefixtures("full_disk")
@pytest.mark.parametrize("plan", ["staged", "native"])
def test_a_query_that_is_wrong_is_tried_once_and_no_node_is_named(ward, plan):
    sql = "SELECT sum(CAST('a' || n AS INTEGER)) FROM numbers0"
    for _ in range(MOST_FAILED):
        ward.tried.clear()
        with pytest.raises(QueryFailed, match="Conversion Error") as failed:
            ward.session.sql(sql, plan=plan).fetchall()
        assert " at node " not in str(failed.value)
        if plan == "native":
            assert len(ward.tried) == 1
    assert not any(node.resting for node in ward.session.cluster().nodes)


def test_a_node_that_could_not_open_a_query_tries_again(ward, monkeypatch):
    opened = DuckWorkplace.open_tasks
    failed: list[str] = []

    def open_tasks(self: DuckWorkplace, *given: Any) -> Any:
        if self._setting.name not in failed:
            failed.append(self._setting.name)
            raise OSError(28, FULL)
        return opened(self, *given)

    monkeypatch.setattr(DuckWorkplace, "open_tasks", open_tasks)
    assert ward.ask(0, "staged") == [(3996000,)]
    assert sorted(failed) == sorted(ward.names)
