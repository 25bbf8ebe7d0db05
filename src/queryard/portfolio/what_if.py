"""What would become of the queue under each candidate: forks, simulated with estimates as truth."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from queryard.core.events import PolicyChosen
from queryard.core.scheduler import Scheduler
from queryard.sim.forecast import resume

from .scores import QueryEnd, Schedule

Profile = Mapping[str, Any]
# Without an end in sight, a candidate is followed for so many launches.
MOST_LAUNCHES = 200_000


@dataclass(frozen=True, slots=True)
class Trial:
    """What a candidate would make of the queue, and what it took to find out."""

    name: str
    schedule: Schedule
    launches: int
    complete: bool
    wall_s: float


def try_out(
    scheduler: Scheduler,
    candidates: Mapping[str, Profile],
    *,
    horizon_s: float = math.inf,
    most_launches: int = MOST_LAUNCHES,
    is_late: Callable[[], bool] = lambda: False,
) -> list[Trial]:
    """Simulate every candidate from here to the end of the queue, or to a horizon.

    Nobody else arrives. What has not ended by the horizon ends after it, in the order of the work
    that is left. `is_late` is asked between candidates and ends it all.
    """
    trials = []
    for name, profile in candidates.items():
        if is_late():
            break
        trials.append(_try(scheduler, name, profile, horizon_s, most_launches))
    return trials


def _try(
    scheduler: Scheduler, name: str, profile: Profile, horizon_s: float, most_launches: int
) -> Trial:
    began = time.perf_counter()
    fork = scheduler.fork()
    state = fork.state
    now = state.now
    before = state.next_launch
    active = [
        (query.id, query.spec.submit_s, query.total_s, query.spec.deadline_s)
        for query in state.queries.values()
    ]
    driver = resume(fork)
    driver.post(now, 0, PolicyChosen(now, profile))
    step_s = _step_s(scheduler, horizon_s)
    until_s = now
    while driver.unfinished and until_s < now + horizon_s:
        until_s = min(now + horizon_s, until_s + step_s)
        driver.run(until_s)
        if state.next_launch - before > most_launches or not driver.has_more:
            break
        step_s *= 2
    ends_s = {**driver.ends, **_rest(fork, max(until_s, state.now))}
    queries = tuple(
        QueryEnd(query, submit_s, ends_s.get(query, math.inf), task_s, deadline_s)
        for query, submit_s, task_s, deadline_s in active
        if query in ends_s
    )
    leases_s = _leases(scheduler, fork)
    return Trial(
        name,
        Schedule(queries, leases_s),
        state.next_launch - before,
        not driver.unfinished,
        time.perf_counter() - began,
    )


def _step_s(scheduler: Scheduler, horizon_s: float) -> float:
    """How far to go at first: the work of the queue over the slots, or less."""
    state = scheduler.state
    left_s = sum(query.left_s for query in state.queries.values())
    return min(horizon_s, max(1.0, left_s / max(1, state.total_slots)))


def _rest(fork: Scheduler, from_s: float) -> dict[str, float]:
    """When those would end that are still there, the least work first on all slots."""
    ends_s = {}
    slots = max(1, fork.state.total_slots)
    at_s = from_s
    for query in sorted(fork.state.queries.values(), key=lambda query: (query.left_s, query.id)):
        at_s += query.left_s / slots
        ends_s[query.id] = max(at_s, from_s + query.alone_s * query.left_s / (query.total_s or 1.0))
    return ends_s


def _leases(scheduler: Scheduler, fork: Scheduler) -> tuple[float, ...]:
    """For how long each node would be leased from now on."""
    span_s = fork.state.now - scheduler.state.now
    return tuple(span_s for _ in fork.state.nodes)
