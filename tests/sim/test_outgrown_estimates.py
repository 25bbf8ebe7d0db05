"""Estimates that are wrong are corrected while a query runs, from what can be seen of it."""

from __future__ import annotations

from typing import Any

import pytest

from queryard.core import events as ev
from queryard.core.model import Divisible, Job, Node, Query
from queryard.policies import resolve_profile
from queryard.sim import forecast
from queryard.sim.driver import SimDriver
from queryard.sim.estimates import EstimateSource
from queryard.sim.run import build
from queryard.workload.model import Arrival, JobTruth, Workload

TRUE_S = 10.0


def told(work_s: float) -> EstimateSource:
    def tell(now: float, arrival: Arrival) -> list[ev.EstimateChanged]:
        return [ev.EstimateChanged(now, f"{arrival.query.id}/d", work_s=work_s)]

    return tell


def driver_of(estimate_s: float, *later_s: float) -> SimDriver:
    query = Query("q", (Job("d", divisible=Divisible(1)),))
    workload = Workload("w", (Arrival(query, {"d": JobTruth(work_s=TRUE_S)}),))
    driver = build(workload, [Node("n", 1)], resolve_profile("swrd"), estimates=told(estimate_s))
    for time_s in later_s:
        driver.post(time_s, 3, ev.Woke(time_s))
    return driver


def told_of(driver: SimDriver, kind: type) -> list[Any]:
    assert driver.scheduler.journal is not None
    return [e for step in driver.scheduler.journal.steps for e in step.events if type(e) is kind]


def test_a_query_that_outgrows_its_estimate_is_expected_to_do_more():
    driver = driver_of(4.0)
    driver.run()
    changes = [(e.time_s, e.work_s) for e in told_of(driver, ev.EstimateChanged)[1:]]
    expected = [(4.0, 6.0), (6.0, 9.0), (9.0, 13.5)]
    assert changes == [pytest.approx(change) for change in expected]
    assert driver.ends == {"q": TRUE_S}


def test_progress_is_told_as_a_share_of_what_is_expected():
    driver = driver_of(20.0, 5.0)
    driver.run()
    (event,) = told_of(driver, ev.Progressed)
    assert event == ev.Progressed(5.0, "q/d", 0.25)


def test_an_estimate_that_is_right_is_never_changed():
    driver = driver_of(TRUE_S, 5.0)
    driver.run()
    assert told_of(driver, ev.Progressed) == [ev.Progressed(5.0, "q/d", 0.5)]
    assert len(told_of(driver, ev.EstimateChanged)) == 1


def test_an_estimate_of_nothing_is_outgrown_at_once():
    driver = driver_of(0.0)
    driver.run()
    assert driver.ends == {"q": TRUE_S}
    assert len(told_of(driver, ev.EstimateChanged)) > 5


def test_a_forecast_goes_by_the_corrected_estimate():
    driver = driver_of(4.0)
    driver.run(7.0)
    assert forecast(driver.scheduler)["q"].end_s == pytest.approx(9.0)


def test_a_forecast_does_not_mind_a_clock_that_has_not_rung():
    driver = driver_of(4.0)
    driver.run(1.0)
    driver.scheduler.handle(ev.Progressed(3.0, "q/d", 0.5))
    driver.scheduler.waking.times_s.add(2.0)
    assert forecast(driver.scheduler)["q"].end_s == pytest.approx(5.0)
