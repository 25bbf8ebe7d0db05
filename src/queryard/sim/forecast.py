"""When queries will start and end: a fork of the live state, simulated forward.

The fork lives in a world in which every estimate is right: tasks take what is expected of
them, those running need what is left of that, and nobody new arrives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from queryard.core.commands import Grant, Launch
from queryard.core.entities import JobState
from queryard.core.events import PolicyChosen
from queryard.core.journal import Journal
from queryard.core.model import JobId
from queryard.core.scheduler import Scheduler

from .conditions import Conditions
from .driver import SimDriver
from .truth import Truth, believed


@dataclass(frozen=True, slots=True)
class Forecast:
    """When a query is expected to start and to end; None: not within the horizon."""

    query: str
    start_s: float | None
    end_s: float | None


def forecast(
    scheduler: Scheduler,
    *,
    profile: Mapping[str, Any] | None = None,
    horizon_s: float = math.inf,
    conditions: Conditions | None = None,
) -> dict[str, Forecast]:
    """Expected start and end of every active query, under this policy or another.

    `conditions` are those of an ideal world unless they are known to differ.
    """
    fork = scheduler.fork()
    starts = {
        query.id: query.started_s
        for query in fork.state.queries.values()
        if query.started_s is not None
    }
    active = list(fork.state.queries)
    driver = resume(fork, conditions)
    fork.journal = journal = Journal()
    if profile is not None:
        driver.post(fork.state.now, 0, PolicyChosen(fork.state.now, profile))
    driver.run(fork.state.now + horizon_s)
    for step in journal.steps:
        for command in step.commands:
            if isinstance(command, Launch):
                for task in command.tasks:
                    starts.setdefault(JobId.of(task.job).query, step.time_s)
            elif isinstance(command, Grant):
                starts.setdefault(JobId.of(command.job).query, step.time_s)
    return {q: Forecast(q, starts.get(q), driver.ends.get(q)) for q in active}


def resume(
    fork: Scheduler,
    conditions: Conditions | None = None,
    luck: Callable[[JobState], float] = lambda job: 1.0,
) -> SimDriver:
    """A driver that goes on from the middle of a run, taking estimates for the truth.

    By `luck` a job takes so many times what is expected of it.
    """
    truth = Truth(conditions or Conditions(), seed=0, is_believed=True)
    for query in fork.state.queries.values():
        for job in query.jobs:
            if not job.done:
                expected = believed(job, luck(job))
                truth.add(job.id, job.spec, expected).read(table for table, _ in job.scanned)
    driver = SimDriver(fork, truth)
    driver.resume()
    return driver
