"""What tasks of staged queries take: the fitted model, at the pace of their job in its template."""

from __future__ import annotations

import copy
import math
from collections import OrderedDict, deque
from typing import Any

from queryard.core.model import MAP, REDUCE, Kind
from queryard.estimate.jobs import JobSizes, TaskTimes

from .planned import DOUBT, PlannedJob

# How many queries of a template count, and how many jobs of templates.
LATEST, MOST_JOBS = 8, 10_000


class StagedTimes:
    """Learns from phases of jobs that have ended, for jobs of which sizes are planned.

    A pace is how much longer a job's tasks took than the model says by now, in the latest queries
    of the same template. Jobs without a class have none.

    >>> from queryard.estimate.jobs import PhaseSizes
    >>> times = StagedTimes()
    >>> planned = PlannedJob(0.0, {}, 0.0, 1.0, None, JobSizes("join", PhaseSizes(1, 1e9)))
    >>> usual_s = times.timed("template/j1", planned).map_s
    >>> for _ in range(8):
    ...     times.learn("template/j1", "map", planned.sizes, 5 * usual_s)
    >>> 4 < times.timed("template/j1", planned).map_s / usual_s < 6
    True
    """

    def __init__(self) -> None:
        self._model = TaskTimes()
        self._latest: OrderedDict[tuple[str, Kind], deque[tuple[JobSizes, float]]] = OrderedDict()

    def fork(self) -> StagedTimes:
        return copy.deepcopy(self)

    def to_state(self) -> dict[str, Any]:
        """What the model has learnt, as plain data; paces of templates are not part of it."""
        return self._model.to_state()

    def take_state(self, state: Any) -> None:
        """Go on from what such a model has learnt."""
        self._model.take_state(state)

    def timed(self, class_name: str, job: PlannedJob) -> PlannedJob:
        """The job with the seconds that are expected of its tasks by now."""
        sizes = job.sizes
        if sizes is None:
            return job
        map_s = self._seconds(class_name, MAP, sizes)
        reduce_s = None if sizes.reduce is None else self._seconds(class_name, REDUCE, sizes)
        fixed_s = self._model.fixed_seconds(sizes)
        return job._replace(map_s=map_s, reduce_s=reduce_s, fixed_s=fixed_s)

    def doubt(self, class_name: str, job: PlannedJob) -> float | None:
        """The expected squared error of the logarithm of what all tasks of a job take.

        By how the model has done for such tasks, and by how paces of its template differ. Errors of
        both phases run the same way.
        """
        if job.sizes is None:
            return None
        phases = [(MAP, job.sizes.map.tasks * job.map_s)]
        if job.sizes.reduce is not None:
            phases.append((REDUCE, job.sizes.reduce.tasks * (job.reduce_s or 0.0)))
        total_s = sum(seconds for _, seconds in phases)
        if total_s <= 0:
            return None
        deviations = (
            seconds * math.sqrt(self._doubt_of(class_name, kind, job.sizes))
            for kind, seconds in phases
        )
        return (sum(deviations) / total_s) ** 2

    def learn(self, class_name: str, kind: Kind, sizes: JobSizes, seconds: float) -> None:
        """All tasks of a phase have ended, in so many seconds in the mean."""
        if seconds <= 0:
            return
        if class_name:
            key = (class_name, kind)
            self._latest.setdefault(key, deque(maxlen=LATEST)).append((sizes, seconds))
            self._latest.move_to_end(key)
            if len(self._latest) > MOST_JOBS:
                self._latest.popitem(last=False)
        self._model.learn(sizes, kind, seconds)

    def _seconds(self, class_name: str, kind: Kind, sizes: JobSizes) -> float:
        paces = self._paces(class_name, kind)
        pace = math.exp(sum(paces) / (len(paces) + DOUBT))
        return pace * self._model.task_seconds(sizes, kind)

    def _doubt_of(self, class_name: str, kind: Kind, sizes: JobSizes) -> float:
        """The model's own counts like so many paces as differ by that much."""
        paces = self._paces(class_name, kind)
        mean = sum(paces) / (len(paces) + DOUBT)
        errors = sum((pace - mean) ** 2 for pace in paces)
        return (DOUBT * self._model.doubt(sizes, kind) + errors) / (len(paces) + DOUBT)

    def _paces(self, class_name: str, kind: Kind) -> list[float]:
        return [
            math.log(seconds / self._model.task_seconds(of_past, kind))
            for of_past, seconds in self._latest.get((class_name, kind), ())
        ]
