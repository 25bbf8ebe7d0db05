"""What would become of the queue under each candidate: a fork of the kernel, simulated to its end
with estimates as truth.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from queryard.core.events import AnswerReported, PolicyChosen, Resumed
from queryard.core.journal import Journal
from queryard.core.scheduler import Scheduler
from queryard.core.state import State
from queryard.policies import for_arrivals
from queryard.sim.conditions import Conditions
from queryard.sim.driver import SimDriver
from queryard.sim.forecast import resume

from .answers import Steps, unsure_by_query
from .arrivals import Expected, as_arrivals, as_one, one_by_one
from .scores import QueryEnd, Schedule

Profile = Mapping[str, Any]
# Without a limit from the caller, a candidate is followed for so many launches.
MOST_LAUNCHES = 200_000
# The first step is this part of the time that the queue takes; each step is twice the one before.
STEPS = 32
# How many decisions are made between two looks at the processor time.
SLICE = 16
# After so many steps with timers only, nothing else will happen: no node is left, for example.
IDLE_STEPS = 10


@dataclass(frozen=True, slots=True)
class Trial:
    """What a candidate would make of the queue, and what the simulation cost."""

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
    most_s: float = math.inf,
    conditions: Conditions | None = None,
    expected: Sequence[Expected] = (),
    rest: Callable[[], None] = lambda: None,
) -> list[Trial]:
    """Simulate every candidate from now to the end of the queue, to a horizon, for so many
    launches, or for `most_s` processor seconds each. A query that has not ended by then ends after
    it, in the order of the work left.

    `conditions` are those of an ideal world unless they are known to differ. Queries that are
    `expected` come meanwhile, and count like those that are there. `rest` is called between steps,
    by a worker that must not use a whole core.
    """
    limits = _Limits(horizon_s, most_launches, most_s, rest)
    return [
        _try_one(scheduler, name, profile, conditions, expected, limits)
        for name, profile in candidates.items()
    ]


class _Limits(NamedTuple):
    """What one trial may cost."""

    horizon_s: float
    most_launches: int
    most_s: float
    rest: Callable[[], None]


def _try_one(
    scheduler: Scheduler,
    name: str,
    profile: Profile,
    conditions: Conditions | None,
    expected: Sequence[Expected],
    limits: _Limits,
) -> Trial:
    began = time.perf_counter()
    over_s = time.process_time() + limits.most_s
    fork = scheduler.fork()
    state = fork.state
    now, before = state.now, state.next_launch
    active = [(query.spec, query.total_s) for query in state.queries.values()]
    answers = _Answers(fork)
    driver = resume(fork, conditions)
    arrivals = as_arrivals(expected, state.total_slots)
    if arrivals:
        driver.estimates = as_one(expected)
    for arrival in arrivals:
        driver.add_arrival(arrival)
    if state.paused_by is not None:
        # In a pause every candidate would look the same: what counts is what comes after it.
        driver.post(now, 0, Resumed(now))
    driver.post(now, 0, PolicyChosen(now, profile if expected else _for_this_queue(profile)))
    reached_s, idle = now, 0
    until_s = now + limits.horizon_s
    step_s = max(1e-3, takes_s(state) / STEPS)
    while driver.unfinished and reached_s < until_s and idle < IDLE_STEPS and driver.has_more:
        reached_s = min(until_s, reached_s + step_s)
        if not _run_to(driver, reached_s, over_s):
            reached_s = driver.now
            break
        limits.rest()
        answers.collect()
        idle = idle + 1 if driver.only_rings else 0
        step_s *= 2
        if state.next_launch - before > limits.most_launches:
            break
    ends_s = {**driver.ends, **_ends_after(fork, max(reached_s, state.now))}
    unsure = answers.by_query()
    queries = tuple(
        QueryEnd(
            query.id,
            query.submit_s,
            ends_s[query.id],
            task_s,
            query.deadline_s,
            query.tenant,
            unsure.get(query.id, ()),
        )
        for query, task_s in active
        if query.id in ends_s
    )
    for each, arrival in zip(expected, arrivals, strict=True):
        query = arrival.query
        if query.id in ends_s:
            end = QueryEnd(
                query.id,
                query.submit_s,
                ends_s[query.id],
                each.work_s,
                query.deadline_s,
                query.tenant,
            )
            queries += tuple(one_by_one(each, end, state.total_slots))
    return Trial(
        name,
        Schedule(queries, _leases_s(driver, queries, now)),
        state.next_launch - before,
        not driver.unfinished,
        time.perf_counter() - began,
    )


class _Answers:
    """What online queries answer in a trial; nothing is noted where there is none."""

    def __init__(self, fork: Scheduler) -> None:
        self._reported: list[AnswerReported] = []
        self._journal: Journal | None = None
        online = [query for query in fork.state.queries.values() if query.spec.kind == "online"]
        if online:
            fork.journal = self._journal = Journal()
        # Answers that are there already count from now on: what was before cannot be helped.
        for job in (job for query in online for job in query.jobs):
            for old in job.answers:
                now = fork.state.now
                told = AnswerReported(now, job.id, old.batch, old.change, old.core_s, old.error)
                self._reported.append(told)

    def collect(self) -> None:
        """Take over what was told since the last time."""
        if self._journal is not None:
            events = (event for step in self._journal.steps for event in step.events)
            self._reported += [event for event in events if isinstance(event, AnswerReported)]
            self._journal.steps.clear()

    def by_query(self) -> dict[str, Steps]:
        self.collect()
        return unsure_by_query(self._reported) if self._reported else {}


def _run_to(driver: SimDriver, until_s: float, over_s: float) -> bool:
    """Simulate to a time; False if the processor time was over before."""
    if over_s == math.inf:
        driver.run(until_s)
        return True
    while driver.unfinished and driver.next_s <= until_s and driver.next_s < math.inf:
        if time.process_time() >= over_s:
            return False
        driver.run(until_s, SLICE)
    return True


def _for_this_queue(profile: Profile) -> Profile:
    """The profile without parts that serve later arrivals only: no query arrives in a trial."""
    later = for_arrivals(profile)
    return {decision: given for decision, given in profile.items() if decision not in later}


def _leases_s(driver: SimDriver, queries: tuple[QueryEnd, ...], now: float) -> tuple[float, ...]:
    """Nodes stay until the last of these queries has ended."""
    return driver.stays_s(max((query.end_s for query in queries), default=now))


def _ends_after(fork: Scheduler, from_s: float) -> dict[str, float]:
    """The ends of queries that are left, the least work first on all slots."""
    ends_s = {}
    slots = max(1, fork.state.total_slots)
    at_s = from_s
    for query in sorted(fork.state.queries.values(), key=lambda query: (query.left_s, query.id)):
        at_s += query.left_s / slots
        ends_s[query.id] = max(at_s, from_s + query.alone_left_s)
    return ends_s


def work_s(state: State) -> float:
    """Expected core-seconds of the queue without a result yet."""
    return sum(query.left_s for query in state.queries.values())


def takes_s(state: State) -> float:
    """How long the queue keeps all slots busy."""
    return work_s(state) / max(1, state.total_slots)


def is_contended(state: State) -> bool:
    """Whether a task is ready without a slot, or more tasks are to come than slots are free."""
    free = sum(node.free for node in state.nodes.values())
    for job in state.jobs.values():
        if job.spec.divisible is not None:
            return True
        for phase in (job.map, job.reduce):
            if phase is not None and phase.pending:
                free -= phase.pending
                if free < 0 or (not job.blockers and (phase is job.map or job.maps_done)):
                    return True
    return False
