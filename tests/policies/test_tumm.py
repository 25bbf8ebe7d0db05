"""TuMM: its equations, its even spread and its work at the kernel (TuMM §4)."""

from __future__ import annotations

import doctest
import math
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from kernel_driver import Yard

from queryard.core import events as ev
from queryard.core.model import Job, Node, Phase, Query
from queryard.core.scheduler import Scheduler
from queryard.core.state import Settings
from queryard.policies import compose, resolve_profile
from queryard.policies.splits import tumm_formulas
from queryard.policies.splits.tumm_formulas import (
    bounded,
    feedback,
    lacks_maps,
    map_share,
    target,
)
from queryard.sim import simulate
from queryard.workload.model import Arrival, JobTruth, Workload

STATIC = [{"name": "static", "maps": maps, "reduces": 4 - maps} for maps in (1, 2, 3)]


def test_the_target_is_the_share_of_the_work_left():
    # 90 maps of 10 s against 30 reduces of 20 s: 900 : 600 on 16 slots.
    assert target(map_share(90 * 10.0, 30 * 20.0), 16) == 9
    assert target(map_share(1.0, 2.0), 16) == 5


def test_every_node_keeps_a_slot_of_each_kind():
    assert bounded(target(map_share(5.0, 0.0), 16), 16, 4) == 12
    assert bounded(target(map_share(0.0, 5.0), 16), 16, 4) == 4


def test_feedback_is_amplified_and_truncated_toward_zero():
    # 1.2 · 0.1 · 16 = 1.92 slots either way.
    assert feedback(8, 0.5, 0.6, 16) == 9
    assert feedback(8, 0.6, 0.5, 16) == 7
    # The printed floor would make -1 of every small step down.
    assert feedback(8, 0.5, 0.499, 16) == 8
    assert 8 + math.floor(1.2 * (0.499 - 0.5) * 16) == 7


def test_feedback_does_not_drift():
    draw = Random(1)
    shares = [0.5 + draw.uniform(-0.02, 0.02) for _ in range(1000)]
    ours, printed = 8, 8
    for before, after in pairwise(shares):
        ours = feedback(ours, before, after, 16)
        printed += math.floor(1.2 * (after - before) * 16)
    assert ours == 8
    assert printed < -400


@pytest.mark.parametrize("in_turn", [True, False])
def test_even_spread(in_turn: bool):
    """s_m = 5, s_r = 7 on two nodes of six slots: maps 2 and 3, reduces 4 and 3."""
    here = [[0, 0], [0, 0]]
    nodes = [0, 1] * 6 if in_turn else [0] * 6 + [1] * 6
    for node in nodes:
        running = (here[0][0] + here[1][0], here[0][1] + here[1][1])
        first = lacks_maps((5, 7), running, 6, (here[node][0], here[node][1]))
        here[node][0 if first else 1] += 1
    assert sorted(maps for maps, _ in here) == [2, 3]
    assert sorted(reduces for _, reduces in here) == [3, 4]
    if not in_turn:
        assert here == [[2, 4], [3, 3]]


def work_of(yard: Yard) -> tuple[int, float, int, float]:
    work = yard.scheduler._crew.split._work
    return (work.maps_left, work.map_work_s, work.reduces_left, work.reduce_work_s)


def test_only_running_jobs_count_and_reduces_only_once_maps_are_done():
    yard = Yard("tumm", "1x4")
    job = Job("j", map=Phase(6), reduce=Phase(3))
    yard.submit("a", [(job, 10.0, 5.0)]).submit("b", [(job, 10.0, 5.0)]).run(0.0)
    assert work_of(yard) == (2, 20.0, 0, 0.0)  # of a; b waits
    yard.run(10.0)
    # The last two maps of a and the first two of b: four of b are left.
    assert work_of(yard) == (4, 40.0, 0, 0.0)
    yard.run(20.0)
    # Maps of a are done: its three reduces count now, those still unscheduled.
    running = yard.state.nodes["n00"]
    assert work_of(yard) == (
        4 - running.maps,
        10.0 * (4 - running.maps),
        3 - running.reduces,
        5.0 * (3 - running.reduces),
    )
    yard.run()
    assert work_of(yard) == (0, 0.0, 0, 0.0)


def test_observed_means_replace_what_was_expected():
    yard = Yard("tumm", "1x2")
    yard.submit("a", [(Job("j", map=Phase(10)), 4.0)])
    yard.post(ev.EstimateChanged(0.0, "a/j", map_s=1.0))
    yard.run(0.0)
    assert work_of(yard)[:2] == (8, 8.0)
    yard.run(4.0)
    assert work_of(yard)[:2] == (6, 24.0)


def test_a_cancelled_query_leaves_no_work_behind():
    yard = Yard("tumm", "1x2")
    yard.submit("a", [(Job("j", map=Phase(10)), 4.0)])
    yard.post(ev.QueryCancelled(1.0, "a"))
    yard.run()
    assert work_of(yard) == (0, 0.0, 0, 0.0)
    assert yard.scheduler._crew.split._work.phases == 0


def test_attaching_finds_what_was_counted():
    yard = Yard("tumm", "2x4")
    for number in range(4):
        yard.submit(f"q{number}", [(Job("j", map=Phase(9), reduce=Phase(5)), 3.0, 2.0)], number)
    yard.run(6.0)
    counted = work_of(yard)
    yard.scheduler._crew.split.attach(yard.state)
    assert work_of(yard) == pytest.approx(counted)


def aligned(slots: Any, reduces: int, maps: int) -> float:
    """Maps of a fill the slots until 10 s; then its reduces run beside the maps of b."""
    yard = Yard({"slots": slots}, "4x4")
    yard.submit("a", [(Job("j", map=Phase(16), reduce=Phase(reduces)), 10.0, 10.0)])
    yard.submit("b", [(Job("j", map=Phase(maps)), 10.0)])
    return max(yard.run().ends.values())


def test_reduces_of_one_job_and_maps_of_the_next_end_together():
    # 96 and 32 tasks of 10 s on 16 slots: 12 and 4 slots, eight waves of both.
    assert aligned("tumm", reduces=96, maps=32) == 10.0 + 80.0
    # With 4, 8 or 12 map slots the 16 maps before take 40, 20 or 20 s.
    fixed = [aligned(slots, reduces=96, maps=32) for slots in STATIC]
    assert fixed == [40.0 + 80.0, 20.0 + 120.0, 20.0 + 240.0]


@pytest.mark.parametrize(("reduces", "maps"), [(96, 32), (64, 64), (32, 96), (40, 88), (16, 112)])
def test_no_fixed_ratio_is_better(reduces: int, maps: int):
    ours = aligned("tumm", reduces, maps)
    assert ours <= min(aligned(slots, reduces, maps) for slots in STATIC)


def test_if_the_kind_has_no_task_the_other_is_served():
    yard = Yard("tumm", "4x4")
    yard.submit("a", [(Job("j", map=Phase(32)), 1.0)]).run(0.0)
    # The bounds would leave each node a reduce slot, but there is no reduce.
    assert yard.slots_of("a") == 16


def test_an_early_reduce_takes_only_the_slots_left_to_reduces():
    yard = Yard("tumm", "4x4", settings=Settings(slow_start=0.05))
    yard.submit("a", [(Job("j", map=Phase(64), reduce=Phase(16)), 1.0, 1.0)]).run(2.0)
    nodes = yard.state.nodes.values()
    assert [(node.maps, node.reduces) for node in nodes] == [(3, 1)] * 4


def test_a_job_that_changes_phase_restarts_from_the_target():
    yard = Yard("tumm", "4x4")
    split = yard.scheduler._crew.split
    yard.submit("a", [(Job("j", map=Phase(16), reduce=Phase(96)), 10.0, 10.0)])
    yard.submit("b", [(Job("j", map=Phase(32)), 10.0)]).run(10.0)
    work = split._work
    share = map_share(work.map_work_s, work.reduce_work_s)
    assert split._map_slots == target(split._share, 16)
    assert split._share == pytest.approx(share, abs=0.05)


def test_a_fork_counts_for_itself():
    yard = Yard("tumm", "2x4")
    yard.submit("a", [(Job("j", map=Phase(40), reduce=Phase(8)), 3.0, 2.0)]).run(3.0)
    before = work_of(yard)
    fork = yard.scheduler.fork()
    number = next(iter(fork.state.running))
    fork.handle(ev.TaskFinished(4.0, number))
    assert work_of(yard) == before
    assert fork._crew.split._work.maps_left == before[0] - 1


def test_a_batch_of_reduce_heavy_jobs_whose_reduces_start_early():
    """The published gain: against 2:2 on four nodes of four slots (-20 % in the mean)."""
    job = Job("j", map=Phase(128), reduce=Phase(150))
    truth = {"j": JobTruth(map_s=8.0, shuffle_s=8.0, reduce_s=16.0)}
    batch = tuple(Arrival(Query(f"q{number}", (job,)), truth) for number in range(3))
    nodes = [Node(f"n{number}", 4) for number in range(4)]

    def makespan(slots: Any) -> float:
        run = simulate(Workload("batch", batch), nodes, {"slots": slots}, slow_start=0.05)
        return max(run.ends.values())

    assert makespan("tumm") < 0.9 * makespan("static")


def test_documented_examples():
    assert doctest.testmod(tumm_formulas).failed == 0


def test_a_kind_of_which_nothing_is_known_lasts_as_long_as_the_other():
    """1:1, not a guess of a second beside maps of half a minute."""
    kernel = Scheduler(compose, resolve_profile("tumm"))
    job = Job("j", map=Phase(4), reduce=Phase(4))
    kernel.handle(
        ev.NodeJoined(0.0, Node("n", 4)),
        ev.QuerySubmitted(0.0, Query("q", (job,))),
        ev.EstimateChanged(0.0, "q/j", map_s=30.0),
    )
    work = kernel._crew.split._work  # type: ignore[attr-defined]
    for number in list(kernel.state.running):
        kernel.handle(ev.TaskFinished(30.0, number, "n"))
    left = kernel.state.jobs["q/j"].reduce.counts[0]  # type: ignore[union-attr]
    assert (work.reduces_left, work.reduce_work_s) == (left, left * 30.0)
