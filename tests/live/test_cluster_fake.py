"""Sessions on a cluster, below the host: which plan queries get, and where their splits are read.

Nothing runs: tasks take a second each, by the clock of the test.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queryard.backends.fake import Script
from queryard.core.commands import Grant, Launch
from queryard.core.events import NodeJoined, NodeLost, TableChanged
from queryard.core.model import MAP, Node, Split, Table
from queryard.live.coordinating.places import SplitPlaces
from queryard.sim.forecast import forecast

from .fake_host import MIB, FakeHost

SIZE = 1024.0 * MIB


def node(name: str, slots: int = 2, speed: float = 1.0, **options: Any) -> Node:
    return Node(name, slots, SIZE, speed, speed, host=name, **options)


def cluster(*nodes: Node, placement: str = "rack", splits: int = 6, **options: Any) -> FakeHost:
    profile = {"order": "fifo", "placement": placement}
    host = FakeHost(nodes or (node("a"), node("b")), profile=profile, spreads=True, **options)
    host.table_splits = splits
    return host


def plan_of(host: FakeHost, query: str) -> tuple[str, str]:
    choice = host.facts[query].request.choice
    assert choice is not None
    return choice.plan, choice.reason


# --- native or in tasks --------------------------------------------------------------------------


def test_a_short_query_runs_at_one_node_without_being_planned():
    host = cluster()
    query = host.submit(plan="auto", work_s=0.2)
    host.run()
    plan, reason = plan_of(host, query)
    assert plan == "native"
    assert "s natively on one node, which is too short to be split" in reason
    assert not host.plans
    host.check_idle()


def test_a_long_query_is_split_if_that_is_expected_to_be_faster():
    """Six tasks and a reduce, then a last task: 2 + 1 + 1 s on four slots. Natively 20 / 2 s."""
    host = cluster()
    query = host.submit("scans", plan="auto", work_s=20.0)
    host.run()
    plan, reason = plan_of(host, query)
    assert plan == "staged"
    assert "s in tasks on 4 slots of 2 nodes, and 10 s natively on one node" in reason
    assert host.ended[query].error is None
    assert host.spilled[query] == 1
    host.check_idle()


def test_a_query_that_would_take_longer_in_tasks_runs_natively():
    host = cluster()
    query = host.submit("scans", plan="auto", work_s=5.0)
    host.run()
    plan, reason = plan_of(host, query)
    assert (plan, reason.startswith("about 3.1 s in tasks")) == ("native", True)
    assert host.plans[query].closed == 1, "nothing of its plan is left"
    host.check_idle()


def test_on_one_node_nothing_is_planned():
    host = cluster(node("a", 8))
    query = host.submit("scans", plan="auto", work_s=50.0)
    host.run()
    assert plan_of(host, query) == ("native", "the cluster has one node")
    assert not host.plans


def test_what_cannot_be_split_runs_natively_and_says_why():
    host = cluster()
    query = host.submit("impossible", plan="auto", work_s=20.0)
    host.run()
    assert plan_of(host, query) == ("native", "it cannot be split: it cannot be split")
    assert host.ended[query].reasons == ()


def test_a_query_with_more_memory_than_a_node_has_runs_in_tasks():
    host = cluster()
    query = host.submit("scans", plan="auto", work_s=0.1, memory_bytes=int(1.5 * SIZE))
    host.run()
    plan, reason = plan_of(host, query)
    assert plan == "staged"
    assert "it needs about 1.6 GB of memory, and the largest node has 1.1 GB" in reason
    assert host.ended[query].error is None


def test_fast_nodes_count_for_more():
    for speed, plan in ((1.0, "staged"), (6.0, "native")):
        host = cluster(node("a"), node("b", 2, speed))
        query = host.submit("scans", plan="auto", work_s=9.0)
        host.run()
        assert plan_of(host, query)[0] == plan


def test_among_many_queries_each_runs_natively():
    host = cluster()
    for _ in range(8):
        host.submit(plan="native", work_s=50.0)
    query = host.submit("scans", plan="auto", work_s=20.0)
    assert plan_of(host, query)[0] == "native"


def test_what_was_said_counts():
    host = cluster()
    native = host.submit("scans", plan="native", work_s=20.0)
    staged = host.submit("scans", plan="staged", work_s=0.1)
    host.run()
    assert host.facts[native].request.plan == "native"
    assert host.facts[staged].request.plan == "staged"
    assert host.facts[staged].request.choice is None


def test_a_query_cancelled_while_it_is_planned_leaves_nothing():
    host = cluster(lag=lambda: 1.0)
    query = host.submit("scans", plan="auto", work_s=20.0)
    host.cancel(query)
    host.run()
    assert host.ended[query].error is not None
    host.check_idle()


# --- where splits are read -----------------------------------------------------------------------


def local_share(host: FakeHost, query: str) -> float:
    """Of the scanned splits of a query, how many were read by a node near to them."""
    tables: dict[str, Table] = {}
    near, read = 0, 0
    for step in host.journal.steps:
        for event in step.events:
            if isinstance(event, TableChanged):
                tables[event.table.name] = event.table
        for command in step.commands:
            if isinstance(command, Launch) and command.tasks[0].job == f"{query}/scan":
                for task in command.tasks:
                    if task.kind == MAP:
                        read += 1
                        near += command.node in tables["t"].splits[task.index].nodes
    return near / read


@pytest.mark.parametrize("placement", ["local", "locf", "rack"])
def test_splits_are_read_again_where_they_were_read(placement):
    host = cluster(placement=placement)
    first = host.submit("scans", plan="staged")
    host.run()
    assert local_share(host, first) == 0.0
    second = host.submit("scans", plan="staged")
    host.run()
    assert local_share(host, second) == 1.0


def test_with_placement_anywhere_splits_are_read_anywhere():
    """The nodes end in another order the second time."""
    slow = Script(task_s=lambda task, attempt: 1.0 + (task.index == 0) * 0.5)
    host = cluster(node("a", 1), node("b", 1), placement="any", script=slow)
    shares = []
    for _ in range(3):
        query = host.submit("scans", plan="staged")
        host.run()
        shares.append(local_share(host, query))
    near = cluster(node("a", 1), node("b", 1), placement="local", script=slow)
    for _ in range(3):
        query = near.submit("scans", plan="staged")
        near.run()
    assert local_share(near, query) >= max(shares[1:])


def test_a_lost_node_holds_nothing_and_a_changed_table_is_read_anew():
    host = cluster()
    host.submit("scans", plan="staged")
    host.run()
    host.post(NodeLost(0.0, "b"), NodeJoined(0.0, node("b-2")))
    table = host.coordinator._ledger.places.scanned("first", table_of(6))
    assert {name for split in table.splits for name in split.nodes} == {"a"}
    table = host.coordinator._ledger.places.scanned("second", table_of(6))
    assert not any(split.nodes for split in table.splits)


def table_of(splits: int, *places: str) -> Table:
    return Table("t", tuple(Split(1.0, places) for _ in range(splits)))


def test_places_of_the_catalog_come_first():
    places = SplitPlaces()
    for one in (node("a-1", places=("10.0.0.5",)), node("b-1", places=("10.0.0.6",))):
        places.joined(one)
    named = Table("t", (Split(1.0, ("10.0.0.6",)), Split(1.0, ("10.0.0.9",)), Split(1.0)))
    assert [s.nodes for s in places.scanned("v", named).splits] == [("b-1",), (), ()]
    for split in range(3):
        places.note_read("t", split, "a-1")
    assert [s.nodes for s in places.scanned("v", named).splits] == [("b-1",), ("a-1",), ("a-1",)]
    places.note_read("t", 1, "b-1")
    assert places.cached() == {"a-1": {"t": (3, 3)}, "b-1": {"t": (1, 3)}}
    places.lost("b-1")
    assert places.cached() == {"a-1": {"t": (3, 3)}}
    places.joined(node("b-2", places=("10.0.0.6",)))
    assert places.scanned("v", named).splits[0].nodes == ("b-2",)


def test_native_queries_start_where_their_table_was_read():
    host = cluster(node("a"), node("b"), node("c"))
    first = home_of(host, host.submit(plan="native", largest=("x", 1e9)))
    host.submit(plan="native", largest=("y", 1e9))
    host.run()
    for _ in range(3):
        query = host.submit(plan="native", largest=("x", 1e9))
        assert home_of(host, query) == first
        host.run()


def home_of(host: FakeHost, query: str) -> str:
    grants = [
        command.node
        for step in host.journal.steps
        for command in step.commands
        if isinstance(command, Grant) and command.job.startswith(f"{query}/")
    ]
    return grants[0]


def test_a_native_query_goes_where_tasks_have_read_most():
    host = cluster(node("a", 1), node("b", 3))
    host.submit("scans", plan="staged")
    host.run()
    query = host.submit(plan="native", largest=("t", 6.0))
    assert home_of(host, query) == "b"


def test_what_runs_on_a_cluster_can_be_forecast():
    host = cluster()
    host.submit("scans", plan="staged")
    queries = [host.submit(plan="native", largest=("t", 6.0)) for _ in range(3)]
    host.run(until_s=0.5)
    found = forecast(host.coordinator.kernel.fork())
    assert {*queries} <= found.keys()
    assert all(found[query].end_s is not None for query in queries)


@settings(max_examples=20)
@given(
    asked=st.lists(
        st.tuples(
            st.sampled_from(["auto", "native", "staged"]),
            st.sampled_from(["scans", "plain", "impossible"]),
            st.floats(0.1, 30.0),
        ),
        min_size=1,
        max_size=8,
    ),
    losses=st.integers(0, 2),
    placement=st.sampled_from(["local", "locf", "rack", "any"]),
)
def test_all_queries_end_whatever_they_are(asked, losses, placement):
    host = cluster(node("a", rack="r"), node("b", rack="r"), node("c"), placement=placement)
    for number, (plan, sql, work_s) in enumerate(asked):
        host.submit(sql, plan=plan, work_s=work_s, largest=("t", 6.0))
        host.run(until_s=host.now_s + 0.7)
        if number < losses:
            host.table_version += "!"
    host.run()
    assert len(host.ended) == len(asked)
    assert not any(facts.error for facts in host.ended.values())
    host.check_idle()


# --- nodes that come and go ----------------------------------------------------------------------


def change(host: FakeHost, lost: str, joined: str) -> None:
    for name in lost:
        host.backend.lose(name)
    for name in joined:
        host.backend.join(name)
    host.step()


def test_all_nodes_are_replaced_by_smaller_ones_and_queries_fit_there():
    small = [Node(name, 1, SIZE / 4, host=name) for name in "cd"]
    host = cluster(node("a", 4), node("b", 4), *small)
    change(host, "cd", "")
    reservations, gate = host.coordinator._ledger.reservations, host.coordinator.gate
    assert (reservations.pool_bytes, gate.slots) == (SIZE, 8)
    first = host.submit(plan="native", work_s=5.0)
    host.run()
    change(host, "ab", "cd")
    assert (reservations.pool_bytes, gate.slots) == (SIZE / 4, 2)
    second = host.submit(plan="native", work_s=5.0)
    host.run()
    assert [host.ended[query].error for query in (first, second)] == [None, None]
    host.check_idle()


def test_while_no_node_is_there_what_was_known_of_them_stays():
    host = cluster(node("a", 4), node("b", 8))
    change(host, "b", "")
    ledger = host.coordinator._ledger
    assert (ledger.gate.slots, ledger.runs.width) == (4, 4)
    change(host, "a", "")
    query = host.submit(plan="native")
    assert (ledger.gate.slots, ledger.reservations.pool_bytes) == (4, SIZE)
    change(host, "", "b")
    assert (ledger.gate.slots, ledger.runs.width) == (8, 8)
    host.run()
    assert host.ended[query].error is None
