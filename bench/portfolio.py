"""How long a portfolio takes to decide: all candidates tried out on one queue, to its end.

The same work in a bare loop (`bare`) says how fast the machine was meanwhile.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from itertools import islice

from queryard.core.state import State
from queryard.policies import resolve_profile
from queryard.portfolio import PortfolioSettings, Selector, Workers, candidates_of
from queryard.sim.driver import SimDriver
from queryard.sim.run import build
from queryard.workload import Mix, SizeBin, generate, parse_nodes

from .bare import bare_fifo
from .throughput import contended

NODES = parse_nodes("16x12")
# So many queries have ended before: estimates are learnt from them.
ENDED = 100
CANDIDATES = 8
# (queries, GB of input per query, seconds that a decision may take)
QUEUES = ((50, 3.0, 0.5), (1_000, 21.0, 15.0))


@dataclass(frozen=True, slots=True)
class DecisionSpeed:
    """A decision; `ratio` is to the time in which a bare loop would launch as many tasks."""

    queries: int
    tasks: int
    candidates: int
    launches: int
    wall_s: float
    ratio: float
    target_s: float


def queue(queries: int, size_gb: float) -> tuple[SimDriver, int]:
    """A run with this many waiting queries after some have ended, and the tasks left of them."""
    mix = Mix(
        queries=queries + ENDED,
        load=1e4,
        bins=(SizeBin("all", 1, size_gb, size_gb),),
        deadlines=0.3,
    )
    workload = generate(mix, 1, NODES)
    # As for recorded workloads.
    driver = build(workload, NODES, resolve_profile("tls"), estimates="regression")
    until_s = max(arrival.query.submit_s for arrival in workload.arrivals)
    state = driver.scheduler.state
    driver.run(until_s)
    while len(state.queries) > queries:
        until_s += 1.0
        driver.run(until_s)
    return driver, tasks(state)


def tasks(state: State) -> int:
    """Tasks of the queue without a result yet."""
    phases = (phase for job in state.jobs.values() for phase in (job.map, job.reduce))
    return sum(phase.left for phase in phases if phase is not None)


def decision_speed(
    queries: int, size_gb: float, target_s: float, repeats: int = 3
) -> DecisionSpeed:
    driver, left = queue(queries, size_gb)
    kernel = driver.scheduler
    candidates = dict(islice(candidates_of().items(), CANDIDATES))
    settings = PortfolioSettings(candidates, most_launches=10**9)
    bare_per_s, _ = bare_fifo(contended(2_000, 70_000, 0), 200, 0.2, 0)
    decided_s: list[float] = []
    with Workers() as workers:
        workers.try_out(kernel, candidates)  # the processes have started by now
        for _ in range(repeats):
            selector = Selector(settings, trials=workers.try_out)
            began = time.perf_counter()
            decision = selector.decide(kernel)
            decided_s.append(time.perf_counter() - began)
    wall_s = statistics.median(decided_s)
    return DecisionSpeed(
        queries,
        left,
        len(candidates),
        decision.launches,
        wall_s,
        wall_s / (decision.launches / bare_per_s),
        target_s,
    )
