"""Random histories of a cluster in one process: nodes die and join, and answers are DuckDB's."""

from __future__ import annotations

import random
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
from queryard.backends.ray.launches import Launches
from queryard.backends.ray.node_tasks import NodeTasks
from queryard.live import recording
from queryard.workload.tpch import TABLES, query

from .fake_ray import FakeRay, ray_faked
from .split_tpch import split_tpch

PATIENCE_S = 60.0
UNORDERED = {2, 3, 10, 18, 21}  # ORDER BY may leave rows in any order


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


@pytest.fixture
def session(ray: FakeRay, folder: Path, cut_small: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    # A random history may lose node after node under one query.
    monkeypatch.setattr(recording, "MOST_LOSSES", 100)
    options: Any = {"memory": "1 GB", "history": False, "statistics": "off"}
    with queryard.connect(folder, backend="ray", address="auto", **options) as made:
        yield made


def nodes(session: Any) -> list[str]:
    return [node.id for node in session.host.backend.nodes]


def nothing_left(session: Any, ray: FakeRay) -> bool:
    reports = session.host.backend.reports().values()
    return not any(report.objects or report.queries for report in reports)


def check(number: int, answer: Any, expected: Callable[[int], Any]) -> None:
    ordered = "order by" in query(number).lower() and number not in UNORDERED
    assert_same(answer, expected(number), ordered)


# Few in the short form: a history in which nodes fall silent takes up to half a minute.
@pytest.mark.parametrize("seed", some_of(range(40), 2))
def test_answers_are_duckdbs_while_nodes_die_and_join(session, ray, expected, seed):
    draw = random.Random(seed)
    numbers = [draw.randint(1, 22) for _ in range(4)]
    handles = [
        (number, session.submit(query(number), plan=draw.choice(["staged", "staged", "native"])))
        for number in numbers
    ]
    for _ in range(draw.randint(1, 4)):
        time.sleep(draw.random() * 0.4)
        alive = [actor for actor in ray.actors if actor.alive]
        if draw.random() < 0.5 and alive:
            draw.choice(alive).die("killed by the test")
        elif alive:
            ray.lose(draw.choice(alive).node)
            ray.add(draw.choice([1, 2]))
    for number, handle in handles:
        check(number, handle.take(PATIENCE_S).arrow(), expected)
    session.host.ask(lambda coordinator: coordinator.kernel.validate())
    wait_until(lambda: not session.queries())
    wait_until(lambda: nothing_left(session, ray))


def test_every_incarnation_is_a_node_of_its_own(session, ray):
    before = nodes(session)
    ray.actors[0].die("killed by the test")
    wait_until(lambda: len(nodes(session)) == 2 and nodes(session) != before)
    assert len({*before, *nodes(session)}) == 3


def test_rows_that_are_lost_before_they_were_handed_over_are_made_again(
    session, ray, expected, monkeypatch
):
    """The last tasks have ended for the kernel; then the node with their rows dies."""
    from queryard.backends.ray.spread import SpreadTasks

    handed_over = SpreadTasks.result

    def result(self: Any) -> Any:
        for actor in [actor for actor in ray.actors if actor.alive]:
            actor.die("killed by the test")
        wait_until(lambda: len(nodes(session)) == 2)
        return handed_over(self)

    monkeypatch.setattr(SpreadTasks, "result", result)
    check(5, session.sql(query(5), plan="staged").arrow(), expected)
    # The last job has reduces of its own: its maps are lost as well, and the kernel is done.
    sql = "SELECT l_returnflag AS flag, count(*) AS n FROM lineitem GROUP BY l_returnflag"
    found = session.sql(sql, plan="staged").fetchall()
    assert sorted(found) == session.sql(f"{sql} ORDER BY flag", plan="native").fetchall()


def test_rows_that_are_lost_from_a_living_node_are_made_again(session, ray, expected):
    """No node dies; what tasks have made is gone, again and again."""
    handle = session.submit(query(9), plan="staged")
    for _ in range(5):
        time.sleep(0.05)
        for actor in ray.actors:
            for tasks in list(actor.target.result()._tasks.values()):
                store = tasks._exchange._own.store
                for key in list(store._entries):
                    store.drop(key)
    check(9, handle.take(PATIENCE_S).arrow(), expected)


def test_a_node_is_lost_as_a_reduce_is_launched_at_the_last_slot(
    folder, expected, cut_small, monkeypatch
):
    """The reduce waits there for maps that were at the lost node, and they have no other slot."""
    launched, lost = Launches.launch, []

    def launch(self: Any, command: Any, link: Any) -> None:
        if command.tasks[0].kind == "reduce" and not lost:
            (other,) = [each for each in backend._links.values() if each is not link]
            lost.append(other.name)
            ray.lose(other.ray_node)
            backend._gone(other, "killed by the test")
        launched(self, command, link)

    monkeypatch.setattr(Launches, "launch", launch)
    options: Any = {"memory": "1 GB", "history": False, "statistics": "off"}
    with (
        ray_faked(2, 1) as ray,
        queryard.connect(folder, backend="ray", address="auto", **options) as session,
    ):
        backend = session.host.backend
        check(9, session.submit(query(9), plan="staged").take(PATIENCE_S).arrow(), expected)
        assert lost


def test_the_last_node_dies_and_queries_wait_for_another(session, ray, expected):
    for node in ray.nodes():
        ray.lose(node["NodeID"])
    wait_until(lambda: not nodes(session))
    handles = [(n, session.submit(query(n), plan=p)) for n, p in ((6, "native"), (3, "staged"))]
    time.sleep(0.2)
    ray.add(1)
    for number, handle in handles:
        check(number, handle.take(PATIENCE_S).arrow(), expected)


def test_early_reduces_fetch_as_their_maps_end(ray, folder, expected, cut_small, monkeypatch):
    options: Any = {"memory": "1 GB", "history": False, "statistics": "off", "slow_start": 0.2}
    ahead: list[Any] = []
    asked = NodeTasks.ask_ahead
    monkeypatch.setattr(
        NodeTasks, "ask_ahead", lambda self, given: (ahead.extend(given), asked(self, given))
    )
    with queryard.connect(folder, backend="ray", address="auto", **options) as session:
        check(9, session.sql(query(9), plan="staged").arrow(), expected)
        assert ahead, "no reduce was told of rows of maps before all had ended"
        assert all(piece.rows and piece.part is not None for piece in ahead)
        wait_until(lambda: nothing_left(session, ray))
        for number in (1, 9):
            handle = session.submit(query(number), plan="staged")
            time.sleep(0.1)
            ray.actors[-1].die("killed by the test")
            check(number, handle.take(PATIENCE_S).arrow(), expected)
            wait_until(lambda: len(nodes(session)) == 2)
