"""What each candidate would have made of the latest past.

Trials of the queue believe estimates. A rehearsal meets the queries that really came and the task
times that were really seen, with estimates as they could have been had at the time, so that a
policy that relies on them too much is found out. What has not run yet takes what is expected of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from queryard.core.model import Node
from queryard.core.state import Settings
from queryard.sim.driver import SimDriver
from queryard.sim.estimates import EstimateSource, fork_source
from queryard.sim.run import build
from queryard.workload.model import Workload

from .scores import QueryEnd, Schedule
from .what_if import Profile, Trial, steps


@dataclass(frozen=True, slots=True)
class Scene:
    """All that a rehearsal needs."""

    workload: Workload
    nodes: tuple[Node, ...]
    estimates: EstimateSource
    settings: Settings


def rehearse(
    scene: Scene,
    candidates: Mapping[str, Profile],
    *,
    rest: Callable[[], None] = lambda: None,
) -> list[Trial]:
    """What every candidate makes of the past; `rest` is called whenever a query ends."""
    trials = []
    first_s, last_s = (scene.workload.arrivals[n].query.submit_s for n in (0, -1))
    for name, profile in candidates.items():
        began = time.perf_counter()
        driver = build(
            scene.workload,
            scene.nodes,
            profile,
            estimates=fork_source(scene.estimates),
            settings=scene.settings,
            keep_journal=False,
            from_s=first_s,
            on_end=lambda _: rest(),
        )
        for _ in steps(driver, first_s, max(1.0, last_s - first_s)):
            rest()
        launches = driver.scheduler.state.next_launch
        took_s = time.perf_counter() - began
        schedule = _schedule(scene.workload, driver)
        trials.append(Trial(name, (schedule,), launches, not driver.unfinished, took_s))
    return trials


def _schedule(workload: Workload, driver: SimDriver) -> Schedule:
    """All queries; one that would never end has ended by the end of the rehearsal."""
    queries = tuple(
        QueryEnd(
            query.id,
            query.submit_s,
            driver.ends.get(query.id, driver.now),
            arrival.work_s,
            query.deadline_s,
        )
        for arrival in workload.arrivals
        for query in (arrival.query,)
    )
    last_s = max((query.end_s for query in queries), default=0.0)
    return Schedule(queries, driver.stays_s(last_s))
