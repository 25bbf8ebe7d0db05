"""Simulated tasks per second through `Scheduler.handle`, beside a bare FIFO loop.

The journal is off. The bare loop is run before and after each profile, so that a noisy
machine slows both; the ratio is the median over the repeats.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median

from queryard.core.model import Divisible, Job, Node, Query
from queryard.policies import catalogue, resolve_profile
from queryard.sim import Conditions, simulate
from queryard.workload import heavy_tailed
from queryard.workload.model import Arrival, JobTruth, Workload

from .bare import bare_fifo

SLOTS = 200
NODES = [Node(f"n{i:02}", 10) for i in range(20)]
FIFO_RATIO, OTHER_RATIO = 0.20, 0.07


@dataclass(frozen=True, slots=True)
class Speed:
    """One profile's speed: tasks per second, the bare loop's, and their ratio."""

    profile: str
    tasks_per_s: float
    bare_per_s: float
    ratio: float

    @property
    def target(self) -> float:
        return FIFO_RATIO if self.profile == "fifo" else OTHER_RATIO


def contended(jobs: int, tasks: int, seed: int) -> Workload:
    """The heavy-tailed workload of three tenants, every third query with a deadline."""
    plain = heavy_tailed(jobs, tasks, SLOTS, seed=seed)
    arrivals = []
    for number, arrival in enumerate(plain.arrivals):
        query = arrival.query
        deadline_s = None if number % 3 else query.submit_s + 600.0
        query = replace(query, tenant=f"t{number % 3}", deadline_s=deadline_s)
        arrivals.append(replace(arrival, query=query))
    return replace(plain, arrivals=tuple(arrivals))


def throughput(profile: str, jobs: int, tasks: int, noise: float, repeats: int) -> Speed:
    """The medians of one profile on the heavy-tailed workload."""
    ours, bare, ratios = [], [], []
    for seed in range(1, repeats + 1):
        workload = contended(jobs, tasks, seed)
        before, _ = bare_fifo(workload, SLOTS, noise, seed)
        run = simulate(
            workload,
            NODES,
            resolve_profile(profile),
            conditions=Conditions(noise=noise),
            seed=seed,
            keep_journal=False,
        )
        after, _ = bare_fifo(workload, SLOTS, noise, seed)
        assert not run.unfinished, f"{profile} left {run.unfinished} queries"
        speed = run.tasks / run.wall_s
        beside = (before + after) / 2
        ours.append(speed)
        bare.append(beside)
        ratios.append(speed / beside)
    return Speed(profile, median(ours), median(bare), median(ratios))


def online(queries: int, batches: int) -> Workload:
    """Online queries that could each use every slot: slots are divided again all the time."""
    job = Job("answer", divisible=Divisible(SLOTS, batches, span="cluster"))
    arrivals = tuple(
        Arrival(
            Query(f"q{i:02}", (job,), tenant=f"t{i % 3}", submit_s=float(i), kind="online"),
            {"answer": JobTruth(work_s=2_000.0 + 100.0 * i, batch_overhead_s=0.1)},
        )
        for i in range(queries)
    )
    return Workload(f"{queries} online queries", arrivals)


def lease_decisions(profile: str, repeats: int) -> float:
    """Calls of `handle` per second while twelve online queries share all slots under leases."""
    speeds = []
    for seed in range(repeats):
        run = simulate(online(12, 40), NODES, resolve_profile(profile), seed=seed)
        assert not run.unfinished, f"{profile} left {run.unfinished} queries"
        speeds.append(len(run.journal.steps) / run.wall_s)
    return median(speeds)


def profiles() -> list[str]:
    return [info.name for info in catalogue()]
