"""Fixed map and reduce slots, and the best of them (TuMM §2 and §3.2, Alg. 1)."""

from __future__ import annotations

import doctest
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_driver import Yard

from queryard.core import apportion as apportion_module
from queryard.core import events as ev
from queryard.core.model import Divisible, Job, Node, Phase, Query
from queryard.policies import compose
from queryard.policies.splits import best_static as best_static_module
from queryard.policies.splits import static as static_module
from queryard.policies.splits.best_static import best_static, makespan_s
from queryard.policies.splits.static import divide
from queryard.sim import simulate
from queryard.workload.model import Arrival, JobTruth, Workload


def printed_makespan_s(workloads: list[tuple[float, float]], s_m: int, s_r: int) -> float:
    """st(i) = st(i-1) + w_m(i-1)/s_m; ft(i) = max(st(i) + w_m(i)/s_m, ft(i-1)) + w_r(i)/s_r."""
    st = ft = before = 0.0
    for w_m, w_r in workloads:
        st += before / s_m
        ft = max(st + w_m / s_m, ft) + w_r / s_r
        before = w_m
    return ft


def test_the_makespan_is_that_of_the_printed_recursion():
    # Two slots each: maps end at 4 and 6; reduces 4 to 6 and 6 to 10.
    assert makespan_s([(8, 4), (4, 8)], 2, 2) == printed_makespan_s([(8, 4), (4, 8)], 2, 2) == 10


@pytest.mark.parametrize("seed", range(40))
def test_the_static_optimum_is_that_of_brute_force(seed: int):
    draw = Random(seed)
    slots = draw.randrange(2, 24)
    workloads = [
        (float(draw.choice((0, draw.randrange(400)))), float(draw.randrange(400)))
        for _ in range(draw.randrange(1, 12))
    ]
    tried = {s_m: printed_makespan_s(workloads, s_m, slots - s_m) for s_m in range(1, slots)}
    s_m, s_r = best_static(workloads, slots)
    assert s_m + s_r == slots
    assert tried[s_m] == pytest.approx(min(tried.values()))


@pytest.mark.parametrize(
    ("jobs", "best"),
    [
        ([(128 * 5, 150 * 25)] * 3, (1, 3)),  # reduces weigh more, as in Inverted Index
        ([(128 * 25, 80 * 10)] * 3, (3, 1)),  # maps weigh more, as in Histogram Rating
        ([(128 * 5, 150 * 25), (128 * 25, 80 * 10)] * 5, (2, 2)),
    ],
)
def test_best_ratios_of_batches_like_the_published_ones(
    jobs: list[tuple[float, float]], best: tuple[int, int]
):
    assert best_static(jobs, 4) == best


def test_without_work_the_slots_are_halved_and_one_slot_cannot_be_divided():
    assert best_static([], 5) == best_static([(0, 0)], 5) == (2, 3)
    with pytest.raises(ValueError, match="two slots"):
        best_static([(1, 1)], 1)


def test_a_ratio_is_scaled_to_the_slots_of_a_node():
    assert [divide(slots, 1, 3) for slots in (1, 2, 4, 8, 12)] == [
        (1, 1),
        (1, 1),
        (1, 3),
        (2, 6),
        (3, 9),
    ]


def peaks(yard: Yard, seconds: dict[str, float]) -> dict[str, int]:
    """The most maps, and reduces, that ran at once."""
    most: Counter[str] = Counter()
    for kind in ("map", "reduce"):
        starts = [launch.time_s for launch in yard.launches if launch.kind == kind]
        for time_s in starts:
            at_once = sum(start <= time_s < start + seconds[kind] for start in starts)
            most[kind] = max(most[kind], at_once)
    return most


@pytest.mark.parametrize(("maps", "reduces"), [(1, 3), (2, 2), (3, 1)])
def test_never_more_of_a_kind_than_it_has_slots(maps: int, reduces: int):
    yard = Yard({"slots": {"name": "static", "maps": maps, "reduces": reduces}}, "2x4")
    job = Job("j", map=Phase(24), reduce=Phase(24))
    yard.submit("a", [(job, 1.0, 1.0)]).submit("b", [(job, 1.0, 1.0)]).run()
    assert peaks(yard, {"map": 1.0, "reduce": 1.0}) == {"map": 2 * maps, "reduce": 2 * reduces}
    assert set(yard.ends) == {"a", "b"}


def test_eight_maps_at_one_to_three_leave_three_slots_idle():
    yard = Yard({"slots": {"name": "static", "maps": 1, "reduces": 3}}, "1x4")
    assert yard.submit("a", [("j", 8, 1.0)]).run().ends == {"a": 8.0}


def test_a_node_of_one_slot_serves_both_kinds():
    yard = Yard("static", "1x1")
    job = Job("j", map=Phase(2), reduce=Phase(1))
    assert yard.submit("a", [(job, 1.0, 1.0)]).run().ends == {"a": 3.0}


def test_leases_may_use_any_slot():
    job = Job("native", divisible=Divisible(width=8))
    workload = Workload("w", (Arrival(Query("a", (job,)), {"native": JobTruth(work_s=8.0)}),))
    run = simulate(workload, [Node("n", 4)], {"slots": "static"})
    assert run.ends == {"a": 2.0}


def test_the_best_ratio_follows_the_queries_that_come():
    yard = Yard("best-static", "1x4")
    yard.submit("maps", [(Job("j", map=Phase(40), reduce=Phase(10)), 1.0, 1.0)]).run(0.0)
    assert yard.state.nodes["n00"].maps == 3
    reduces = Job("j", map=Phase(4), reduce=Phase(100))
    yard.submit("reduces", [(reduces, 1.0, 1.0)], at=5.5).run(6.0)
    left = yard.state.jobs["maps/j"]
    # 22 maps of the first and 4 of the second, 110 reduces: one slot for maps from now on.
    assert left.map.left == 22
    assert best_static([(22, 10), (4, 100)], 4) == (1, 3)
    assert yard.state.nodes["n00"].maps == 1
    yard.run()
    assert set(yard.ends) == {"maps", "reduces"}


def test_the_best_ratio_beats_the_others_on_the_batch_it_was_found_for():
    def makespan(slots: object) -> float:
        yard = Yard({"slots": slots}, "1x4")
        for number in range(3):
            job = Job("j", map=Phase(8), reduce=Phase(40))
            yard.submit(f"q{number}", [(job, 1.0, 1.0)])
        return max(yard.run().ends.values())

    static = [{"name": "static", "maps": maps, "reduces": 4 - maps} for maps in (1, 2, 3)]
    assert makespan("best-static") == min(makespan(slots) for slots in static)


def three_jobs() -> Yard:
    """160 maps of 10 s and 80 reduces of 12 s each: 10:6 is the best of 16 slots."""
    yard = Yard("best-static", "4x4")
    for number in range(3):
        job = Job("j", map=Phase(160), reduce=Phase(80))
        yard.submit(f"q{number}", [(job, 10.0, 12.0)])
    return yard


def test_the_cluster_has_exactly_the_slots_of_algorithm_1():
    assert best_static([(1600.0, 960.0)] * 3, 16) == (10, 6)
    yard = three_jobs().run(200.0)
    assert [(n.maps, n.reduces) for n in yard.state.nodes.values()] == [
        *((3, 1), (3, 1), (2, 2), (2, 2))
    ]
    yard.run()
    assert peaks(yard, {"map": 10.0, "reduce": 12.0}) == {"map": 10, "reduce": 6}
    # 640 s by Alg. 1, where work is divisible; 80 reduces do not fill 6 slots evenly.
    assert max(yard.ends.values()) == pytest.approx(makespan_s([(1600.0, 960.0)] * 3, 10, 6), 0.02)


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=7).filter(lambda sizes: sum(sizes) > 1),
    st.integers(1, 300),
    st.integers(0, 300),
)
def test_the_totals_are_exact_whatever_the_nodes(sizes: list[int], maps: int, reduces: int):
    yard = Yard("best-static", [Node(f"n{i}", slots) for i, slots in enumerate(sizes)])
    total = sum(sizes)
    best = best_static([(float(maps), float(reduces))], total)
    job = Job("j", map=Phase(maps), reduce=Phase(reduces) if reduces else None)
    yard.submit("a", [(job, 1.0, 1.0)]).run(0.0)
    split = yard.scheduler._crew.split
    assert isinstance(split, best_static_module.BestStatic)
    nodes = yard.state.nodes.values()
    lanes = [split._slots_of(node) for node in nodes]
    assert (sum(m for m, _ in lanes), sum(r for _, r in lanes)) == best
    assert all(m + r == node.spec.slots for (m, r), node in zip(lanes, nodes, strict=True))
    assert yard.run().ends.keys() == {"a"}


def test_a_node_that_takes_the_place_of_another_has_its_slots():
    yard = Yard("best-static", "2x1")
    job = Job("j", map=Phase(6), reduce=Phase(6))
    yard.submit("a", [(job, 1.0, 1.0)]).run(2.0)
    yard.post(ev.NodeLost(2.5, "n00"))
    yard.post(ev.NodeJoined(2.5, Node("new", 1)))
    assert yard.run().ends.keys() == {"a"}


def test_wrong_settings_are_named():
    with pytest.raises(Exception, match="maps must be a whole number of at least 1, got 0"):
        compose({"slots": {"name": "static", "maps": 0}})


def test_documented_examples():
    for module in (static_module, best_static_module, apportion_module):
        assert doctest.testmod(module).failed == 0
