"""Where work of a session on a cluster runs: near its data, by speed, natively or in tasks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

import queryard
import queryard.sql.planner
from queryard.backends.ray import described, node_tasks, workplace
from queryard.backends.ray.cluster import RayNode
from queryard.backends.ray.link import Link
from queryard.backends.ray.messages import Lease, NodeFacts, StartTask
from queryard.core.model import MAP
from queryard.estimate import spreading
from queryard.estimate.prices import Rates
from queryard.sql.catalog import canonical
from queryard.sql.planner import physical

from .fake_ray import FakeRay, ray_faked

PATIENCE_S = 30.0
SUM = "SELECT k, sum(n) AS s FROM numbers GROUP BY k ORDER BY k"
GB = 1 << 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of eight files, and another one."""
    made = tmp_path_factory.mktemp("data")
    (made / "numbers").mkdir()
    for part in range(8):
        rows = f"SELECT range % 7 AS k, range + {part} * 10000 AS n FROM range(10000)"
        duckdb.sql(f"COPY ({rows}) TO '{made}/numbers/{part}.parquet'")
    duckdb.sql(f"COPY (SELECT range AS n FROM range(50000)) TO '{made}/others.parquet'")
    return made


@pytest.fixture
def ray() -> Iterator[FakeRay]:
    with ray_faked(2, 2) as fake:
        yield fake


@pytest.fixture(autouse=True)
def cut_finely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables are read in several splits, too."""
    monkeypatch.setattr(canonical, "SMALL_S", 0.0)
    monkeypatch.setattr(canonical, "SPLIT_S", 0.001)
    monkeypatch.setattr(physical, "SMALL_S", 0.0)


def connect(place: Any, **options: Any) -> queryard.Session:
    given: dict[str, Any] = {"memory": "1 GB", "history": False, "statistics": "off", **options}
    return queryard.connect(place, backend="ray", address="auto", **given)


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Every order to a node, with the name of the node."""
    seen: list[tuple[str, Any]] = []
    sent = Link.send

    def send(self: Any, order: Any) -> None:
        seen.append((self.name, order))
        sent(self, order)

    monkeypatch.setattr(Link, "send", send)
    return seen


def answer(folder: Path) -> list[tuple[Any, ...]]:
    """What DuckDB says, so that no query of the same text is still ending in the session."""
    return duckdb.sql(SUM.replace("numbers", f"'{folder}/numbers/*.parquet'")).fetchall()


def readers(orders: list[tuple[str, Any]]) -> dict[int, str]:
    """Which node has read which split of the first job of a query, in the order of launches."""
    return {
        order.launch.tasks[0].index: name
        for name, order in orders
        if isinstance(order, StartTask)
        and order.launch.tasks[0].kind == MAP
        and order.launch.tasks[0].job.endswith("/j1")
    }


# --- places --------------------------------------------------------------------------------------


LOCAL = {"order": "fair", "placement": "local"}


@pytest.mark.parametrize("profile", ["marshal", "locf", LOCAL], ids=["rack", "locf", "local"])
def test_splits_are_read_again_where_they_were_read(ray, folder, orders, profile):
    with connect(folder, profile=profile) as session:
        expected = session.sql(SUM, plan="staged").fetchall()
        before = readers(orders)
        assert len(before) == 8
        assert len(set(before.values())) == 2
        orders.clear()
        assert session.sql(SUM, plan="staged").fetchall() == expected
        first = list(readers(orders).items())[:4]  # then a node that has nothing left may help
        assert all(before[split] == name for split, name in first)


def test_a_table_that_a_plan_cuts_for_itself_is_read_again_where_it_was_read(
    ray, folder, orders, monkeypatch
):
    plan = queryard.sql.planner.plan_staged
    own = partial(plan, target_bytes=1, partitions=2)
    monkeypatch.setattr(queryard.sql.planner, "plan_staged", lambda *a, **k: own(*a))
    with connect(folder) as session:
        session.sql(SUM, plan="staged").fetchall()
        before = readers(orders)
        orders.clear()
        session.sql(SUM, plan="staged").fetchall()
        first = list(readers(orders).items())[:4]
        assert all(before[split] == name for split, name in first)


def test_files_are_read_where_the_catalog_says_they_are(folder, orders, tmp_path):
    text = f"""
[tables.numbers]
path = "{folder}/numbers/"
places = {{ "[0-3].parquet" = ["disk-a"], "[4-7].parquet" = "machine-1" }}
"""
    (tmp_path / "yard.toml").write_text(text)
    with ray_faked() as ray:
        ray.add(2, place="disk-a")
        ray.add(2)
        with connect(tmp_path / "yard.toml") as session:
            session.sql(SUM, plan="staged").fetchall()
            where = {node.places[-1]: node.id for node in session.host.backend.nodes}
    found = readers(orders)
    first = list(found.items())[:4]
    assert all(name == where["disk-a" if split < 4 else "machine-1"] for split, name in first)


def test_splits_are_read_in_the_rack_that_has_them(folder, orders, tmp_path):
    """Two nodes have the files, and two others are near to one of them each."""
    text = f"""
[tables.numbers]
path = "{folder}/numbers/"
places = {{ "[0-3].parquet" = ["disk-1"], "[4-7].parquet" = "disk-2" }}
"""
    (tmp_path / "yard.toml").write_text(text)
    with ray_faked() as ray:
        ray.add(1, rack="r2")
        ray.add(1, rack="r1")
        ray.add(1, rack="r1", place="disk-1")
        ray.add(1, rack="r2", place="disk-2")
        with connect(tmp_path / "yard.toml") as session:
            assert session.profile["placement"] == "rack"
            racks = {node.id: node.rack for node in session.host.backend.nodes}
            session.sql(SUM, plan="staged").fetchall()
    first = list(readers(orders).items())[:4]
    assert len({name for _, name in first}) == 4
    assert all(racks[name] == ("r1" if split < 4 else "r2") for split, name in first)


def test_native_queries_go_to_the_node_that_has_read_their_table(ray, folder, orders):
    with connect(folder) as session:
        homes: dict[str, set[str]] = {"numbers": set(), "others": set()}
        for _ in range(2):
            for table, found in homes.items():
                handle = session.submit(f"SELECT sum(n) FROM {table}", plan="native")
                handle.result(60.0).fetchall()
                assert handle.wait(60.0)  # a node with work left is not the nearest
                found.add([name for name, order in orders if isinstance(order, Lease)][-1])
        assert [len(found) for found in homes.values()] == [1, 1]


def test_racks_are_labels_of_ray(folder):
    with ray_faked() as ray:
        ray.add(1, rack="r1", place="disk-a")
        ray.add(1, **{"ray.io/availability-zone": "zone-b"})
        with connect(folder) as session:
            nodes = session.host.backend.nodes
            assert sorted(node.rack for node in nodes) == ["r1", "zone-b"]
            (first,) = [node for node in nodes if node.rack == "r1"]
            assert first.places == ("127.0.0.1", "machine-0", "disk-a")
            assert session.profile["placement"] == "rack"


# --- speeds --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rates", "speed"),
    [(Rates(2.0, 2.0, 2.0), 0.5), (Rates(0.5, 0.5, 0.5), 2.0), (Rates(1.01, 1, 1), 1.0)],
)
def test_a_node_is_as_fast_as_its_calibration_says(monkeypatch, rates, speed):
    monkeypatch.setattr(described, "machine_rates", lambda path: Rates(1.0, 1.0, 1.0))
    facts = NodeFacts(1, {}, GB, GB, (), rates)
    node = described.described("n-1", 2, RayNode("n", "10.0.0.5", 2, 0), facts)
    assert (node.map_speed, node.reduce_speed, node.memory_bytes) == (speed, speed, float(GB))


def test_speeds_reach_the_kernel(ray, folder, monkeypatch):
    seen: list[int] = []

    def rates(path: Path) -> Rates:
        seen.append(1)
        return Rates(4.0, 4.0, 4.0) if len(seen) == 1 else Rates(1.0, 1.0, 1.0)

    monkeypatch.setattr(workplace, "machine_rates", rates)
    monkeypatch.setattr(described, "machine_rates", lambda path: Rates(1.0, 1.0, 1.0))
    with connect(folder) as session:
        assert sorted(node.speed for node in session.cluster().nodes) == [0.25, 1.0]


# --- native or in tasks --------------------------------------------------------------------------


@pytest.mark.parametrize(("gain", "open_s", "plan"), [(1e9, 0.0, "staged"), (0.0, 9.0, "native")])
def test_a_query_that_leaves_its_plan_open_is_split_where_that_is_faster(
    ray, folder, monkeypatch, gain, open_s, plan
):
    monkeypatch.setattr(spreading, "SHORT_S", 0.0)
    monkeypatch.setattr(spreading, "GAIN", gain)
    monkeypatch.setattr(spreading, "OPEN_S", open_s)
    with connect(folder) as session:
        handle = session.submit(SUM)
        assert handle.take(PATIENCE_S).fetchall() == answer(folder)
        found = session.explain(SUM)
        assert found.plan == plan
        (note,) = found.notes
        assert note.startswith(f"{plan}: about ")
        assert "natively on one node" in note
        assert "in tasks on" in note
        assert handle.explain().plan == plan


def test_short_queries_run_natively_and_say_so(ray, folder):
    with connect(folder) as session:
        found = session.explain(SUM)
        assert found.plan == "native"
        assert "which is too short to be split" in found.notes[0]


def test_what_cannot_be_split_says_why(ray, folder, monkeypatch):
    monkeypatch.setattr(spreading, "SHORT_S", 0.0)
    monkeypatch.setattr(spreading, "GAIN", 1e9)
    with connect(folder) as session:
        sql = "SELECT n FROM numbers QUALIFY row_number() OVER (ORDER BY n) < 4"
        handle = session.submit(sql)
        assert len(handle.take(PATIENCE_S).fetchall()) == 3
        assert handle.explain().plan == "native"


# --- memory --------------------------------------------------------------------------------------


def test_each_node_uses_its_part_of_what_a_staged_query_reserves():
    opening = node_tasks.Opening(None, 600, None, 300.0)  # type: ignore[arg-type]
    assert [opening.part(size).memory_bytes for size in (100.0, 200.0)] == [200, 400]


def test_a_query_may_reserve_more_than_one_node_has_if_it_runs_in_tasks(ray, folder):
    with connect(folder) as session:
        expected = answer(folder)
        assert session.sql(SUM, plan="staged", memory="900 MB").fetchall() == expected
        handle = session.submit(SUM, memory="900 MB")
        assert handle.take(PATIENCE_S).fetchall() == expected
        assert "the largest node has" in handle.explain().notes[0]
        with pytest.raises(queryard.QueryardError, match="memory: 900 MB is more than"):
            session.sql(SUM, plan="native", memory="900 MB")


# --- unequal nodes -------------------------------------------------------------------------------


def test_slots_of_a_slow_node_are_divided_by_its_own_times(ray, folder, monkeypatch, orders):
    """One node takes much longer: it runs fewer tasks, and its means say so."""
    ran = node_tasks.NodeTasks.run
    slow: list[str] = []

    def run(self: Any, launch: int, task: Any, source: str = "") -> float:
        time.sleep(0.4 if self._exchange.place in slow else 0.0)
        return ran(self, launch, task, source)

    monkeypatch.setattr(node_tasks.NodeTasks, "run", run)
    with connect(folder, profile="h-tumm") as session:
        slow.append(session.host.backend.nodes[0].id)
        expected = answer(folder)
        for _ in range(2):
            assert session.sql(SUM, plan="staged").fetchall() == expected
        nodes = session.host.ask(lambda coordinator: dict(coordinator.kernel.state.nodes))
        means = {name: node.map_mean.or_else(0.0) for name, node in nodes.items()}
        fast = [mean for name, mean in means.items() if name not in slow]
        assert means[slow[0]] > 1.5 * fast[0]
    tasks = [name for name, order in orders if isinstance(order, StartTask)]
    assert tasks.count(slow[0]) < len(tasks) / 2
