"""What would become of the queue under each candidate: forks, simulated with estimates as truth,
and with those who may come.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from random import Random
from typing import Any, NamedTuple

from queryard.core.entities import JobState
from queryard.core.events import EstimateChanged, PolicyChosen
from queryard.core.scheduler import Scheduler
from queryard.policies import for_arrivals
from queryard.sim.driver import SimDriver
from queryard.sim.forecast import resume
from queryard.workload.model import Arrival

from . import queue
from .scores import QueryEnd, Schedule

Profile = Mapping[str, Any]
# Without an end in sight, a candidate is followed for so many launches.
MOST_LAUNCHES = 200_000


class Worlds(NamedTuple):
    """In how many worlds a candidate is tried out, and how far estimates are off in them.

    In the first one all estimates of the queue are right. In each other every job of the queue
    takes a factor of what is expected, drawn for that world (log-normal, of this spread), and the
    same for all candidates: who relies on estimates too much does worse there. Some may have been
    tried out before; it then begins `since` another.
    """

    number: int = 1
    doubt: float = 0.0
    since: int = 0


RIGHT = Worlds()


class Coming(NamedTuple):
    """A query that may come; what it will take, and by name what will be told of its jobs."""

    arrival: Arrival
    told: Mapping[str, EstimateChanged]

    def tell(self, now: float) -> list[EstimateChanged]:
        query = self.arrival.query
        return [
            told._replace(time_s=now, job=query.job_id(name)) for name, told in self.told.items()
        ]


# The first step is this part of what the queue will take; each is twice the one before.
STEPS = 32
# Where only timers ring for so many steps, nothing else will happen: no node is left, say.
IDLE_STEPS = 10


@dataclass(frozen=True, slots=True)
class Trial:
    """What a candidate would make of the queue, world by world, and what it took to find out."""

    name: str
    schedules: tuple[Schedule, ...]
    launches: int
    complete: bool
    wall_s: float

    @property
    def schedule(self) -> Schedule:
        """The one in the world in which all estimates of the queue are right."""
        return self.schedules[0]


def try_out(
    scheduler: Scheduler,
    candidates: Mapping[str, Profile],
    *,
    horizon_s: float = math.inf,
    most_launches: int = MOST_LAUNCHES,
    worlds: Worlds = RIGHT,
    coming: Sequence[Sequence[Coming]] = (),
    rest: Callable[[], None] = lambda: None,
) -> list[Trial]:
    """Simulate every candidate from here to the end of the queue and of all who come, or to a
    horizon.

    In every world those arrive who are `coming` there, and are part of its schedule. What has not
    ended by the horizon ends after it, in the order of the work that is left. `rest` is called now
    and then, for whoever must not take a whole core.
    """
    trials = []
    for name, profile in candidates.items():
        began = time.perf_counter()
        ran: list[_Ran] = []
        if not any(coming):
            profile = _for_this_queue(profile)
        for number in range(worlds.since, worlds.number):
            luck = partial(_luck, number, worlds.doubt) if number else _certain
            joining = coming[number] if coming else ()
            ran.append(_run(scheduler, profile, horizon_s, most_launches, rest, luck, joining))
        trials.append(
            Trial(
                name,
                tuple(world.schedule for world in ran),
                sum(world.launches for world in ran),
                all(world.complete for world in ran),
                time.perf_counter() - began,
            )
        )
    return trials


def _for_this_queue(profile: Profile) -> Profile:
    """Without the parts that are for others, where nobody else arrives."""
    others = for_arrivals(profile)
    return {decision: given for decision, given in profile.items() if decision not in others}


def _certain(job: JobState) -> float:
    return 1.0


def _luck(world: int, doubt: float, job: JobState) -> float:
    """What a job takes in a world, of what is expected of it: the same in every decision of a run,
    so that none is taken back for another draw.
    """
    return _drawn(f"{world}:{job.id}:{job.query.submit_s}", doubt)


@lru_cache(maxsize=1 << 14)  # every candidate asks for it
def _drawn(seed: str, doubt: float) -> float:
    return Random(seed).lognormvariate(0.0, doubt)


class _Ran(NamedTuple):
    schedule: Schedule
    launches: int
    complete: bool


def _run(
    scheduler: Scheduler,
    profile: Profile,
    horizon_s: float,
    most_launches: int,
    rest: Callable[[], None],
    luck: Callable[[JobState], float],
    coming: Sequence[Coming],
) -> _Ran:
    fork = scheduler.fork()
    state = fork.state
    now = state.now
    before = state.next_launch
    active = [
        (query.id, query.spec.submit_s, query.total_s, query.spec.deadline_s)
        for query in state.queries.values()
    ]
    driver = resume(fork, luck=luck)
    telling = {of.arrival.query.id: of for of in coming}
    driver.estimates = lambda now, arrival: telling[arrival.query.id].tell(now)
    for arrival, _ in coming:
        query = arrival.query
        driver.add_arrival(arrival)
        active.append((query.id, query.submit_s, arrival.work_s, query.deadline_s))
    driver.post(now, 0, PolicyChosen(now, profile))
    reached_s = now
    step_s = min(horizon_s, max(1e-3, queue.takes_s(state) / STEPS))
    for at_s in steps(driver, now, step_s, now + horizon_s):
        reached_s = at_s
        rest()
        if state.next_launch - before > most_launches:
            break
    ends_s = {**driver.ends, **_ends_after(fork, max(reached_s, state.now), coming)}
    queries = tuple(
        QueryEnd(query, submit_s, ends_s[query], task_s, deadline_s)
        for query, submit_s, task_s, deadline_s in active
        if query in ends_s
    )
    # Nodes stay until the last of these queries has ended.
    last_s = max((query.end_s for query in queries), default=now)
    schedule = Schedule(queries, driver.stays_s(last_s))
    return _Ran(schedule, state.next_launch - before, not driver.unfinished)


def steps(
    driver: SimDriver, from_s: float, step_s: float, until_s: float = math.inf
) -> Iterator[float]:
    """Run a simulation until all queries have ended, or none ever will; the time of each step."""
    idle = 0
    while driver.unfinished and from_s < until_s and idle < IDLE_STEPS and driver.has_more:
        from_s = min(until_s, from_s + step_s)
        driver.run(from_s)
        yield from_s
        idle = idle + 1 if driver.only_rings else 0
        step_s *= 2


def _ends_after(fork: Scheduler, from_s: float, coming: Sequence[Coming]) -> dict[str, float]:
    """When those would end that are still there, the least work first on all slots.

    Those who are still to come are served after them, as they come.
    """
    ends_s = {}
    slots = max(1, fork.state.total_slots)
    at_s = from_s
    for query in sorted(fork.state.queries.values(), key=lambda query: (query.left_s, query.id)):
        at_s += query.left_s / slots
        ends_s[query.id] = max(at_s, from_s + query.alone_left_s)
    for arrival, _ in coming:
        submit_s = arrival.query.submit_s
        if submit_s > from_s:
            at_s = max(at_s, submit_s) + arrival.work_s / slots
            longest_s = max(max(of.map_s, of.reduce_s) for of in arrival.truth.values())
            ends_s[arrival.query.id] = max(at_s, submit_s + longest_s)
    return ends_s
