"""The real-time driver: sleeping tasks end in the order in which simulated ones do."""

from __future__ import annotations

import asyncio

import pytest
from small_worlds import arrival, divisible, maps, scan, table

from queryard.core.model import Node
from queryard.core.scheduler import Scheduler
from queryard.policies import compose, resolve_profile
from queryard.sim import simulate
from queryard.sim.realtime import SleepingCluster
from queryard.workload.model import JobTruth, Workload

# Slow enough that a moment in which the machine stalls does not bring one before another.
SPEEDUP = 20.0
REDUCING = JobTruth(map_s=2.0, shuffle_s=0.5, merge_s=0.25, reduce_s=2.25)
TABLE = table("t", 3)
# One slot, and all arrive while the first task runs: what decides is the order, not the clock.
TASKS = Workload(
    "tasks",
    (
        arrival("a", (maps(2, 1), REDUCING)),
        arrival("b", (maps(5), 2.0), at=0.4),
        arrival("c", (maps(1), 1.0), at=0.8),
        arrival("d", (maps(1, name="x"), 1.5), (maps(1, name="y", upstream=("x",)), 1.0), at=1.2),
    ),
)
LEASES = Workload(
    "leases",
    (
        arrival("big", (divisible(4), 40.0)),
        arrival("small", (divisible(2), 6.0), at=2.0),
        arrival("task", (maps(1), 1.5), at=6.5),
        arrival("late", (divisible(4), 8.0), at=7.0),
    ),
)
SCANS = Workload(
    "scans",
    (arrival("a", (scan(TABLE), 2.0)), arrival("b", (scan(TABLE), 2.0), at=3.0)),
    (TABLE,),
)


def sleep_through(workload: Workload, nodes: list[Node], profile: str) -> dict[str, float]:
    scheduler = Scheduler(compose, resolve_profile(profile))
    cluster = SleepingCluster(scheduler, workload, SPEEDUP)
    asyncio.run(asyncio.wait_for(cluster.run(nodes), timeout=20.0))
    scheduler.validate()
    assert not scheduler.state.running
    assert not scheduler.state.leaseholders
    return cluster.ends


@pytest.mark.parametrize(
    ("workload", "slots", "profile"),
    [
        (TASKS, 1, "fifo"),
        (TASKS, 1, "tls"),
        (TASKS, 1, "fair"),
        (LEASES, 4, "fifo"),
        (LEASES, 4, "query-fair"),
        (SCANS, 1, "s3"),
    ],
    ids=lambda value: value.name if isinstance(value, Workload) else str(value),
)
def test_queries_end_in_the_order_of_the_simulator(workload: Workload, slots: int, profile: str):
    nodes = [Node("n", slots)]
    found = simulate(workload, nodes, resolve_profile(profile), estimates="observed")
    slept = sleep_through(workload, nodes, profile)
    assert sorted(slept, key=slept.__getitem__) == sorted(found.ends, key=found.ends.__getitem__)
