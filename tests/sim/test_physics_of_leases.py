"""Divisible work in simulated time: rates, delays, batches, answers and their errors."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from small_worlds import arrival, commands, divisible, events, maps, run

from queryard.core import commands as do
from queryard.core import events as ev
from queryard.core.model import Divisible, Job, Node
from queryard.policies import resolve_profile
from queryard.sim import Conditions, replay
from queryard.sim.ordering import CLUSTER
from queryard.sim.run import build
from queryard.workload.model import JobTruth, Workload

SWRD = resolve_profile("swrd")


@pytest.mark.parametrize(("slots", "width", "end_s"), [(1, 9, 60.0), (3, 9, 20.0), (9, 4, 15.0)])
def test_all_slots_up_to_the_width_work_together(slots: int, width: int, end_s: float):
    found = run([arrival("q", (divisible(width), 60.0))], [Node("a", slots)])
    assert found.ends == {"q": end_s}


def test_slots_work_at_the_speed_of_their_node():
    nodes = [Node("a", 1, map_speed=2.0, host="h"), Node("b", 2, map_speed=0.5, host="h")]
    assert run([arrival("q", (divisible(3), 60.0))], nodes).ends == {"q": 20.0}


def test_nothing_happens_per_slice():
    found = run([arrival("q", (divisible(4), 1e6))], [Node("a", 4)])
    told = [event for step in found.journal.steps for event in step.events]
    kinds = {type(event) for event in told}
    assert kinds == {ev.NodeJoined, ev.QuerySubmitted, ev.EstimateChanged, ev.LeaseEnded}
    assert len(told) == 4


def test_progress_is_told_when_something_else_happens_but_not_too_often():
    queries = [arrival("q", (divisible(1), 100.0))]
    queries += [arrival(f"x{n}", (maps(1), 0.05), at=10.0 + 0.1 * n) for n in range(50)]
    found = run(queries, [Node("a", 2)], progress_every_s=1.0)
    told = events(found.journal, ev.Progressed)
    assert 4 <= len(told) <= 10
    assert all(later.time_s - sooner.time_s >= 1.0 for sooner, later in pairwise(told))
    assert all(event.done == pytest.approx(event.time_s / 100.0) for event in told)


def test_a_small_query_passes_and_the_big_one_loses_no_work():
    queries = [
        arrival("big", (divisible(2), 100.0)),
        arrival("small", (divisible(2), 10.0), at=20.0),
    ]
    found = run(queries, [Node("a", 2)], SWRD)
    assert found.ends == {"small": 25.0, "big": 55.0}


def test_a_revoke_takes_effect_after_the_delay_and_work_goes_on_meanwhile():
    queries = [
        arrival("big", (divisible(2), 100.0)),
        arrival("small", (divisible(2), 10.0), at=20.0),
    ]
    found = run(queries, [Node("a", 2)], SWRD, revoke_delay_s=1.5)
    ((at, revoke),) = commands(found.journal, do.Revoke)
    assert (at, revoke.slots) == (20.0, 2)
    back = [e for e in events(found.journal, ev.LeaseEnded) if e.outcome == "revoked"]
    assert [event.time_s for event in back] == [21.5]
    assert found.ends == pytest.approx({"small": 26.5, "big": 55.0}), "work is conserved"


def test_a_job_that_finishes_within_the_delay_does_not_give_back_twice():
    queries = [
        arrival("big", (divisible(1), 20.5)),
        arrival("small", (divisible(1), 0.1), at=20.0),
    ]
    found = run(queries, [Node("a", 1)], SWRD, revoke_delay_s=2.0, progress_every_s=100.0)
    assert found.ends == pytest.approx({"big": 20.5, "small": 20.6})
    assert {e.outcome for e in events(found.journal, ev.LeaseEnded)} == {"finished"}


def test_a_lease_is_cancelled_after_the_delay():
    queries = [arrival("q", (divisible(2), 100.0), cancel_s=30.0)]
    found = run(queries, [Node("a", 2)], revoke_delay_s=0.5)
    assert found.failed == {"q": "cancelled"}
    assert found.ends == {"q": 30.5}


# --- online queries ------------------------------------------------------------------------------


def online(truth: JobTruth, batches: int = 4, nested: bool = False, width: int = 2, **query):
    return arrival("q", (divisible(width, batches, nested), truth), kind="online", **query)


def answers(found) -> list[ev.AnswerReported]:
    return events(found.journal, ev.AnswerReported)


def test_there_is_an_answer_after_every_batch():
    found = run([online(JobTruth(work_s=40.0))], [Node("a", 2)])
    assert [(a.batch, a.time_s, a.core_s) for a in answers(found)] == [
        (1, 5.0, 10.0),
        (2, 10.0, 10.0),
        (3, 15.0, 10.0),
        (4, 20.0, 10.0),
    ]
    assert found.ends == {"q": 20.0}


def test_the_error_falls_with_the_rows_read_and_the_share_of_all():
    """sigma * sqrt((1 - f) / n), the last answer being exact."""
    truth = JobTruth(work_s=10.0, sigma=3.0, rows=1000.0)
    found = answers(run([online(truth, batches=5)], [Node("a", 1)]))
    for answer in found:
        share = answer.batch / 5
        assert answer.error == pytest.approx(3.0 * math.sqrt((1 - share) / (1000.0 * share)))
    assert found[-1].error == 0.0
    assert [a.error for a in found] == sorted((a.error for a in found), reverse=True)


def test_changes_are_those_of_the_answer():
    found = answers(run([online(JobTruth(work_s=10.0, rows=1e4), batches=30)], [Node("a", 1)]))
    assert all(answer.change >= 0 for answer in found)
    early, late = found[1:6], found[-5:]
    assert sum(a.change for a in early) > sum(a.change for a in late), "it settles down"


def test_a_query_stops_when_its_error_is_small_enough():
    truth = JobTruth(work_s=100.0, sigma=1.0, rows=100.0)
    # After 6 of 10 batches: sqrt(0.4 / 60) = 0.0816.
    found = run([online(truth, batches=10, target_error=0.09)], [Node("a", 1)])
    assert len(answers(found)) == 6
    assert found.ends == {"q": 60.0}
    assert not found.failed


def test_a_target_that_is_never_met_means_all_batches():
    found = run([online(JobTruth(work_s=100.0), batches=10, target_error=0.0)], [Node("a", 1)])
    assert found.ends == {"q": 100.0}


def test_the_work_of_a_nested_query_grows_from_batch_to_batch():
    truth = JobTruth(work_s=40.0, growth_s=5.0)
    found = run([online(truth, nested=True, width=1)], [Node("a", 1)])
    assert [a.core_s for a in answers(found)] == [15.0, 20.0, 25.0, 30.0]
    assert found.ends == {"q": 90.0}
    told = events(found.journal, ev.EstimateChanged)
    assert told[0].work_s == 90.0


def test_the_overhead_of_a_batch_is_the_same_for_any_number_of_slots():
    truth = JobTruth(work_s=40.0, batch_overhead_s=0.5)
    for slots in (1, 2):
        found = run([online(truth)], [Node("a", slots)])
        assert found.ends == {"q": 40.0 / slots + 4 * 0.5}


def test_the_answers_of_a_query_are_the_same_under_every_policy():
    truth = JobTruth(work_s=40.0)
    told = [
        [(a.batch, a.change, a.error) for a in answers(run([online(truth)], [Node("a", 2)], p))]
        for p in (None, resolve_profile("relaqs"), resolve_profile("fair"))
    ]
    assert told[0] == told[1] == told[2]


def test_a_job_uses_the_slots_of_one_host_unless_it_spans_the_cluster():
    nodes = [Node("a", 2), Node("b", 2)]
    assert run([arrival("q", (divisible(4), 60.0))], nodes).ends == {"q": 30.0}
    spread = Job("j", divisible=Divisible(4, span="cluster"))
    assert run([arrival("q", (spread, 60.0))], nodes).ends == {"q": 15.0}


def test_with_its_host_a_job_loses_what_it_has_done():
    workload = Workload("small", (arrival("q", (divisible(2), 60.0)),))
    driver = build(workload, [Node("a", 2), Node("b", 1)], {"order": "fifo"})
    driver.post(10.0, CLUSTER, ev.NodeLost(10.0, "a"))
    driver.run()
    assert driver.ends == {"q": 70.0}, "20 core-seconds are lost; b alone takes 60"
    journal = driver.scheduler.journal
    assert journal is not None
    assert replay(journal) is None


def test_with_one_of_its_nodes_a_host_loses_only_slots():
    workload = Workload("small", (arrival("q", (divisible(2), 60.0)),))
    nodes = [Node("a", 1, host="h"), Node("b", 1, host="h")]
    driver = build(workload, nodes, {"order": "fifo"}, conditions=Conditions(node_repair_s=1e6))
    driver.post(10.0, CLUSTER, ev.NodeLost(10.0, "a"))
    driver.run()
    assert driver.ends == {"q": 50.0}
