"""What is expected to arrive, and what it changes in trials."""

from __future__ import annotations

import pytest

from queryard.core.model import Divisible, Job, Node, Query
from queryard.portfolio.arrivals import MARK, MOST, Arrived, Expected, Recent, as_arrivals
from queryard.portfolio.settings import candidates_of
from queryard.portfolio.trials import try_out
from queryard.sim.run import build
from queryard.workload.model import Arrival, JobTruth, Workload


def stream(tenant: str, every_s: float, work_s: float, until_s: float = 10.0) -> list[Arrived]:
    count = int(until_s / every_s)
    return [Arrived(every_s * number, tenant, work_s) for number in range(1, count)]


def expected(came: list[Arrived], queue_s: float = 8.0, slots: int = 2) -> tuple[Expected, ...]:
    recent = Recent()
    for each in came:
        recent.note(each)
    return recent.expected([], 10.0, queue_s, slots)


def test_a_batch_is_no_reason_to_expect_another():
    assert expected([Arrived(5.0, "nightly", 9.0) for _ in range(20)]) == ()


def test_arrivals_go_on_until_the_queue_and_they_themselves_are_served():
    """Half of both slots is taken by them, so that eight seconds of queue take sixteen."""
    found = expected(stream("web", 0.5, 0.5))
    assert {each.tenant for each in found} == {"web"}
    assert max(each.time_s for each in found) == pytest.approx(26.0, abs=2.0)


def test_many_small_queries_come_together_and_large_ones_alone():
    small, large = stream("web", 0.06, 0.01), stream("lab", 2.0, 1.0)
    found = expected(small + large)
    assert len(found) <= MOST
    assert {each.queries for each in found if each.tenant == "lab"} == {1}
    web = [each for each in found if each.tenant == "web"]
    until_s = max(each.time_s for each in web)
    # The work is right, whichever queries come together.
    assert sum(each.work_s for each in web) / (until_s - 10.0) == pytest.approx(1 / 6, rel=0.15)


def test_of_a_past_that_is_short_nothing_is_expected():
    recent = Recent(began_s=9.5)
    assert recent.expected(stream("web", 0.1, 0.1), 10.0, 5.0, 1) == ()


def test_in_a_trial_arrivals_pass_what_waits_and_are_scored_one_by_one():
    job = Job("all", divisible=Divisible(1))
    driver = build(
        Workload("one", (Arrival(Query("long", (job,)), {"all": JobTruth(work_s=10.0)}),)),
        (Node("n", 1),),
        "fifo",
    )
    driver.run(0.0)
    together = (Expected(1.0, "web", 2.0, 20),)
    candidates = candidates_of(("fifo", "swrd"))
    fifo, swrd = try_out(driver.scheduler, candidates, expected=together)
    ends_s = {trial.name: trial.schedule.queries[0].end_s for trial in (fifo, swrd)}
    assert ends_s == {"fifo": pytest.approx(10.0), "swrd": pytest.approx(12.0)}
    came = [query for query in swrd.schedule.queries if query.id.startswith(MARK)]
    assert len(came) == 20
    assert came[0].task_s == pytest.approx(0.1)


def test_a_policy_takes_those_that_come_together_for_one_of_them():
    (arrival,) = as_arrivals((Expected(1.0, "web", 2.0, 20, due_in_s=3.0),), 4)
    assert arrival.truth["all"].work_s == 2.0
    assert arrival.query.deadline_s == 4.0


def test_queries_with_and_without_a_deadline_are_streams_of_their_own():
    came = [Arrived(at_s, "web", 0.5, due_in_s) for at_s in range(10) for due_in_s in (None, 4.0)]
    assert {each.due_in_s for each in expected(came)} == {None, 4.0}


def test_more_than_the_machine_can_do_is_not_expected():
    found = expected(stream("web", 0.1, 5.0))
    assert sum(each.work_s for each in found) == pytest.approx(0.8 * 20.0 * 2, rel=0.1)
