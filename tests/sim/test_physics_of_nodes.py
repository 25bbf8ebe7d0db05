"""Nodes fail and are repaired, are added and let go."""

from __future__ import annotations

import pytest
from small_worlds import arrival, commands, divisible, events, maps, run, scan, spans, table

from queryard.core import commands as do
from queryard.core import events as ev
from queryard.core.errors import QueryardError
from queryard.core.model import Divisible, Job, Node
from queryard.sim import replay, simulate
from queryard.workload.model import JobTruth, Workload

FAILING = {"node_mtbf_s": 40.0, "node_repair_s": 7.0}
SPREAD = Job("j", divisible=Divisible(2, span="cluster"))


def busy() -> list:
    job, truth = maps(20, 4), JobTruth(map_s=3.0, shuffle_s=1.0, reduce_s=2.0)
    leased = [arrival(f"d{n}", (divisible(2), 30.0), at=5.0 * n) for n in range(3)]
    return leased + [arrival(f"q{n}", (job, truth), at=5.0 * n) for n in range(3)]


@pytest.mark.parametrize("slow_start", [1.0, 0.0])
def test_nodes_fail_and_come_back_and_everything_ends(slow_start: float):
    found = run(busy(), [Node(f"n{i}", 2) for i in range(3)], slow_start=slow_start, **FAILING)
    assert found.unfinished == 0
    assert not found.failed
    lost = events(found.journal, ev.NodeLost)
    assert len(lost) > 5
    joined = {(e.node.id, round(e.time_s, 6)) for e in events(found.journal, ev.NodeJoined)}
    last = found.journal.steps[-1].time_s
    for event in lost:
        if event.time_s + 7.0 <= last:
            assert (event.node, round(event.time_s + 7.0, 6)) in joined
    assert replay(found.journal) is None


def test_they_fail_as_often_as_they_should():
    long = [arrival("q", (SPREAD, 4000.0))]
    nodes = [Node(f"n{i}", 1) for i in range(10)]
    found = run(long, nodes, node_mtbf_s=100.0, node_repair_s=0.1)
    time_s = found.ends["q"]
    assert len(events(found.journal, ev.NodeLost)) == pytest.approx(10 * time_s / 100.0, rel=0.15)


def test_a_job_that_is_on_no_certain_host_keeps_what_it_has_done():
    found = run([arrival("q", (SPREAD, 200.0))], [Node("a", 1), Node("b", 1)], **FAILING)
    served = slot_seconds(found.journal)
    assert served == pytest.approx(200.0)


def slot_seconds(journal) -> float:
    """How long slots were leased in all."""
    held: dict[str, int] = {}
    total, since = 0.0, 0.0
    for step in journal.steps:
        total += sum(held.values()) * (step.time_s - since)
        since = step.time_s
        for event in step.events:
            if isinstance(event, ev.LeaseEnded):
                held[event.node] -= event.slots
            elif isinstance(event, ev.NodeLost):
                held.pop(event.node, None)
        for command in step.commands:
            if isinstance(command, do.Grant):
                held[command.node] = held.get(command.node, 0) + command.slots
    return total


def test_memory_of_splits_is_lost_with_the_node():
    t = table("t", 1)
    queries = [arrival(f"q{n}", (scan(t), 1.0), at=10.0 * n) for n in range(30)]
    remembers = {"memory_gain": 0.5, "memory_cache_bytes": 10.0}
    found = run(queries, [Node("a", 1)], tables=(t,), **remembers, **FAILING)
    losses = [event.time_s for event in events(found.journal, ev.NodeLost)]
    assert len(losses) > 3
    read_s = -1.0
    for start, end, _ in sorted(spans(found.journal).values()):
        forgotten = read_s < 0 or any(read_s < loss <= start for loss in losses)
        assert end - start == pytest.approx(1.0 if forgotten else 0.5)
        read_s = start


def test_nodes_that_are_asked_for_boot_first():
    rule = {"name": "+x", "x": 2, "period_s": 30.0, "maximum": 5}
    profile = {"order": "fifo", "provisioning": rule}
    found = run([arrival("q", (maps(40), 10.0))], [Node("a", 1)], profile, node_boot_s=12.0)
    scales = [(at, scale.nodes) for at, scale in commands(found.journal, do.Scale)]
    assert scales[:2] == [(0.0, 3), (30.0, 5)]
    joined = [(e.time_s, e.node.id) for e in events(found.journal, ev.NodeJoined)]
    assert joined == [
        (0.0, "a"),
        (12.0, "a+1"),
        (12.0, "a+2"),
        (42.0, "a+3"),
        (42.0, "a+4"),
    ]


def test_nodes_that_boot_are_not_asked_for_again():
    rule = {"name": "+x", "x": 1, "period_s": 5.0, "maximum": 4}
    profile = {"order": "fifo", "provisioning": rule}
    found = run([arrival("q", (maps(40), 10.0))], [Node("a", 1)], profile, node_boot_s=100.0)
    assert len(events(found.journal, ev.NodeJoined)) == 4


def test_new_nodes_are_like_the_first():
    rule = {"name": "+x", "x": 1, "maximum": 2}
    node = Node("a", 3, 7.0, 0.5, 2.0, "rack")
    profile = {"order": "fifo", "provisioning": rule}
    found = run([arrival("q", (maps(40), 10.0))], [node], profile)
    second = events(found.journal, ev.NodeJoined)[1].node
    assert second == Node("a+1", 3, 7.0, 0.5, 2.0, "rack")


def test_nodes_that_are_let_go_do_not_come_back():
    rule = {"name": "-x", "x": 1, "period_s": 5.0, "minimum": 1}
    profile = {"order": "fifo", "provisioning": rule}
    nodes = [Node(f"n{i}", 1) for i in range(3)]
    found = run([arrival("q", (maps(20), 4.0))], nodes, profile)
    assert found.unfinished == 0
    released = [release.node for _, release in commands(found.journal, do.Release)]
    assert len(released) == 2
    assert [e.node for e in events(found.journal, ev.NodeLost)] == released
    assert len(events(found.journal, ev.NodeJoined)) == 3


def test_a_cluster_needs_a_node():
    with pytest.raises(QueryardError, match="at least one node"):
        simulate(Workload("w", ()), [], {"order": "fifo"})


def test_a_query_that_can_never_run_here_is_not_counted_as_unfinished():
    found = run([arrival("q", (maps(1), 1.0), memory_bytes=9.0)], [Node("a", 1, 8.0)])
    assert found.unfinished == 0
    assert "it needs 9 bytes of memory" in found.failed["q"]
