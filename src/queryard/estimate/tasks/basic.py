"""POSUM's Basic predictor: a task takes what tasks of its kind have taken on average."""

from __future__ import annotations

import copy
from operator import attrgetter

from queryard.core.model import MAP

from .model import Seen, TaskFeatures
from .tallies import PAST_JOBS, Tallies

_MAP_S, _REDUCE_S = attrgetter("map_s"), attrgetter("reduce_s")


class Basic:
    """The mean of its kind, from this job, else from past jobs of its class, else of its tenant.

    POSUM §3.2. Deviation: a job counts among the past of others from its first task on, not only
    when it has ended. A prediction costs O(past jobs).

    >>> basic = Basic()
    >>> basic.learn(Seen(TaskFeatures("a", "map", "sort"), 4.0))
    >>> basic.predict(TaskFeatures("b", "map", "sort"))
    4.0
    >>> basic.predict(TaskFeatures("b", "reduce", "sort"))
    """

    def __init__(self, past_jobs: int = PAST_JOBS) -> None:
        self._tallies = Tallies(past_jobs)

    def learn(self, seen: Seen) -> None:
        self._tallies.add(seen)

    def predict(self, task: TaskFeatures) -> float | None:
        pick = _MAP_S if task.kind == MAP else _REDUCE_S
        own = self._tallies.own(task, pick)
        return self._tallies.past(task, pick) if own is None else own

    def forget(self, job: str) -> None:
        """It counts among past jobs."""

    def fork(self) -> Basic:
        fork = copy.copy(self)
        fork._tallies = self._tallies.fork()
        return fork
