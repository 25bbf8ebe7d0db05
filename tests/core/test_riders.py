"""Launches on which tasks of several queries ride: which pays, and what if one of them fails."""

from __future__ import annotations

from typing import Any

import pytest

from queryard.core import commands as do
from queryard.core import events as ev
from queryard.core.model import Job, Node, Phase, Query, Split, Table
from queryard.core.scheduler import Scheduler
from queryard.metrics import summarise
from queryard.policies import compose
from queryard.sim import Conditions, simulate
from queryard.workload.model import Arrival, JobTruth, Workload

TENANTS = {
    "sharing": "circular",
    "pools": {"by": "tenant", "choice": "turns", "default": {"order": "fifo"}},
}


class Scan:
    """A kernel with queries that scan one table, driven by hand."""

    def __init__(self, profile: dict[str, Any], blocks: int = 4, slots: int = 1) -> None:
        self.kernel = Scheduler(compose, profile)
        self.now_s = 0.0
        table = Table("t", tuple(Split(1e6) for _ in range(blocks)))
        self.blocks = blocks
        self.told(ev.TableChanged(0.0, table), ev.NodeJoined(0.0, Node("n", slots)))

    def told(self, *events: ev.Event) -> list[do.Command]:
        commands = self.kernel.handle(*events)
        self.kernel.validate()
        return commands

    def submit(self, *queries: tuple[str, str, float]) -> list[do.Command]:
        """(id, tenant, seconds of a map) of each."""
        events: list[ev.Event] = []
        for query, tenant, map_s in queries:
            job = Job("scan", map=Phase(self.blocks), scans=("t",))
            spec = Query(query, (job,), tenant=tenant)
            events.append(ev.QuerySubmitted(self.now_s, spec))
            events.append(ev.EstimateChanged(self.now_s, f"{query}/scan", map_s=map_s))
        return self.told(*events)

    def used(self) -> dict[str, float]:
        return {pool.path: pool.used for pool in self.kernel.tree.pools.values() if pool.path}


def launch_of(commands: list[do.Command]) -> do.Launch:
    (found,) = [command for command in commands if isinstance(command, do.Launch)]
    return found


def test_tenants_pay_for_a_ride_in_proportion_to_what_is_expected_of_their_queries():
    scan = Scan(TENANTS)
    launch = launch_of(scan.submit(("a", "ann", 3.0), ("b", "bob", 1.0)))
    assert [task.job for task in launch.tasks] == ["a/scan", "b/scan"]
    assert scan.used() == {"ann": 0.75, "bob": 0.25}
    scan.told(ev.TaskFinished(1.0, launch.number, "n"))
    assert sum(scan.used().values()) == 1.0  # the next block


def test_a_tenant_at_its_cap_pays_no_more_and_the_leader_pays_the_rest():
    children = {"bob": {"order": "fifo", "cap": 0.5}}
    pools = {"by": "tenant", "default": {"order": "fifo"}, "children": children}
    scan = Scan({"sharing": "circular", "pools": pools}, slots=2)
    scan.submit(("a", "ann", 1.0), ("b", "bob", 3.0))
    used = scan.used()
    assert used["bob"] <= 1.0
    assert used["ann"] + used["bob"] == 2.0


@pytest.mark.parametrize("retry", ["count", "free", "never"])
def test_a_rider_that_fails_leaves_the_launch_and_the_others_finish(retry: ev.Retry):
    scan = Scan({"sharing": "circular"})
    launch = launch_of(scan.submit(("a", "x", 1.0), ("b", "x", 1.0), ("c", "x", 1.0)))
    commands = scan.told(ev.TaskFailed(1.0, launch.number, "too wide", retry, "b/scan"))
    state = scan.kernel.state
    assert [task.job for task in state.running[launch.number].tasks] == ["a/scan", "c/scan"]
    if retry == "never":
        assert do.Fail("b", "task b/scan:m0 failed: too wide") in commands
    read: list[tuple[int, tuple[str, ...]]] = []
    queue, now_s = [launch], 1.0
    while queue:
        done = queue.pop(0)
        now_s += 1.0
        queue += [
            c
            for c in scan.told(ev.TaskFinished(now_s, done.number, "n"))
            if isinstance(c, do.Launch)
        ]
        read.append((done.tasks[0].index, tuple(task.job for task in done.tasks)))
    assert not state.queries
    alone = [index for index, jobs in read[1:] if jobs == ("b/scan",)]
    # What it has missed it reads alone, once.
    assert alone == ([] if retry == "never" else [0])
    assert sorted(index for index, jobs in read if "a/scan" in jobs) == [0, 1, 2, 3]


def test_the_last_rider_that_fails_ends_the_launch_and_its_end_is_not_counted_twice():
    scan = Scan({"sharing": "circular"})
    launch = launch_of(scan.submit(("a", "x", 1.0), ("b", "x", 1.0)))
    scan.told(
        ev.TaskFailed(1.0, launch.number, "no", "count", "a/scan"),
        ev.TaskFailed(1.0, launch.number, "no", "count", "b/scan"),
    )
    assert launch.number not in scan.kernel.state.running
    scan.told(ev.TaskFinished(1.0, launch.number, "n"))
    assert scan.kernel.state.jobs["a/scan"].map.done == 0


def test_a_rider_that_has_been_cancelled_cannot_fail():
    scan = Scan({"sharing": "circular"})
    launch = launch_of(scan.submit(("a", "x", 1.0), ("b", "x", 1.0)))
    scan.told(ev.QueryCancelled(0.5, "b"))
    scan.told(ev.TaskFailed(1.0, launch.number, "cancelled", "count", "b/scan"))
    assert [task.job for task in scan.kernel.state.running[launch.number].tasks] == ["a/scan"]


def test_in_simulation_too_slot_time_is_charged_by_what_was_expected():
    table = Table("t", tuple(Split(1e6) for _ in range(8)))
    job = Job("scan", map=Phase(8), scans=("t",))
    arrivals = [
        Arrival(Query(name, (job,), tenant=name), {"scan": JobTruth(map_s=map_s)})
        for name, map_s in (("ann", 3.0), ("bob", 1.0))
    ]
    workload = Workload("two", tuple(arrivals), (table,))
    run = simulate(workload, [Node("n", 1)], {"sharing": "circular"}, conditions=Conditions())
    slot_s = {row.tenant: row.slot_s for row in summarise(run.journal).tenants}
    assert slot_s["ann"] == pytest.approx(3 * slot_s["bob"], rel=0.01)
