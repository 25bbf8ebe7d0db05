"""Sessions on a cluster: which nodes take part, what runs where, and what is said if not."""

from __future__ import annotations

import enum
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner
from waiting import wait_until

import queryard
from queryard.backends.protocol import WorkerFailed
from queryard.backends.ray import link as links
from queryard.backends.ray import members, node_tasks, spread, workplace
from queryard.backends.ray.backend import RayBackend
from queryard.backends.ray.exchange import RayExchange
from queryard.backends.ray.launches import Launches
from queryard.backends.ray.messages import DRIVER
from queryard.backends.ray.spread import SpreadTasks
from queryard.backends.ray.workplace import DuckWorkplace
from queryard.cli.app import app
from queryard.core.commands import Release, Scale
from queryard.core.errors import QueryardError
from queryard.engine.sealing.access import Access
from queryard.engine.staged.exchange import PieceLost
from queryard.live.client import Client

from .fake_ray import FakeRay, ray_faked

PATIENCE_S = 30.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    duckdb.sql(f"COPY (SELECT range AS n FROM range(1000)) TO '{tmp_path}/numbers.parquet'")
    duckdb.sql(f"COPY (SELECT range AS n FROM range(500)) TO '{tmp_path}/lines.csv'")
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as shop:
        shop.execute("CREATE TABLE orders AS SELECT range AS n FROM range(200)")
    return tmp_path


@pytest.fixture
def ray() -> Iterator[FakeRay]:
    with ray_faked(2, 1) as fake:
        yield fake


def connect(folder: Path, **options: Any) -> queryard.Session:
    given: dict[str, Any] = {"memory": "1 GB", "history": False, "statistics": "off", **options}
    return queryard.connect(folder, backend="ray", address="auto", **given)


@pytest.fixture
def session(ray: FakeRay, folder: Path) -> Iterator[queryard.Session]:
    with connect(folder) as made:
        yield made


# --- what runs where -----------------------------------------------------------------------------


def ran_at_nodes(session: queryard.Session, ask: Callable[[], Any]) -> tuple[Any, bool]:
    """The answer, and whether a node was asked for it."""
    backend: Any = session.host.backend
    seen: list[Any] = []
    sent = links.Link.send

    def send(self: Any, order: Any) -> None:
        seen.append(type(order).__name__)
        sent(self, order)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(links.Link, "send", send)
        answer = ask()
    assert backend.slots == 3
    return answer, "Lease" in seen or "StartTask" in seen


@pytest.mark.parametrize(
    ("sql", "plan", "rows", "at_nodes"),
    [
        ("SELECT sum(n) FROM numbers", "native", [(499500,)], True),
        ("SELECT sum(n) FROM numbers", "staged", [(499500,)], True),
        ("SELECT sum(n) FROM lines", "native", [(124750,)], True),
        ("SELECT count(*) FROM shop.orders", "native", [(200,)], True),
        ("SELECT count(*) FROM numbers a JOIN shop.orders b USING (n)", "native", [(200,)], True),
        ("SELECT 41 + 1", "native", [(42,)], True),
        ("SET VARIABLE x = 7", "native", [], False),
        ("SELECT count(*) FROM duckdb_settings() WHERE name = 'threads'", "native", [(1,)], False),
    ],
)
def test_reads_of_files_run_at_nodes_and_the_rest_with_the_driver(
    session, sql, plan, rows, at_nodes
):
    answer, asked = ran_at_nodes(session, lambda: session.sql(sql, plan=plan).fetchall())
    assert (answer, asked) == (rows, at_nodes)


def test_parameters_settings_and_scripts_travel(session):
    assert session.sql("SELECT count(*) FROM numbers WHERE n < ?", [10]).fetchall() == [(10,)]
    session.sql("SET TimeZone = 'Asia/Tokyo'")
    assert session.sql("SELECT current_setting('TimeZone')").fetchall() == [("Asia/Tokyo",)]
    script = "SELECT 1; SELECT max(n) FROM numbers"
    assert session.sql(script).fetchall() == [(999,)]


class Color(enum.StrEnum):
    RED = "red"


class Number(int):
    """Known in this process only."""

    def __reduce__(self) -> Any:
        raise TypeError("it cannot be pickled")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (memoryview(b"ab"), b"ab"),
        (Number(7), 7),
        ([Number(7), None], [7, None]),
        (Color.RED, str(Color.RED)),
    ],
)
def test_parameters_of_types_of_one_process_travel_as_plain_values(session, given, found):
    asked = "SELECT max(?) FROM numbers"
    assert session.sql(asked, [given]).fetchall() == [(found,)]
    assert session.sql(asked.replace("?", "$a"), {"a": given}).fetchall() == [(found,)]


def test_a_parameter_that_cannot_be_one_is_told_and_the_nodes_go_on(session):
    with pytest.raises(QueryardError, match="function cannot be a parameter"):
        session.sql("SELECT max(n) FROM numbers WHERE n < ?", [lambda: 1]).fetchall()
    assert session.sql("SELECT count(*) FROM numbers WHERE n < ?", [10]).fetchall() == [(10,)]
    assert len(session.host.backend.nodes) == 2


def test_a_statement_that_cannot_travel_fails_and_the_nodes_go_on(session, monkeypatch):
    def unsendable(statement: Any) -> Any:
        return lambda: statement

    monkeypatch.setattr(session.host.backend, "_send", unsendable)
    with pytest.raises(QueryardError, match="cannot be sent to a node"):
        session.sql("SELECT max(n) FROM numbers", plan="native").fetchall()
    monkeypatch.undo()
    assert session.sql("SELECT max(n) FROM numbers", plan="native").fetchall() == [(999,)]
    assert len(session.host.backend.nodes) == 2


@pytest.fixture
def large_answers(session: queryard.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers of a few kilobytes are large ones."""
    monkeypatch.setattr(node_tasks, "TOLD_BYTES", 0)
    monkeypatch.setattr(spread, "WHOLE_BYTES", 0)
    session.host.backend._peers.ask_bytes = 500


def test_a_large_answer_comes_in_its_order(session, large_answers):
    asked = session.sql("SELECT n FROM numbers ORDER BY n DESC", plan="staged")
    assert [n for (n,) in asked.fetchall()] == list(range(999, -1, -1))


def test_an_answer_of_which_rows_were_read_is_not_made_again(session, large_answers, monkeypatch):
    in_turn = RayExchange.in_turn

    def lost_soon(self: RayExchange, pieces: Any) -> Any:
        yield next(in_turn(self, pieces))
        raise PieceLost(pieces)

    monkeypatch.setattr(RayExchange, "in_turn", lost_soon)
    with pytest.raises(QueryardError, match="had been given out; run the query again"):
        session.sql("SELECT n FROM numbers ORDER BY n", plan="staged").fetchall()


def test_a_short_answer_is_with_the_driver(session, ray, monkeypatch):
    told = []
    done = spread.SpreadTasks.done

    def noted(self: Any, task: Any, outcome: Any, *more: Any) -> None:
        told.extend(outcome.pieces)
        done(self, task, outcome, *more)

    monkeypatch.setattr(spread.SpreadTasks, "done", noted)
    assert session.sql("SELECT max(n) FROM numbers", plan="staged").fetchall() == [(999,)]
    assert told[-1].holder == DRIVER


def test_large_text_is_read_natively_and_the_reason_is_told(session, folder, monkeypatch):
    monkeypatch.setattr(session.host.engine.segments, "target_bytes", 200.0)
    handle = session.submit("SELECT sum(n) FROM lines", plan="staged")
    assert handle.take().fetchall() == [(124750,)]
    (reason,) = handle.reasons
    assert "large tables of text are not cut into segments on a Ray cluster" in reason


def test_files_that_change_are_read_as_they_are(session, folder):
    assert session.sql("SELECT count(*) FROM numbers").fetchall() == [(1000,)]
    duckdb.sql(f"COPY (SELECT range AS n FROM range(77)) TO '{folder}/numbers.parquet'")
    for plan in ("native", "staged"):
        assert session.sql("SELECT count(*) FROM numbers", plan=plan).fetchall() == [(77,)]
    session.register("more", str(folder / "numbers.parquet"))
    assert session.sql("SELECT count(*) FROM more").fetchall() == [(77,)]


@pytest.mark.parametrize("plan", ["native", "staged"])
def test_sealed_clients_reach_granted_tables_only(session, folder, plan):
    access = Access(tables=frozenset(["numbers"]), sealed=True)
    client = Client.open(session.host, memory_bytes=1 << 27, access=access)
    try:
        ticket = client.submit("SELECT sum(n) FROM numbers", plan=plan)
        assert [batch.to_pylist() for batch in ticket.output] == [[{"sum(n)": 499500}]]
        with pytest.raises(QueryardError):
            client.submit("SELECT * FROM lines", plan=plan).output.schema(PATIENCE_S)
        path = folder / "lines.csv"
        with pytest.raises(QueryardError):
            client.submit(f"SELECT * FROM '{path}'", plan=plan).output.schema(PATIENCE_S)
    finally:
        client.close()


def test_online_answers_and_programs_run_with_the_driver(session):
    steps: list[int] = []
    handle = session.iterate(lambda step: steps.append(step) or 0.5, 3, work_s=0.01)
    assert handle.wait(PATIENCE_S)
    assert steps == [1, 2, 3]
    answers = list(session.online("SELECT sum(n) FROM numbers"))
    assert answers[-1].arrow().to_pylist() == [{"sum(n)": 499500}]


def test_a_statement_of_the_drivers_survives_the_node_that_lent_its_slot(session, ray):
    backend: Any = session.host.backend
    session.create_function("slowly", lambda n: time.sleep(0.02) or n, ["BIGINT"], "BIGINT")
    handle = session.submit("SELECT sum(slowly(n)) FROM numbers WHERE n < 40")
    wait_until(lambda: bool(+backend._here.held))
    for actor in list(ray.actors):
        actor.die("killed by the test")
    assert handle.take(PATIENCE_S).fetchall() == [(780,)]


# --- which nodes take part -----------------------------------------------------------------------


def test_a_node_with_other_versions_is_refused(ray, folder, monkeypatch):
    mine = workplace.versions()
    seen: list[int] = []

    def facts(self: Any) -> Any:
        found = _facts(self)
        seen.append(1)
        other = {**mine, "duckdb": "1.0.0"} if len(seen) == 1 else mine
        return found._replace(versions=other)

    _facts = DuckWorkplace.facts
    monkeypatch.setattr(DuckWorkplace, "facts", facts)
    with connect(folder, history=None) as session:
        view = session.cluster()
        assert len(view.nodes) == 1
        assert "it has duckdb 1.0.0 in place of" in view.refused[0]
        assert "install the same versions on every node" in view.refused[0]
        shown = CliRunner().invoke(app, ["cluster", "--data", str(folder)])
        assert "1 node, " in shown.output
        assert "does not take part: node " in shown.output
        assert "it has duckdb 1.0.0 in place of" in shown.output.replace("\n", " ")


def test_nodes_are_warmed_before_they_join(ray, folder, monkeypatch):
    told: list[str] = []
    warm_up, joined = DuckWorkplace._warm_up, RayBackend._joined

    def warming(self: Any) -> None:
        warm_up(self)
        told.append(f"warm {self._setting.name}")

    def joining(self: Any, link: Any) -> None:
        told.append(f"joined {link.name}")
        joined(self, link)

    monkeypatch.setattr(DuckWorkplace, "_warm_up", warming)
    monkeypatch.setattr(RayBackend, "_joined", joining)
    with connect(folder) as session:
        for node in session.host.backend.nodes:
            assert told.index(f"warm {node.id}") < told.index(f"joined {node.id}")


def test_a_node_that_sees_other_files_is_refused_and_a_session_needs_a_node(
    ray, folder, monkeypatch
):
    monkeypatch.setattr(workplace, "_differing", lambda setting: [f"{folder}/x: No such file"])
    with pytest.raises(QueryardError, match="no node takes part") as told:
        connect(folder)
    assert "it does not see the files of the catalog as the driver does" in str(told.value)
    assert f"{folder}/x: No such file" in str(told.value)
    assert not any(actor.alive for actor in ray.actors)


def test_files_are_compared_by_size_and_time(session, folder):
    from queryard.backends.ray.messages import NodeSetting
    from queryard.backends.ray.opening import _files

    found = _files(session.catalog)
    assert {Path(path).name for path in found} >= {"numbers.parquet", "lines.csv"}
    setting = NodeSetting("n", 1, None, 0, None, found)
    assert workplace._differing(setting) == []
    (folder / "lines.csv").write_text("n\n1\n")
    (folder / "numbers.parquet").unlink()
    told = sorted(workplace._differing(setting))
    assert told == [
        f"{folder}/lines.csv: has another size or time of change there",
        f"{folder}/numbers.parquet: No such file or directory",
    ]


def test_a_node_whose_process_dies_at_once_again_and_again_is_not_asked_for_ever(session, ray):
    wait_until(lambda: len(session.cluster().nodes) == 2)
    node = ray.nodes()[0]["NodeID"]

    def killed_all() -> bool:
        for actor in ray.actors:
            if actor.node == node and actor.alive and actor.target.done():
                actor.die("killed by the test")
        return bool(session.host.backend.refused)

    wait_until(killed_all)
    (reason,) = session.cluster().refused
    assert "its process" in reason
    assert len(session.cluster().nodes) == 1


def test_a_silent_node_gets_no_orders_and_is_given_up_in_the_end(session, ray, monkeypatch):
    backend: Any = session.host.backend
    monkeypatch.setattr(links, "SUSPECT_S", 0.1)
    link = next(iter(backend._links.values()))
    stopped = list(backend._links.values())
    for each in stopped:  # frozen: they say nothing, and are not dead
        monkeypatch.setattr(each, "_heard_s", time.monotonic() - 1.0)
        each._hear = lambda link, events: time.sleep(5.0)
    wait_until(lambda: link.is_suspect)
    monkeypatch.setattr(members, "GIVE_UP_S", 1.5)
    wait_until(lambda: link.name not in backend._links)
    wait_until(lambda: len(backend.nodes) == 2)
    assert session.sql("SELECT count(*) FROM numbers").fetchall() == [(1000,)]


def test_a_node_may_be_lost_while_others_still_join(ray, folder, monkeypatch):
    facts, joined, gone = DuckWorkplace.facts, RayBackend._joined, RayBackend._gone
    is_joined, is_gone = threading.Event(), threading.Event()
    asked: list[Any] = []

    def facts_late(self: Any) -> Any:
        asked.append(self)
        if len(asked) == 2:
            assert is_joined.wait(PATIENCE_S)
            first = asked[0]._setting.name
            next(actor for actor in ray.actors if actor.place == first).die("killed by the test")
            assert is_gone.wait(PATIENCE_S)
        return facts(self)

    def joining(self: Any, link: Any) -> None:
        joined(self, link)
        is_joined.set()

    def going(self: Any, link: Any, reason: str) -> None:
        gone(self, link, reason)
        is_gone.set()

    monkeypatch.setattr(DuckWorkplace, "facts", facts_late)
    monkeypatch.setattr(RayBackend, "_joined", joining)
    monkeypatch.setattr(RayBackend, "_gone", going)
    with connect(folder) as session:
        wait_until(lambda: len(session.cluster().nodes) == 2)
        assert asked[0]._setting.name not in [node.name for node in session.cluster().nodes]
        assert session.sql("SELECT count(*) FROM numbers").fetchall() == [(1000,)]


def test_a_node_that_is_given_up_while_it_joins_does_not_take_part(ray, folder, monkeypatch):
    joined = RayBackend._joined
    given_up: list[str] = []

    def joining(self: Any, link: Any) -> None:
        if not given_up:
            given_up.append(link.name)
            link.give_up("the test says so")
        joined(self, link)

    monkeypatch.setattr(RayBackend, "_joined", joining)
    with connect(folder) as session:
        wait_until(lambda: len(session.host.backend.nodes) == 2)
        assert given_up[0] not in [node.id for node in session.host.backend.nodes]


def test_a_defect_of_a_node_costs_the_node_only(session, ray):
    before = {node.id for node in session.host.backend.nodes}
    actor = ray.actors[0]
    actor.target.result()._outbox.put(WorkerFailed(ValueError("a defect")))
    wait_until(lambda: not actor.alive)
    wait_until(lambda: len(session.host.backend.nodes) == 2)
    assert actor.place in before - {node.id for node in session.host.backend.nodes}
    assert session.sql("SELECT count(*) FROM numbers").fetchall() == [(1000,)]


def test_a_query_that_nodes_cannot_open_fails_and_the_nodes_stay(session, monkeypatch):
    before = session.host.backend.nodes

    def open_tasks(self: Any, *given: Any) -> Any:
        raise ValueError("it cannot be opened")

    with monkeypatch.context() as patched:
        patched.setattr(DuckWorkplace, "open_tasks", open_tasks)
        with pytest.raises(Exception, match="it cannot be opened"):
            session.sql("SELECT sum(n) FROM numbers", plan="staged").fetchall()
    assert session.sql("SELECT sum(n) FROM numbers", plan="staged").fetchall() == [(499500,)]
    assert session.host.backend.nodes == before


def test_a_node_out_of_use_still_makes_rows_again_for_a_reader(session, monkeypatch):
    """The kernel does not know of it: to the kernel the node is idle."""
    backend: Any = session.host.backend
    result, make_again = SpreadTasks.result, Launches.make_again
    released: list[str] = []

    def result_lost(self: Any) -> Any:
        for node in backend.nodes:
            self._query.lost(node.id)
        return result(self)

    def make_and_release(self: Any, query: str, task: Any, link: Any, ended: Any) -> None:
        make_again(self, query, task, link, ended)
        if not released:
            released.append(link.name)
            backend.execute(Release(link.name))

    monkeypatch.setattr(node_tasks, "TOLD_BYTES", 0)  # what is told is not lost with a node
    monkeypatch.setattr(SpreadTasks, "result", result_lost)
    monkeypatch.setattr(Launches, "make_again", make_and_release)
    assert session.sql("SELECT sum(n) FROM numbers", plan="staged").fetchall() == [(499500,)]
    assert released


def test_a_reader_that_waits_for_a_node_has_one_that_is_used_again(session, monkeypatch):
    backend: Any = session.host.backend
    result = SpreadTasks.result

    def result_lost(self: Any) -> Any:
        names = [node.id for node in backend.nodes]
        for name in names:
            self._query.lost(name)
            backend.execute(Release(name))
        threading.Timer(0.1, lambda: backend.execute(Scale(len(names)))).start()
        return result(self)

    monkeypatch.setattr(SpreadTasks, "result", result_lost)
    assert session.sql("SELECT sum(n) FROM numbers", plan="staged").fetchall() == [(499500,)]


# --- what is said --------------------------------------------------------------------------------


def test_the_nodes_are_shown(ray, folder):
    with connect(folder, history=None) as session:
        _check_shown(session, folder)


def _check_shown(session: queryard.Session, folder: Path) -> None:
    view = session.cluster()
    assert sorted((node.slots, node.busy) for node in view.nodes) == [(1, 0), (2, 0)]
    assert {view.notes[node.name].where for node in view.nodes} == {"127.0.0.1"}
    shown = CliRunner().invoke(app, ["cluster", "--data", str(folder)])
    assert shown.exit_code == 0, shown.output
    assert "2 nodes, 3 slots" in shown.output
    assert "0 of 2 slots in use" in shown.output


def test_a_session_of_one_process_is_one_node(folder):
    with queryard.connect(folder, slots=2, memory="1 GB", history=False) as session:
        (node,) = session.cluster().nodes
        assert (node.name, node.slots, node.busy) == ("local", 2, 0)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"backend": "rey"}, "unknown backend 'rey'; did you mean 'ray'"),
        ({"address": "auto"}, "is that of a cluster; say backend='ray' as well"),
        ({"backend": "ray", "address": 7}, "address: must be 'local', 'auto' or the address"),
        ({"backend": "ray", "slots": (1, 4)}, r"slots: \(1, 4\) is a range"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(folder, options, told):
    with pytest.raises(QueryardError, match=told):
        queryard.connect(folder, history=False, **options)


def test_without_ray_it_is_said_how_to_install_it(folder):
    program = f"""
import sys
sys.modules["ray"] = None
import queryard
try:
    queryard.connect({str(folder)!r}, backend="ray", history=False)
except queryard.QueryardError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert "pip install 'queryard[ray]'" in done.stdout


def test_a_session_without_a_cluster_does_not_import_ray(folder):
    program = f"""
import sys, queryard
with queryard.connect({str(folder)!r}, history=False) as session:
    session.sql("SELECT 1").fetchall()
print("ray" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "False"
