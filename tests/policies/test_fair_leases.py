"""Leased slots go round when there are more queries than slots."""

from __future__ import annotations

from collections import Counter

import pytest
from kernel_driver import Yard

from queryard.core import events as ev
from queryard.core.commands import Grant
from queryard.core.model import Divisible, Job, Node, Query
from queryard.policies import resolve_profile
from queryard.sim.conditions import Conditions
from queryard.sim.references import Demand, processor_sharing
from queryard.sim.run import simulate
from queryard.workload.model import Arrival, JobTruth, Workload


def leased(name: str, work_s: float, at_s: float = 0.0) -> Arrival:
    jobs = (Job("d", divisible=Divisible(2)),)
    return Arrival(Query(name, jobs, submit_s=at_s), {"d": JobTruth(work_s=work_s)})


@pytest.mark.parametrize("profile", ["query-fair", "fair", "hierarchical"])
def test_equal_queries_end_together(profile: str):
    run = simulate(
        Workload("w", tuple(leased(name, 10.0) for name in "abcde")),
        [Node("n", 2)],
        resolve_profile(profile),
        conditions=Conditions(revoke_delay_s=0.01),
    )
    assert min(run.ends.values()) > 19.0
    assert max(run.ends.values()) < 26.0


def test_a_small_query_need_not_wait_for_the_large_ones():
    arrivals = [*(leased(name, 60.0) for name in "abc"), leased("small", 1.0, 5.0)]
    run = simulate(Workload("w", tuple(arrivals)), [Node("n", 2)], resolve_profile("query-fair"))
    assert run.ends["small"] < 9.0


def test_no_query_is_passed_for_ever_by_newcomers():
    arrivals = [*(leased(name, 20.0) for name in "ab")]
    arrivals += [leased(f"n{i}", 1.0, 0.1 + i * 0.6) for i in range(200)]
    run = simulate(Workload("w", tuple(arrivals)), [Node("n", 2)], resolve_profile("query-fair"))
    demands = [Demand(a.query.id, a.query.submit_s, a.work_s, a.work_s / 2) for a in arrivals]
    shared = processor_sharing(demands, 2)
    assert run.ends["a"] < 1.3 * shared["a"]
    assert run.ends["b"] < 1.3 * shared["b"]


def test_slots_are_held_for_a_turn():
    run = simulate(
        Workload("w", tuple(leased(name, 10.0) for name in "abc")),
        [Node("n", 2)],
        resolve_profile("query-fair"),
    )
    grants = Counter(
        command.job
        for step in run.journal.steps
        for command in step.commands
        if isinstance(command, Grant)
    )
    assert max(grants.values()) <= 11
    ended = [e for step in run.journal.steps for e in step.events if isinstance(e, ev.LeaseEnded)]
    assert any(event.outcome == "revoked" for event in ended)


def test_tasks_are_ranked_by_their_slots_alone():
    yard = Yard("query-fair", "1x4")
    for name in "ab":
        yard.submit(name, [("work", 9, 5.0)])
    yard.run(1.0)
    assert [yard.slots_of(name) for name in "ab"] == [2, 2]
