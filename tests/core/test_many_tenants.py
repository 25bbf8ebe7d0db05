"""Tenants that come once: their pools do not stay for ever, and no tenant gains by that."""

from __future__ import annotations

from typing import Any

import pytest
from conformance.watched import WatchedScheduler
from long_forms import one_each

from queryard.core.model import Divisible, Job, Node, Query
from queryard.core.ranks import KEPT
from queryard.policies import resolve_profile
from queryard.sim.driver import SimDriver
from queryard.sim.run import build
from queryard.workload.model import Arrival, JobTruth, Workload


def ask(name: str, at_s: float, tenant: str, work_s: float = 1.0) -> Arrival:
    jobs = (Job("d", divisible=Divisible(2)),)
    return Arrival(Query(name, jobs, tenant=tenant, submit_s=at_s), {"d": JobTruth(work_s=work_s)})


def driven(arrivals: list[Arrival], profile: Any) -> SimDriver:
    nodes = [Node("n", 2)]
    return build(Workload("w", tuple(arrivals)), nodes, profile, kernel=WatchedScheduler)


# Several times as many as are kept.
VISITS = 3 * KEPT


@pytest.mark.parametrize(
    ("profile", "gap_s"),
    one_each(["hierarchical", "marshal", "capacity", "tenant-tls"], [0.4, 2.0]),
)
def test_pools_of_those_who_have_left_are_forgotten(profile: str, gap_s: float) -> None:
    stays = ask("stays", 0.0, "lab", work_s=2000.0)
    visits = [ask(f"q{n}", n * gap_s, f"guest{n}/desk") for n in range(VISITS)]
    driver = driven([stays, *visits], resolve_profile(profile))
    tree = driver.scheduler.tree
    most = 0
    for n in range(VISITS):
        driver.run(n * gap_s)
        waiting = len(driver.scheduler.state.queries)
        most = max(most, len(tree.pools) - 2 * waiting)
    driver.run()
    assert not driver.unfinished
    assert most <= 2 * KEPT + 2
    fork = driver.scheduler.fork()
    assert {p.path for p in fork.tree.pools.values()} == {p.path for p in tree.pools.values()}


def test_named_tenants_and_those_who_are_there_are_kept() -> None:
    profile = {
        "pools": {
            "by": "tenant",
            "choice": "turns",
            "default": {"order": "fifo"},
            "children": {"known": {"order": "fifo", "weight": 3}},
        }
    }
    other = ask("other", 0.0, "other", 500.0)
    guests = [ask(f"q{n}", 1.0 + n * 0.01, f"guest{n}", 0.001) for n in range(300)]
    driver = driven([ask("k", 0.0, "known", 0.1), other, *guests], profile)
    driver.run(20.0)
    paths = {pool.path for pool in driver.scheduler.tree.pools.values()}
    assert {"known", "other"} <= paths
    assert len(paths) < 3 * KEPT
    driver.run()
    assert not driver.unfinished


def test_one_that_is_ahead_of_those_who_are_there_is_kept() -> None:
    profile = {"pools": {"by": "tenant", "choice": "turns", "default": {"order": "fifo"}}}
    driver = driven([ask(f"q{n}", n * 2.0, f"guest{n}") for n in range(KEPT + 20)], profile)
    driver.run(2.0 * KEPT - 5)
    tree = driver.scheduler.tree
    ahead = next(pool for pool in tree.pools.values() if pool.parent is not None)
    ahead.virtual_s += 1000.0
    driver.run()
    assert ahead.index in tree.pools
    assert len(tree.pools) < KEPT
