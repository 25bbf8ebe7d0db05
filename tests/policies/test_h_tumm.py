"""H_TuMM: slots of each node by its own speed (TuMM §5)."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from kernel_driver import Yard

from queryard.core import events as ev
from queryard.core.model import Job, Node, Phase, Query
from queryard.policies.splits.tumm_formulas import divide_node, map_share
from queryard.sim import simulate
from queryard.workload.model import Arrival, JobTruth, Workload


def phase_s(tasks: int, nodes: list[tuple[int, float]]) -> float:
    """The shortest time in which (slots, seconds per task) finish the tasks in waves."""
    if not tasks:
        return 0.0
    ends = sorted({wave * seconds for _, seconds in nodes for wave in range(1, tasks + 1)})
    for end in ends:
        if sum(slots * int(end / seconds + 1e-9) for slots, seconds in nodes) >= tasks:
            return end
    return float("inf")


@pytest.mark.parametrize(("fast", "slow", "seconds"), [(2, 2, 3.0), (1, 3, 4.0), (3, 1, 2.0)])
def test_seven_tasks_on_a_fast_and_a_slow_node(fast: int, slow: int, seconds: float):
    # The text prints 3 for the last; it is 2: three tasks at 1 s and three and one at 2 s.
    assert phase_s(7, [(fast, 1.0), (slow, 2.0)]) == seconds


@pytest.mark.parametrize(("fast", "slow", "seconds"), [(2, 2, 3.0), (1, 3, 4.0), (3, 1, 2.0)])
def test_the_kernel_takes_as_long_for_the_seven_tasks(fast: int, slow: int, seconds: float):
    job = Job("j", map=Phase(7))
    workload = Workload("seven", (Arrival(Query("q", (job,)), {"j": JobTruth(map_s=1.0)}),))
    nodes = [Node("fast", fast), Node("slow", slow, map_speed=0.5)]
    assert simulate(workload, nodes, {"slots": "h-tumm"}).ends == {"q": seconds}


def test_slots_follow_the_work_at_the_nodes_own_times():
    # 30 maps and 10 reduces left: 3 and 1 at equal times, 2 and 2 where a reduce takes 3 s.
    assert divide_node(4, map_share(1.0 * 30, 1.0 * 10), False) == (3, 1)
    assert divide_node(4, map_share(1.0 * 30, 3.0 * 10), False) == (2, 2)
    # No least number of either kind, unlike TuMM.
    assert divide_node(4, map_share(1.0 * 30, 0.0), True) == (4, 0)


def test_a_slot_left_over_goes_to_the_kind_that_is_relatively_fast_here():
    share = map_share(30.0, 20.0)  # 2.4 and 1.6 of four slots
    assert divide_node(4, share, maps_are_slow=True) == (2, 2)
    assert divide_node(4, share, maps_are_slow=False) == (3, 1)


def two_phases(maps: int, reduces: int, nodes: list[Node], slots: Any) -> float:
    """How long the reduces of one job and the maps of the next take beside each other."""
    first = Job("j", map=Phase(1), reduce=Phase(reduces))
    arrivals = (
        Arrival(Query("a", (first,)), {"j": JobTruth(map_s=0.001, reduce_s=6.0)}),
        Arrival(Query("b", (Job("j", map=Phase(maps)),)), {"j": JobTruth(map_s=6.0)}),
    )
    run = simulate(Workload("w", arrivals), nodes, {"slots": slots})
    return max(run.ends.values())


def optimum_s(maps: int, reduces: int, nodes: list[Node]) -> float:
    """The paper's program by brute force: the best fixed division of every node's slots."""
    best = float("inf")
    for division in product(*(range(node.slots + 1) for node in nodes)):
        pairs = list(zip(division, nodes, strict=True))
        map_s = phase_s(maps, [(s, 6.0 / n.map_speed) for s, n in pairs])
        reduce_s = phase_s(reduces, [(n.slots - s, 6.0 / n.reduce_speed) for s, n in pairs])
        best = min(best, max(map_s, reduce_s))
    return best


EQUAL = [Node("a", 4), Node("b", 4)]
MAPS_HERE = [Node("a", 4, map_speed=2.0), Node("b", 4, reduce_speed=2.0)]
FAST_SLOW = [Node("a", 4, map_speed=2.0, reduce_speed=2.0), Node("b", 4)]
THREE = [Node("a", 3, map_speed=1.5), Node("b", 4), Node("c", 3, reduce_speed=1.5)]


@pytest.mark.parametrize("nodes", [EQUAL, MAPS_HERE, FAST_SLOW, THREE])
@pytest.mark.parametrize(("maps", "reduces"), [(40, 40), (60, 20), (16, 48), (90, 30)])
def test_near_the_brute_force_optimum(maps: int, reduces: int, nodes: list[Node]):
    ours = two_phases(maps, reduces, nodes, "h-tumm")
    # Not under all tasks on the fastest slots, and not far over the best fixed division, which
    # knows all times beforehand: it may give a node to one kind only, the heuristic does not.
    fastest = sum(n.slots * max(n.map_speed, n.reduce_speed) for n in nodes)
    assert ours >= (maps + reduces) * 6.0 / fastest
    assert ours <= 1.25 * optimum_s(maps, reduces, nodes) + 2 * 6.0


def test_beats_tumm_where_nodes_differ_by_kind():
    assert two_phases(90, 90, MAPS_HERE, "h-tumm") < two_phases(90, 90, MAPS_HERE, "tumm")


def test_a_node_without_a_mean_of_its_own_takes_the_clusters():
    yard = Yard("h-tumm", "2x4")
    job = Job("j", map=Phase(16), reduce=Phase(40))
    yard.submit("a", [(job, 10.0, 10.0)]).submit("b", [(Job("j", map=Phase(40)), 10.0)]).run(30.0)
    # 40 tasks of either kind and of the same length: two slots of four for each.
    assert [(n.maps, n.reduces) for n in yard.state.nodes.values()] == [(2, 2), (2, 2)]
    yard.post(ev.NodeJoined(30.5, Node("new", 4)))
    yard.run(30.5)
    new = yard.state.nodes["new"]
    assert (new.maps, new.reduces) == (2, 2)
    yard.run()
    assert set(yard.ends) == {"a", "b"}


def test_the_next_job_begins_though_reduces_are_left():
    yard = Yard("h-tumm", "1x4")
    job = Job("j", map=Phase(4), reduce=Phase(20))
    yard.submit("a", [(job, 10.0, 10.0)]).submit("b", [(job, 10.0, 10.0)]).run(10.0)
    # Four maps of the waiting job against 20 reduces: 0.67 of four slots, rounded to one.
    assert (yard.state.nodes["n00"].maps, yard.state.nodes["n00"].reduces) == (1, 3)


def test_before_anything_has_ended_estimates_count():
    yard = Yard("h-tumm", "1x4")
    yard.submit("a", [(Job("j", map=Phase(8)), 10.0)]).run(0.0)
    assert yard.state.nodes["n00"].maps == 4


def test_published_comparison_on_a_heterogeneous_cluster():
    """As Heter2: three kinds of nodes of 2:2, chains of jobs; -11 to -12 % in the paper."""
    speeds = [(1.0, 1.0), (2.5, 0.6), (0.8, 1.3)]
    nodes = [
        Node(f"{kind}{number}", 4, map_speed=m, reduce_speed=r)
        for kind, (m, r) in zip("abc", speeds, strict=True)
        for number in range(3)
    ]
    job = Job("j", map=Phase(64), reduce=Phase(80))
    truth = {"j": JobTruth(map_s=12.0, shuffle_s=6.0, reduce_s=14.0)}
    batch = tuple(Arrival(Query(f"q{number}", (job,)), truth) for number in range(4))

    def makespan(slots: Any) -> float:
        run = simulate(Workload("batch", batch), nodes, {"slots": slots}, slow_start=0.05)
        return max(run.ends.values())

    assert makespan("h-tumm") < 0.95 * makespan("static")
