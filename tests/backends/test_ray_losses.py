"""What a query, a node or a driver in trouble costs on a cluster: itself, and nothing beside."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from waiting import wait_until

import queryard
from queryard.backends.protocol import QueryUsed, Usage
from queryard.backends.ray import members, workplace
from queryard.backends.ray.actor import NodeActor
from queryard.backends.ray.backend import RayBackend
from queryard.backends.ray.link import Link
from queryard.backends.ray.messages import Lease, StartTask
from queryard.backends.ray.node_tasks import NodeTasks
from queryard.results.streams import ResultStream

from .fake_ray import FakeRay, ray_faked

PATIENCE_S = 30.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    duckdb.sql(f"COPY (SELECT range AS n FROM range(1000)) TO '{tmp_path}/numbers.parquet'")
    return tmp_path


@pytest.fixture
def ray() -> Iterator[FakeRay]:
    with ray_faked(2, 1) as fake:
        yield fake


def connect(folder: Path) -> queryard.Session:
    options: Any = {"memory": "1 GB", "history": False, "statistics": "off"}
    return queryard.connect(folder, backend="ray", address="auto", **options)


@pytest.fixture
def session(ray: FakeRay, folder: Path) -> Iterator[queryard.Session]:
    with connect(folder) as made:
        yield made


# --- what runs with the driver -------------------------------------------------------------------


def test_what_runs_with_the_driver_ends_without_waiting_for_the_backend(session):
    """A slot that ends posts under a lock that the backend takes where it grants."""
    backend: Any = session.host.backend
    go = threading.Event()
    handle = session.iterate(lambda step: go.wait(PATIENCE_S) and 0.5, 1, work_s=0.01)
    wait_until(lambda: bool(backend._here.held))
    with backend._lock:
        go.set()
        wait_until(lambda: not backend._here.held)
        leases = backend._here._leases
        assert leases._lock.acquire(timeout=PATIENCE_S)
        leases._lock.release()
    assert handle.wait(PATIENCE_S)


# --- queries that crash their process ------------------------------------------------------------


@pytest.mark.parametrize("plan", ["native", "staged"])
def test_a_query_that_crashes_every_node_fails_and_the_nodes_stay(session, ray, monkeypatch, plan):
    lease, run = NodeActor._lease, NodeTasks.run
    crashed: list[str] = []

    def crash(place: str) -> None:
        crashed.append(place)
        next(actor for actor in ray.actors if actor.place == place).die("Segmentation fault")

    def leasing(self: Any, order: Any) -> None:
        lease(self, order)
        if "12345" in repr(order.statement):
            crash(self._workplace._setting.name)

    def running(self: Any, launch: int, task: Any, source: str = "") -> float:
        if "12345" in repr(self._opening.plan):
            crash(self._exchange.place)
        return run(self, launch, task, source)

    monkeypatch.setattr(NodeActor, "_lease", leasing)
    monkeypatch.setattr(NodeTasks, "run", running)
    with pytest.raises(
        queryard.QueryFailed, match=r"was at 4 nodes when they were lost.*Segmentation"
    ):
        session.sql("SELECT sum(n) + 12345 FROM numbers", plan=plan).fetchall()
    assert len(crashed) == 4
    wait_until(lambda: len(session.host.backend.nodes) == 2)
    assert not session.host.backend.refused
    assert session.sql("SELECT sum(n) FROM numbers", plan=plan).fetchall() == [(499500,)]


def test_a_statement_of_the_drivers_outlives_any_number_of_nodes(session, ray):
    backend: Any = session.host.backend
    go = threading.Event()
    handle = session.iterate(lambda step: go.wait(PATIENCE_S) and 0.5, 1, work_s=0.01)
    for _ in range(6):
        wait_until(lambda: bool(backend._here.held))
        ((_, node),) = backend._here.held
        next(actor for actor in ray.actors if actor.place == node).die("killed by the test")
        wait_until(lambda node=node: node not in {at for _, at in backend._here.held})
    go.set()
    assert handle.wait(PATIENCE_S)
    assert handle.status == "finished"


def test_a_statement_of_the_drivers_ends_although_no_node_is_left(session, ray):
    """Its slot is that of a lost node, and the kernel counts none for it."""
    backend: Any = session.host.backend
    go = threading.Event()
    handle = session.iterate(lambda step: go.wait(PATIENCE_S) and 0.5, 1, work_s=0.01)
    wait_until(lambda: bool(backend._here.held))
    for node in ray.nodes():
        ray.lose(node["NodeID"])
    wait_until(lambda: not backend.nodes and not backend._here.held)
    go.set()
    assert handle.wait(PATIENCE_S)
    assert handle.status == "finished"


def test_an_answer_that_cannot_be_kept_costs_its_query_only(session, monkeypatch):
    """The disk of the driver is full, for example."""
    put = ResultStream.put

    def kept(self: Any, batch: Any) -> None:
        if "kept" in batch.schema.names:
            raise queryard.QueryFailed("the rows do not fit into memory, and not into /tmp")
        put(self, batch)

    monkeypatch.setattr(ResultStream, "put", kept)
    before = session.host.backend.nodes
    with pytest.raises(queryard.QueryFailed, match="the rows do not fit"):
        session.sql("SELECT n AS kept FROM numbers", plan="native").fetchall()
    wait_until(lambda: not session.queries())
    assert session.host.backend.nodes == before
    assert session.sql("SELECT sum(n) FROM numbers", plan="native").fetchall() == [(499500,)]
    session.host.ask(lambda coordinator: coordinator.kernel.validate())


# --- nodes that are slow to join, or refused ------------------------------------------------------


def test_a_session_opens_with_the_nodes_that_join_soon_and_the_others_follow(
    ray, folder, monkeypatch
):
    monkeypatch.setattr(members, "OTHERS_S", 0.1)
    facts, may_go_on = workplace.DuckWorkplace.facts, threading.Event()

    def facts_later(self: Any) -> Any:
        if self._setting.slots == 1:
            assert may_go_on.wait(PATIENCE_S)
        return facts(self)

    monkeypatch.setattr(workplace.DuckWorkplace, "facts", facts_later)
    with connect(folder) as session:
        assert [node.slots for node in session.host.backend.nodes] == [2]
        assert session.sql("SELECT sum(n) FROM numbers").fetchall() == [(499500,)]
        may_go_on.set()
        wait_until(lambda: len(session.host.backend.nodes) == 2)
        assert session.host.backend.refused == ()


def test_a_node_that_was_refused_is_asked_again_and_is_forgotten_if_it_goes(
    ray, folder, monkeypatch
):
    wrong = [f"{folder}/x: No such file"]
    asked: list[str] = []

    def differing(setting: Any) -> list[str]:
        asked.append(setting.name)
        return wrong if setting.slots == 1 else []

    monkeypatch.setattr(workplace, "_differing", differing)
    monkeypatch.setattr(members, "REFUSED_S", 0.1)
    with connect(folder) as session:
        backend: Any = session.host.backend
        assert len(backend.nodes) == 1
        wait_until(lambda: len(asked) > 3)
        (reason,) = backend.refused
        assert "No such file" in reason
        wrong.clear()
        wait_until(lambda: len(backend.nodes) == 2)
        assert backend.refused == ()
        wrong.append("again")
        other = ray.add(1)
        wait_until(lambda: bool(backend.refused))
        ray.lose(other)
        wait_until(lambda: not backend.refused)


def test_a_node_whose_process_died_too_often_is_asked_again(session, ray, monkeypatch):
    backend: Any = session.host.backend
    node = ray.nodes()[0]["NodeID"]
    monkeypatch.setattr(members, "REFUSED_S", 1e9)

    def is_refused() -> bool:
        for actor in ray.actors:
            if actor.node == node and actor.alive and actor.target.done():
                actor.die("killed by the test")
        return bool(backend.refused)

    wait_until(is_refused)
    monkeypatch.setattr(members, "REFUSED_S", 0.1)
    wait_until(lambda: len(backend.nodes) == 2)
    assert backend.refused == ()


# --- nodes that fall silent ----------------------------------------------------------------------


def test_a_silent_node_is_given_no_work_until_it_answers(session, monkeypatch):
    backend: Any = session.host.backend
    silent = {backend.nodes[0].id}
    is_suspect = property(lambda link: link.name in silent)
    ran: list[str] = []
    send = Link.send

    def sending(self: Any, order: Any) -> None:
        if isinstance(order, Lease | StartTask):
            ran.append(self.name)
        send(self, order)

    def slots() -> int:
        return int(session.host.ask(lambda coordinator: coordinator.kernel.state.total_slots))

    everywhere = backend.slots
    monkeypatch.setattr(Link, "is_suspect", is_suspect)
    monkeypatch.setattr(Link, "send", sending)
    wait_until(lambda: slots() < everywhere)
    for plan in ("native", "staged", "native", "staged"):
        assert session.sql("SELECT sum(n) FROM numbers", plan=plan).fetchall() == [(499500,)]
    assert ran
    assert not silent.intersection(ran)
    silent.clear()
    wait_until(lambda: slots() == everywhere)


def test_after_a_pause_of_the_driver_no_node_is_given_up(session, monkeypatch):
    backend: Any = session.host.backend
    before = backend.nodes
    monkeypatch.setattr(members, "PAUSED_S", -10.0)  # every look is late
    links = list(backend._links.values())
    for _ in range(3):
        with backend._lock:
            for link in links:
                link._heard_s -= 1000.0
        wait_until(lambda: all(link.silent_s < 100.0 for link in links))
    assert backend.nodes == before


# --- small things --------------------------------------------------------------------------------


def test_a_query_that_was_forgotten_leaves_nothing_when_a_slot_tells_of_it_late(session):
    backend: Any = session.host.backend
    link = next(iter(backend._links.values()))
    backend._hear(link, [QueryUsed("forgotten", Usage(work_s=1.0))])
    assert not backend._usage._known
    assert session.sql("SELECT sum(n) FROM numbers", plan="staged").fetchall() == [(499500,)]
    wait_until(lambda: not session.queries())
    assert not backend._usage._known


def test_all_nodes_may_be_lost_while_a_session_opens(ray, folder, monkeypatch):
    slots = RayBackend.slots.fget

    def lost(self: Any) -> int:
        monkeypatch.undo()
        return int(slots(self))

    monkeypatch.setattr(RayBackend, "nodes", property(lambda self: ()))
    monkeypatch.setattr(RayBackend, "slots", property(lost))
    with connect(folder) as session:
        assert session.sql("SELECT sum(n) FROM numbers", plan="native").fetchall() == [(499500,)]
