"""Placement by node, then by rack, then anywhere."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_driver import Yard

from queryard.core import events as ev
from queryard.core.codec import decode_event
from queryard.core.model import Job, Node, Phase, Query, Split, Table
from queryard.sim import Conditions, simulate
from queryard.workload.files import load_workload
from queryard.workload.model import Arrival, JobTruth, Workload

RACK = {"placement": "rack"}
NODES = [Node("a", 1, rack="r1"), Node("b", 1, rack="r1"), Node("c", 1, rack="r2")]


def scan(*places: str) -> tuple[Job, Table]:
    table = Table("t", tuple(Split(64e6, (place,) if place else ()) for place in places))
    return Job("scan", map=Phase(len(places)), scans=("t",)), table


def first_on(profile: Any, nodes: list[Node], offers: str, *places: str) -> int:
    """The split that a node reads first of a job, when it has a slot and others have none."""
    job, table = scan(*places)
    busy = Job("busy", map=Phase(len(nodes)))
    yard = Yard(profile, nodes, [table])
    yard.submit("before", [(busy, 9.0)]).run(0.0)
    yard.submit("q", [(job, 1.0)], at=1.0)
    number = next(n for n, run in yard.state.running.items() if run.node == offers)
    yard.post(ev.TaskFinished(2.0, number))
    yard.run(2.0)
    launch = yard.launches[-1]
    assert (launch.job, launch.node) == ("q/scan", offers)
    return launch.index


@pytest.mark.parametrize(
    ("places", "index"),
    [
        (("c", "b", "a"), 2),  # its own node
        (("c", "b", "b"), 1),  # its rack
        (("c", "c", "gone"), 0),  # neither
        (("gone", "c", "b"), 2),
    ],
)
def test_the_node_then_the_rack_then_anywhere(places: tuple[str, ...], index: int):
    assert first_on(RACK, NODES, "a", *places) == index


def test_without_the_part_a_split_of_the_rack_is_like_any_other():
    assert first_on({"placement": "local"}, NODES, "a", "c", "b", "b") == 0


def test_nodes_without_a_rack_are_far_from_each_other():
    nodes = [Node("a", 1), Node("b", 1), Node("c", 1)]
    assert first_on(RACK, nodes, "a", "c", "b", "b") == 0


def test_a_node_that_joins_counts_to_its_rack():
    job, table = scan("c", "new")
    yard = Yard(RACK, [Node("a", 1, rack="r1"), Node("c", 1, rack="r2")], [table])
    yard.submit("before", [(Job("busy", map=Phase(3)), 9.0)]).run(0.0)
    yard.post(ev.NodeJoined(1.0, Node("new", 1, rack="r1")))
    yard.submit("q", [(job, 1.0)], at=2.0)
    number = next(n for n, run in yard.state.running.items() if run.node == "a")
    yard.post(ev.TaskFinished(3.0, number))
    yard.run(3.0)
    assert yard.launches[-1][1:] == ("q/scan", "map", 1, "a", ("q/scan",))


@given(
    st.lists(st.sampled_from(["a", "b", "c", "gone", ""]), min_size=1, max_size=20),
    st.lists(st.sampled_from(["", "r1", "r2"]), min_size=3, max_size=3),
)
def test_every_split_is_read_once(places: list[str], racks: list[str]):
    job, table = scan(*places)
    nodes = [Node(name, 1, rack=rack) for name, rack in zip("abc", racks, strict=True)]
    yard = Yard(RACK, nodes, [table]).submit("q", [(job, 1.0)]).run()
    assert sorted(launch.index for launch in yard.launches) == list(range(len(places)))
    assert yard.ends.keys() == {"q"}


def test_reads_within_the_rack_are_cheaper_and_the_part_finds_them():
    """Splits on two of eight nodes, one of each rack: six nodes must read from afar."""
    nodes = [Node(f"n{i}", 1, rack=f"r{i % 2}") for i in range(8)]
    splits = tuple(Split(64e6, (f"n{i // 32}",)) for i in range(64))
    job = Job("scan", map=Phase(64), scans=("t",))
    arrival = Arrival(Query("q", (job,)), {"scan": JobTruth(map_s=10.0)})
    workload = Workload("w", (arrival,), (Table("t", splits),))

    def end_s(placement: str, **penalties: float) -> float:
        conditions = Conditions(**penalties)
        run = simulate(workload, nodes, {"placement": placement}, conditions=conditions)
        return run.ends["q"]

    penalties = {"remote_penalty": 1.0, "rack_penalty": 0.2}
    assert end_s("rack", **penalties) < end_s("local", **penalties)
    # Without a penalty it makes no difference where data is.
    assert end_s("rack") == end_s("local") == 80.0


def test_racks_come_from_workload_files_and_old_journals_have_none(tmp_path):
    file = tmp_path / "w.toml"
    file.write_text(
        """
        [[nodes]]
        id = "a"
        count = 2
        slots = 4
        rack = "r1"

        [[nodes]]
        id = "b"
        slots = 4

        [[queries]]
        id = "q"
        jobs = [{name = "j", map = {tasks = 1, seconds = 1}}]
        """
    )
    assert [node.rack for node in load_workload(file).nodes] == ["r1", "r1", ""]
    old = decode_event({"type": "NodeJoined", "time_s": 0.0, "node": {"id": "n", "slots": 2}})
    assert old == ev.NodeJoined(0.0, Node("n", 2))
