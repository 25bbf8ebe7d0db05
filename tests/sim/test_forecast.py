"""A forecast is a fork simulated forward: in a world without surprises it comes true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from small_worlds import arrival, divisible, maps

from queryard.core import events as ev
from queryard.core.journal import Journal
from queryard.core.model import Node
from queryard.core.state import Settings
from queryard.policies import compose, resolve_profile
from queryard.sim import Conditions, forecast
from queryard.sim.driver import SimDriver
from queryard.sim.run import build
from queryard.workload import generate
from queryard.workload.cluster import parse_nodes
from queryard.workload.mix import Mix, SizeBin
from queryard.workload.model import JobTruth, Workload

NODES = parse_nodes("3x2")
WORKLOAD = generate(
    Mix(
        queries=10,
        bins=(SizeBin("small", 3, 0.3, 1.0), SizeBin("big", 1, 2.0, 4.0)),
        load=3.0,
        deadlines=0.4,
        tenants={"ann": 1.0, "bob": 2.0},
    ),
    seed=2,
    nodes=NODES,
)
LAST_S = max(each.query.submit_s for each in WORKLOAD.arrivals)
PROFILES = [
    *("fifo", "priority", "fair", "query-fair", "hierarchical", "capacity", "edf", "swrd"),
    *("largest-slowdown", "hlfet", "static", "dfa", "tls", "srtf", "locf", "edls-sh", "edls-pr"),
    *("best-static", "tumm", "h-tumm", "relaqs", "deadline-first", "tenant-tls"),
]


def halfway(
    workload: Workload, profile: str, at: float, nodes: Any = NODES, **how: Any
) -> SimDriver:
    driver = build(workload, nodes, resolve_profile(profile), seed=1, **how)
    driver.run(at)
    return driver


def ends(found: Mapping[str, Any]) -> dict[str, float | None]:
    return {query: each.end_s for query, each in found.items()}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("later_s", [0.0, 15.0, 60.0])
def test_it_comes_true_when_no_query_arrives(profile: str, later_s: float):
    driver = halfway(WORKLOAD, profile, LAST_S + later_s)
    assert driver.scheduler.state.running, "in the middle of things"
    found = forecast(driver.scheduler)
    assert found
    driver.run()
    for query, end_s in ends(found).items():
        assert end_s == pytest.approx(driver.ends[query])


@pytest.mark.parametrize("slow_start", [0.0, 0.5])
@pytest.mark.parametrize("profile", ["fifo", "fair", "tls"])
def test_it_comes_true_with_early_reduces(profile: str, slow_start: float):
    truth = JobTruth(map_s=5.0, reduce_s=4.0)
    queries = tuple(arrival(f"q{n}", (maps(5, 3), truth), at=3.0 * n) for n in range(4))
    kernel = Settings(slow_start=slow_start)
    driver = halfway(Workload("w", queries), profile, 11.0, settings=kernel)
    found = forecast(driver.scheduler)
    driver.run()
    assert ends(found) == pytest.approx({q: driver.ends[q] for q in found})


@pytest.mark.parametrize("profile", ["fifo", "query-fair", "priority", "srtf"])
def test_it_comes_true_with_leases_held(profile: str):
    queries = (
        arrival("a", (divisible(4), 100.0)),
        arrival("tasks", (maps(9), 7.0), at=3.0),
        arrival("b", (divisible(3), 50.0), at=6.0),
        arrival("c", (divisible(6), 80.0), at=11.0),
    )
    told_always = Conditions(progress_every_s=0.0)
    driver = halfway(Workload("w", queries), profile, 11.0, conditions=told_always)
    assert driver.scheduler.state.now == 11.0
    assert driver.scheduler.state.leaseholders
    found = forecast(driver.scheduler)
    driver.run()
    assert ends(found) == pytest.approx({query: driver.ends[query] for query in found})


def test_what_a_paused_query_has_done_is_not_done_again():
    queries = (
        arrival("big", (divisible(2), 100.0)),
        arrival("small", (divisible(2), 10.0), at=30.0),
    )
    driver = halfway(Workload("w", queries), "swrd", 30.0, [Node("n", 2)])
    assert driver.scheduler.state.queries["big"].slots == 0
    assert ends(forecast(driver.scheduler)) == pytest.approx({"big": 55.0, "small": 35.0})


def test_it_tells_when_a_query_will_start():
    queries = (arrival("a", (maps(2), 10.0)), arrival("b", (maps(2), 10.0), at=1.0))
    driver = halfway(Workload("w", queries), "fifo", 1.0, [Node("n", 1)])
    found = forecast(driver.scheduler)
    assert (found["a"].start_s, found["a"].end_s) == (0.0, 20.0)
    assert (found["b"].start_s, found["b"].end_s) == (20.0, 40.0)


def test_it_may_ask_what_if_another_policy_ruled():
    queries = (
        arrival("long", (maps(9), 10.0)),
        arrival("short", (maps(1), 1.0), at=1.0),
    )
    driver = halfway(Workload("w", queries), "fifo", 1.0, [Node("n", 1)])
    assert forecast(driver.scheduler)["short"].end_s == 91.0
    assert forecast(driver.scheduler, profile=resolve_profile("swrd"))["short"].end_s == 11.0
    assert driver.scheduler.policy.name == "fifo"
    driver.run()
    assert driver.ends["short"] == 91.0


def test_beyond_the_horizon_nothing_is_known():
    queries = (arrival("a", (maps(2), 10.0)), arrival("b", (maps(2), 10.0), at=1.0))
    driver = halfway(Workload("w", queries), "fifo", 1.0, [Node("n", 1)])
    found = forecast(driver.scheduler, horizon_s=25.0)
    assert found["a"].end_s == 20.0
    assert (found["b"].start_s, found["b"].end_s) == (20.0, None)


def test_without_nodes_nothing_ever_ends():
    queries = (arrival("a", (maps(2), 10.0)),)
    driver = halfway(Workload("w", queries), "fifo", 1.0, [Node("n", 1)])
    driver.scheduler.handle(ev.NodeLost(2.0, "n"))
    assert ends(forecast(driver.scheduler)) == {"a": None}


def test_estimates_are_what_it_believes():
    queries = (arrival("a", (maps(4), 10.0)),)
    driver = halfway(Workload("w", queries), "fifo", 0.0, [Node("n", 1)], estimates="observed")
    assert ends(forecast(driver.scheduler)) == {"a": 4.0}, "unknown: one second per task"
    driver.run(10.0)
    assert ends(forecast(driver.scheduler)) == {"a": 40.0}


def test_a_query_that_is_on_its_way_out_is_over_at_once():
    queries = (arrival("a", (maps(4), 10.0)), arrival("b", (maps(1), 10.0)))
    driver = halfway(Workload("w", queries), "fifo", 1.0, [Node("n", 1)])
    now = driver.scheduler.state.now
    driver.scheduler.handle(ev.QueryCancelled(now, "a"))
    assert ends(forecast(driver.scheduler)) == {"a": now, "b": now + 10.0}


@pytest.mark.parametrize("profile", ["fifo", "tls", "srtf", "edls-pr", "s3", "relaqs", "tumm"])
def test_it_changes_nothing(profile: str):
    plain = halfway(WORKLOAD, profile, LAST_S)
    plain.run()
    watched = halfway(WORKLOAD, profile, 0.0)
    for at in range(0, int(LAST_S) + 60, 10):
        watched.run(float(at))
        forecast(watched.scheduler, horizon_s=30.0)
        forecast(watched.scheduler, profile=resolve_profile("fair"))
        watched.scheduler.validate()
    watched.run()
    assert isinstance(plain.scheduler.journal, Journal)
    assert watched.scheduler.journal == plain.scheduler.journal


def test_a_policy_made_by_hand_can_be_forecast():
    driver = halfway(WORKLOAD, "fifo", LAST_S)
    own = {"pools": {"by": "tenant", "default": {"order": "swrd", "cap": 0.5}}}
    assert compose(own).work_conserving is False
    found = forecast(driver.scheduler, profile=own)
    assert all(each.end_s is not None for each in found.values())
