"""When queries will start and end: a fork of the live state, simulated forward.

In the fork every estimate is right: tasks take their expected time, running tasks need what is left
of it, and no query arrives.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from queryard.core.commands import Grant, Launch
from queryard.core.events import PolicyChosen
from queryard.core.journal import Journal, Step
from queryard.core.model import JobId
from queryard.core.scheduler import Scheduler

from .coarse import coarsen, longer_turns, look_every_s
from .conditions import Conditions
from .driver import SimDriver
from .truth import Truth, believed


@dataclass(frozen=True, slots=True)
class Forecast:
    """When a query is expected to start and to end; None: not within the horizon."""

    query: str
    start_s: float | None
    end_s: float | None


class Forecasts(dict[str, Forecast]):
    """The forecast of each active query; what lies beyond `until_s` is None.

    It is `cut_off` if the limit was reached before the horizon, or the end of all queries, was.
    """

    def __init__(
        self, found: Mapping[str, Forecast], until_s: float = math.inf, cut_off: bool = False
    ) -> None:
        super().__init__(found)
        self.until_s = until_s
        self.cut_off = cut_off


@dataclass(frozen=True, slots=True)
class Limit:
    """What a forecast may cost: decisions, and seconds by a clock handed in.

    The clock is one of processor time, such as `time.thread_time`, or of a test.
    """

    steps: int = sys.maxsize
    seconds: float = math.inf
    clock: Callable[[], float] = lambda: 0.0


UNLIMITED = Limit()
# How many decisions are made between two looks at the clock.
SLICE = 16


def forecast(
    scheduler: Scheduler,
    *,
    profile: Mapping[str, Any] | None = None,
    horizon_s: float = math.inf,
    conditions: Conditions | None = None,
    limit: Limit = UNLIMITED,
) -> Forecasts:
    """Expected start and end of every active query, under this policy or another.

    `conditions` are those of an ideal world unless they are known to differ. Over a long queue
    drifting orders and turns are looked at less often than the kernel would (`coarse`). Where the
    `limit` is reached, what was found until then is returned.
    """
    began_s = limit.clock()
    fork = scheduler.fork()
    every_s = look_every_s(fork.state)
    coarsen(fork, every_s)
    conditions = conditions or Conditions()
    if every_s > conditions.progress_every_s:
        conditions = replace(conditions, progress_every_s=every_s)
    starts = {
        query.id: query.started_s
        for query in fork.state.queries.values()
        if query.started_s is not None
    }
    active = list(fork.state.queries)
    driver = resume(fork, conditions)
    fork.journal = journal = Journal()
    if profile is not None:
        chosen = PolicyChosen(fork.state.now, longer_turns(profile, every_s))
        driver.post(fork.state.now, 0, chosen)
    until_s = fork.state.now + horizon_s
    steps = limit.steps
    cut_off = False
    while driver.next_s <= until_s and driver.next_s < math.inf:
        if steps <= 0 or limit.clock() - began_s >= limit.seconds:
            cut_off = True
            break
        driver.run(until_s, min(SLICE, steps))
        steps -= SLICE
        for step in journal.steps:
            _note_starts(step, starts)
        journal.steps.clear()
    found = {q: Forecast(q, starts.get(q), driver.ends.get(q)) for q in active}
    return Forecasts(found, fork.state.now if cut_off else until_s, cut_off)


def _note_starts(step: Step, starts: dict[str, float]) -> None:
    """Which queries were given their first slot in a step."""
    for command in step.commands:
        if isinstance(command, Launch):
            for task in command.tasks:
                starts.setdefault(JobId.of(task.job).query, step.time_s)
        elif isinstance(command, Grant):
            starts.setdefault(JobId.of(command.job).query, step.time_s)


def resume(fork: Scheduler, conditions: Conditions | None = None) -> SimDriver:
    """A driver that goes on from the middle of a run, taking estimates for the truth."""
    truth = Truth(conditions or Conditions(), seed=0, is_believed=True)
    for query in fork.state.queries.values():
        for job in query.jobs:
            if not job.done:
                truth.add(job.id, job.spec, believed(job)).read(table for table, _ in job.scanned)
    truth.believe_kept(fork.state.kept)
    driver = SimDriver(fork, truth)
    driver.resume()
    return driver
