"""Divisible work in simulated time goes as fast as its curve lets it."""

from __future__ import annotations

import pytest

from queryard.core.model import Divisible, Job, Node, Query
from queryard.core.speedup import Speedup
from queryard.metrics import summarise
from queryard.sim import simulate
from queryard.sim.run import build
from queryard.workload.alone import alone_time_s
from queryard.workload.model import Arrival, JobTruth, Workload

NODES = [Node("n", 4)]
HALF = Speedup(serial=0.5)


def arrival(name: str, curve: Speedup, work_s: float = 8.0) -> Arrival:
    query = Query(name, (Job("j", divisible=Divisible(4)),))
    return Arrival(query, {"j": JobTruth(work_s=work_s, speedup=curve)})


def test_alone_it_takes_what_its_curve_says_and_leases_more_than_it_works():
    given = arrival("q", HALF)
    run = simulate(Workload("w", (given,)), NODES, "fifo")
    assert run.ends["q"] == pytest.approx(5.0) == alone_time_s(given, 4)
    summary = summarise(run.journal, work_s={"q": 8.0})
    assert summary.leased_per_work == pytest.approx(4 * 5.0 / 8.0)
    assert summarise(run.journal).leased_per_work is None


def test_curves_that_are_known_make_queries_narrower_and_faster():
    workload = Workload("w", tuple(arrival(f"q{n}", HALF) for n in range(4)))
    ends, leased = {}, {}
    for estimates in ("oracle", "oracle:no-curves"):
        run = simulate(workload, NODES, "swrd", estimates=estimates)
        ends[estimates] = sum(run.ends.values())
        works = {f"q{n}": 8.0 for n in range(4)}
        leased[estimates] = summarise(run.journal, work_s=works).leased_per_work
    assert ends["oracle"] == pytest.approx(4 * 8.0), "one slot each"
    assert ends["oracle:no-curves"] == pytest.approx(5.0 * (1 + 2 + 3 + 4)), "one by one"
    assert leased == {"oracle": pytest.approx(1.0), "oracle:no-curves": pytest.approx(2.5)}


def test_estimates_may_be_wrong_about_a_curve():
    """The truth decides how fast it goes, the estimate how wide."""
    told = Speedup(serial=0.9)
    driver = build(Workload("w", (arrival("a", Speedup()), arrival("b", Speedup()))), NODES, "fifo")
    plain = driver.estimates
    driver.estimates = lambda now, given: [e._replace(speedup=told) for e in plain(now, given)]
    driver.run(1.0)
    slots = {query.id: query.slots for query in driver.scheduler.state.queries.values()}
    assert slots == {"a": 2, "b": 2}
    driver.run()
    assert driver.ends["a"] == driver.ends["b"] == pytest.approx(4.0)
