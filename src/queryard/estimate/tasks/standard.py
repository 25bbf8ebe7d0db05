"""POSUM's Standard predictor: seconds per byte that a task reads."""

from __future__ import annotations

import copy
from operator import attrgetter
from typing import Literal, Self

from queryard.core.model import MAP

from .model import Seen, TaskFeatures
from .tallies import PAST_JOBS, Tallies

_MAP_S, _MAP_RATE = attrgetter("map_s"), attrgetter("map_rate")
_REDUCE_RATE = attrgetter("reduce_rate")


class Standard:
    """Maps d·ρ_map on their own input; reduces f·d·ρ_reduce, past rates before the job's own.

    POSUM eq. 3.1, with the amendment of its §5.4.1 for maps; `maps="mean"` is the printed rule,
    the job's mean map time once one has ended. f is the selectivity of the maps. d is printed as
    the mean split, `share="split"`; here it is the input of all maps over the number of reduces.
    Without a past of reduces the rate of maps is taken. The past is other jobs of the class, else
    of the tenant, each with equal weight. A prediction costs O(past jobs).

    >>> standard = Standard()
    >>> seen = TaskFeatures("a", "map", "sort", input_bytes=100.0)
    >>> standard.learn(Seen(seen, 4.0, output_bytes=50.0))
    >>> standard.predict(TaskFeatures("b", "map", "sort", input_bytes=200.0))
    8.0
    >>> standard.predict(TaskFeatures("b", "reduce", "sort", map_bytes=400.0, reduces=2))
    4.0
    """

    def __init__(
        self,
        maps: Literal["rate", "mean"] = "rate",
        share: Literal["reduces", "split"] = "reduces",
        past_jobs: int = PAST_JOBS,
    ) -> None:
        self._maps = maps
        self._share = share
        self.tallies = Tallies(past_jobs)

    def learn(self, seen: Seen) -> None:
        self.tallies.add(seen)

    def predict(self, task: TaskFeatures) -> float | None:
        return self.map_s(task) if task.kind == MAP else self.reduce_s(task)

    def forget(self, job: str) -> None:
        """It counts among past jobs."""

    def fork(self) -> Self:
        fork = copy.copy(self)
        fork.tallies = self.tallies.fork()
        return fork

    def map_s(self, task: TaskFeatures) -> float | None:
        tallies = self.tallies
        if self._maps == "mean" and (mean := tallies.own(task, _MAP_S)) is not None:
            return mean
        rate = tallies.own(task, _MAP_RATE)
        if rate is None:
            rate = tallies.past(task, _MAP_RATE)
        if rate is None or task.input_bytes is None:
            return None
        return task.input_bytes * rate

    def reduce_s(self, task: TaskFeatures) -> float | None:
        tallies = self.tallies
        rate = tallies.past(task, _REDUCE_RATE)
        if rate is None:
            rate = tallies.own(task, _REDUCE_RATE)
        if rate is None:
            rate = tallies.own(task, _MAP_RATE)
        if rate is None:
            rate = tallies.past(task._replace(kind=MAP), _MAP_RATE)
        input_bytes = self.reduce_bytes(task)
        return None if rate is None or input_bytes is None else input_bytes * rate

    def reduce_bytes(self, task: TaskFeatures) -> float | None:
        if self._share == "reduces":
            return self.tallies.input_bytes(task)
        selectivity = self.tallies.selectivity(task)
        if selectivity is None or task.map_bytes is None or not task.map_tasks:
            return None
        return selectivity * task.map_bytes / task.map_tasks
