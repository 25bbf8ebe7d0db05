"""A reduce that starts early holds its slot until the maps are done and its input is there."""

from __future__ import annotations

import pytest
from small_worlds import arrival, maps, run, spans

from queryard.core import events as ev
from queryard.core.model import Node
from queryard.core.state import Settings
from queryard.sim.ordering import CLUSTER
from queryard.sim.run import build
from queryard.workload.model import JobTruth, Workload


@pytest.mark.parametrize(
    ("map_s", "shuffle_s", "end_s"),
    [
        (10.0, 2.0, 10.0 + 1.0 + 4.0),  # the maps are what it waits for
        (10.0, 30.0, 30.0 + 1.0 + 4.0),  # the shuffle takes longer
        (10.0, 10.0, 10.0 + 1.0 + 4.0),
        (10.0, 0.0, 10.0 + 1.0 + 4.0),
    ],
)
def test_it_ends_at_the_later_of_maps_and_shuffle_plus_merge_and_reduce(map_s, shuffle_s, end_s):
    truth = JobTruth(map_s=map_s, shuffle_s=shuffle_s, merge_s=1.0, reduce_s=4.0)
    found = run([arrival("q", (maps(1, 1), truth))], [Node("a", 2)], slow_start=0.0)
    assert spans(found.journal)["q/j:r0"][:2] == (0.0, end_s)
    assert found.ends == {"q": end_s}


def test_launched_in_the_middle_the_shuffle_counts_from_then():
    # Two maps one after the other beside the reduce, which starts after the first.
    truth = JobTruth(map_s=10.0, shuffle_s=15.0, merge_s=1.0, reduce_s=4.0)
    found = run([arrival("q", (maps(3, 1), truth))], [Node("a", 2)], slow_start=0.5)
    start, end, _ = spans(found.journal)["q/j:r0"]
    assert start == 10.0, "two of three maps are done, and one slot is free"
    assert end == max(20.0, 10.0 + 15.0) + 5.0


def test_without_slow_start_everything_comes_after_the_maps():
    truth = JobTruth(map_s=10.0, shuffle_s=3.0, merge_s=1.0, reduce_s=4.0)
    found = run([arrival("q", (maps(1, 1), truth))], [Node("a", 2)])
    assert spans(found.journal)["q/j:r0"][:2] == (10.0, 18.0)


def test_an_early_reduce_keeps_others_out_of_its_slot():
    truth = JobTruth(map_s=10.0, reduce_s=4.0)
    queries = [arrival("q", (maps(1, 1), truth)), arrival("other", (maps(1), 1.0))]
    early = run(queries, [Node("a", 2)], slow_start=0.0).ends
    late = run(queries, [Node("a", 2)], slow_start=1.0).ends
    assert late["other"] == 1.0
    assert early["other"] == 11.0
    assert early["q"] == late["q"] == 14.0


def test_reduces_on_a_slow_node_shuffle_merge_and_reduce_slowly():
    truth = JobTruth(map_s=10.0, shuffle_s=20.0, merge_s=1.0, reduce_s=4.0)
    node = Node("a", 2, reduce_speed=0.5)
    found = run([arrival("q", (maps(1, 1), truth))], [node], slow_start=0.0)
    assert found.ends == {"q": 40.0 + 2.0 + 8.0}


def ends_after_a_loss(shuffle_s: float) -> dict[str, float]:
    """At 12 s the node is lost on which the only map ran until 10 s; the reduce is elsewhere."""
    truth = JobTruth(map_s=10.0, shuffle_s=shuffle_s, merge_s=1.0, reduce_s=20.0)
    workload = Workload("w", (arrival("q", (maps(1, 1), truth)),))
    nodes = [Node(name, 1) for name in "abc"]
    driver = build(workload, nodes, {"order": "fifo"}, settings=Settings(slow_start=0.0))
    driver.run(0.0)
    (mapping,) = [r for r in driver.scheduler.state.running.values() if r.tasks[0].kind == "map"]
    driver.post(12.0, CLUSTER, ev.NodeLost(12.0, mapping.node))
    driver.run()
    return driver.ends


def test_a_reduce_that_has_fetched_a_lost_output_goes_on():
    assert ends_after_a_loss(shuffle_s=5.0) == {"q": 10.0 + 1.0 + 20.0}


def test_a_reduce_that_has_not_fetched_it_waits_for_the_map_again():
    assert ends_after_a_loss(shuffle_s=25.0) == {"q": max(22.0, 25.0) + 21.0}
    assert ends_after_a_loss(shuffle_s=15.0) == {"q": max(22.0, 15.0) + 21.0}


def test_a_map_that_runs_again_has_the_slot_of_a_reduce_that_waits_for_it():
    """Without slow start, and the reduces have all slots that are left."""
    truth = JobTruth(map_s=10.0, shuffle_s=25.0, merge_s=1.0, reduce_s=20.0)
    workload = Workload("w", (arrival("q", (maps(1, 2), truth)),))
    driver = build(workload, [Node(name, 1) for name in "ab"], {"order": "fifo"})
    driver.run(0.0)
    (mapping,) = driver.scheduler.state.running.values()
    driver.post(12.0, CLUSTER, ev.NodeLost(12.0, mapping.node))
    driver.run()
    assert driver.ends == {"q": 12.0 + 10.0 + 2 * (25.0 + 21.0)}
