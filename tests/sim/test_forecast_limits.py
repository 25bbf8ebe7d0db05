"""A forecast costs a moment, whatever it looks ahead to; where it is cut off, it says so."""

from __future__ import annotations

from itertools import count

import pytest
from small_worlds import arrival, divisible

from queryard.core.model import Node
from queryard.core.scheduler import Scheduler
from queryard.policies import catalogue, resolve_profile
from queryard.sim import Limit, forecast
from queryard.sim.run import build
from queryard.workload.model import Workload

NAMES = [info.name for info in catalogue()]
# How many decisions a forecast may make; none of these queues needs so many.
MOST_STEPS = 4000


def waiting(profile: str, queries: int, work_s: float, batches: int = 1) -> Scheduler:
    """Queries that can each use both slots, all submitted within a second."""
    arrivals = [
        arrival(
            f"q{number}",
            (divisible(2, batches), work_s * (1 + number % 7)),
            at=number / queries,
            tenant=f"t{number % 3}",
            kind="online" if batches > 1 else "exact",
        )
        for number in range(queries)
    ]
    nodes = [Node("local", 2)]
    driver = build(Workload("w", tuple(arrivals)), nodes, resolve_profile(profile))
    driver.run(1.0)
    return driver.scheduler


@pytest.mark.parametrize("profile", NAMES)
@pytest.mark.parametrize(("queries", "work_s"), [(4, 1e5), (50, 1e4)])
def test_it_takes_few_decisions_however_long_the_queries_are(
    profile: str, queries: int, work_s: float
):
    found = forecast(waiting(profile, queries, work_s), limit=Limit(steps=MOST_STEPS))
    assert not found.cut_off
    assert all(each.end_s is not None for each in found.values())
    assert len(found) == queries


@pytest.mark.parametrize("profile", ["tls", "srtf", "fair", "marshal", "query-fair"])
def test_looking_less_often_hardly_changes_when_all_is_done(profile: str):
    """300 looks or one per second: the same work is done by the same slots."""
    scheduler = waiting(profile, 5, 400.0)
    total_s = sum(query.left_s for query in scheduler.state.queries.values()) / 2
    found = forecast(scheduler)
    ends = [each.end_s or 0.0 for each in found.values()]
    assert max(ends) == pytest.approx(1.0 + total_s, rel=1e-3)


def test_it_stops_when_its_time_is_up_and_gives_what_was_found():
    ticks = count()
    limit = Limit(seconds=3.0, clock=lambda: float(next(ticks)))
    scheduler = waiting("fifo", 60, 10.0)
    found = forecast(scheduler, limit=limit)
    assert found.cut_off
    assert found.until_s < 1e6
    ended = [each for each in found.values() if each.end_s is not None]
    assert 0 < len(ended) < 60
    assert len(found) == 60, "the others are there, without an end"
    whole = forecast(scheduler)
    assert not whole.cut_off
    assert all(whole[each.query] == each for each in ended), "what was found is not changed by it"


def test_it_stops_after_so_many_decisions():
    found = forecast(waiting("fifo", 60, 10.0), limit=Limit(steps=5))
    assert found.cut_off
    assert sum(each.end_s is not None for each in found.values()) <= 5


def test_online_queries_are_looked_at_less_often_too():
    found = forecast(waiting("relaqs", 6, 1e4, batches=4), limit=Limit(steps=5 * MOST_STEPS))
    assert all(each.end_s is not None for each in found.values())


def test_the_kernel_itself_is_left_as_it_is():
    scheduler = waiting("marshal", 4, 1e5)
    before = (scheduler.state.settings, [pool.spec for pool in scheduler.tree.pools.values()])
    forecast(scheduler, limit=Limit(steps=10))
    after = (scheduler.state.settings, [pool.spec for pool in scheduler.tree.pools.values()])
    assert after == before
