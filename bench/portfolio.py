"""How long a portfolio takes to decide: all candidates tried out on one queue.

The same work in a bare loop (`bare`) says how fast the machine was meanwhile.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

from queryard.core.scheduler import Scheduler
from queryard.policies import resolve_profile
from queryard.portfolio import Workers, candidates_of
from queryard.sim.run import build
from queryard.workload import Mix, SizeBin, generate, parse_nodes

from .bare import bare_fifo
from .throughput import contended

NODES = parse_nodes("16x12")
# (queries, GB of input each, seconds that a decision may take)
QUEUES = ((50, 3.0, 0.5), (1_000, 21.0, 15.0))


@dataclass(frozen=True, slots=True)
class DecisionSpeed:
    """A decision over 8 candidates; `bare` is how many such decisions a bare loop would make."""

    queries: int
    tasks: int
    wall_s: float
    ratio: float
    target_s: float


def queue(queries: int, size_gb: float) -> tuple[Scheduler, int]:
    """A kernel with so many queries waiting, and the tasks they have left."""
    mix = Mix(queries=queries, load=1e4, bins=(SizeBin("all", 1, size_gb, size_gb),), deadlines=0.3)
    workload = generate(mix, 1, NODES)
    driver = build(workload, NODES, resolve_profile("tls"), keep_journal=False)
    driver.run(max(arrival.query.submit_s for arrival in workload.arrivals))
    left = sum(
        phase.left
        for job in driver.scheduler.state.jobs.values()
        for phase in (job.map, job.reduce)
        if phase is not None
    )
    return driver.scheduler, left


def decision_speed(
    queries: int, size_gb: float, target_s: float, repeats: int = 3
) -> DecisionSpeed:
    kernel, tasks = queue(queries, size_gb)
    candidates = candidates_of()
    bare_per_s, _ = bare_fifo(contended(2_000, 70_000, 0), 200, 0.2, 0)
    times_s = []
    with Workers() as workers:
        workers.try_out(kernel, candidates_of(("fifo",)))  # they are started by now
        for _ in range(repeats):
            began = time.perf_counter()
            workers.try_out(kernel, candidates, most_launches=10**9)
            times_s.append(time.perf_counter() - began)
    wall_s = statistics.median(times_s)
    ratio = wall_s / (len(candidates) * tasks / bare_per_s)
    return DecisionSpeed(queries, tasks, wall_s, ratio, target_s)
