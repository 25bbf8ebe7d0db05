"""How long a portfolio takes to decide: all candidates are simulated on one queue and on later
arrivals, to the end, in all worlds; and now and then on past queries as well.

The same work in a bare loop (`bare`) says how fast the machine was meanwhile.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from itertools import islice

from queryard.policies import resolve_profile
from queryard.portfolio import PortfolioSettings, Selector, Workers, candidates_of
from queryard.portfolio.past import Past
from queryard.portfolio.queue import tasks
from queryard.sim.driver import SimDriver
from queryard.sim.run import build
from queryard.workload import Mix, SizeBin, generate, parse_nodes

from .bare import bare_fifo
from .throughput import contended

NODES = parse_nodes("16x12")
# How many past queries there are.
ENDED = 100
CANDIDATES = 8
# (queries, GB of input each, whether only the queue counts, seconds that a decision may take)
QUEUES = ((50, 3.0, False, 0.5), (50, 3.0, True, 0.5), (1_000, 21.0, False, 15.0))


@dataclass(frozen=True, slots=True)
class DecisionSpeed:
    """A decision; `ratio` is to the time in which a bare loop would launch as many tasks.

    With `queue_only` estimates are taken as they are and no query arrives, as in POSUM.
    `rehearsed_s` is what a decision takes that is followed by a rehearsal of the past.
    """

    queries: int
    tasks: int
    candidates: int
    queue_only: bool
    launches: int
    wall_s: float
    ratio: float
    rehearsed_s: float | None
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
    # As for recorded workloads: a rehearsal learns again what was learnt.
    driver = build(workload, NODES, resolve_profile("tls"), estimates="regression")
    until_s = max(arrival.query.submit_s for arrival in workload.arrivals)
    state = driver.scheduler.state
    driver.run(until_s)
    while len(state.queries) > queries:
        until_s += 1.0
        driver.run(until_s)
    return driver, tasks(state)


def past_of(driver: SimDriver) -> Past:
    """What a portfolio remembers of a run."""
    past = Past(driver.estimates, driver.scheduler.state.settings)
    assert driver.scheduler.journal is not None
    for step in driver.scheduler.journal.steps:
        past.read(step)
    return past


def decision_speed(
    queries: int, size_gb: float, queue_only: bool, target_s: float, repeats: int = 3
) -> DecisionSpeed:
    driver, left = queue(queries, size_gb)
    kernel = driver.scheduler
    candidates = dict(islice(candidates_of().items(), CANDIDATES))
    settings = PortfolioSettings(candidates, most_launches=10**9, worlds=1 if queue_only else 3)
    bare_per_s, _ = bare_fifo(contended(2_000, 70_000, 0), 200, 0.2, 0)
    # Without a rehearsal and with one.
    decided_s: list[float] = []
    rehearsed_s: list[float] = []
    times_s = {False: decided_s} if queue_only else {False: decided_s, True: rehearsed_s}
    with Workers() as workers:
        workers.try_out(kernel, candidates)  # they are started by now
        for _ in range(repeats):
            for rehearses, times in times_s.items():
                past = None if queue_only else past_of(driver)
                selector = Selector(settings, trials=workers, past=past)
                began = time.perf_counter()
                decision = selector.decide(kernel)
                if rehearses:
                    selector.look_back(kernel)
                times.append(time.perf_counter() - began)
    wall_s = statistics.median(decided_s)
    return DecisionSpeed(
        queries,
        left,
        len(candidates),
        queue_only,
        decision.launches,
        wall_s,
        wall_s / (decision.launches / bare_per_s),
        statistics.median(rehearsed_s) if rehearsed_s else None,
        target_s,
    )
