"""Estimates by a predictor that learns from the tasks of the run, as a live one would.

A job is estimated when it is submitted, and again when 1, 2, 4, 8 … of its tasks have ended. All
jobs of a class are estimated again when 1, 2, 4, 8 … tasks of the class have ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from queryard.core.commands import Launch
from queryard.core.events import EstimateChanged
from queryard.core.model import MAP, REDUCE, Job, Query
from queryard.estimate.tasks import Predictor, Seen, TaskFeatures, class_of
from queryard.workload.model import Arrival


@dataclass(slots=True)
class _Job:
    """An active job, and its tasks as questions to the predictor."""

    spec: Job
    asked: TaskFeatures
    ended: int = 0
    mapped_s: float = 0.0


class Report(NamedTuple):
    """What a node says of a task that has ended there, as far as it knows.

    `merge_s` and `rest_s` are what a reduce took after its shuffle, if it has such parts.
    """

    output_bytes: float | None = None
    is_local: bool | None = None
    merge_s: float | None = None
    rest_s: float | None = None


class Predicting:
    """What a predictor says of the jobs of a simulated run."""

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        self._jobs: dict[str, _Job] = {}
        self._queries: dict[str, list[str]] = {}
        self._classes: dict[str, dict[str, _Job]] = {}
        self._ended: dict[str, int] = {}

    def fork(self) -> Predicting:
        """One that knows as much, and has no queries yet."""
        fork = Predicting(self._predictor.fork())
        fork._ended = dict(self._ended)
        return fork

    def __call__(self, now: float, arrival: Arrival) -> list[EstimateChanged]:
        """A query was submitted; divisible work is not made of tasks and stays unknown."""
        events = []
        for spec in arrival.query.jobs:
            if spec.map is None:
                continue
            job_id = arrival.query.job_id(spec.name)
            job = self._jobs[job_id] = _Job(spec, _question(job_id, arrival.query, spec))
            self._queries.setdefault(arrival.query.id, []).append(job_id)
            self._classes.setdefault(job.asked.class_name, {})[job_id] = job
            events += self._estimate(now, job_id, job)
        return events

    def ended(self, now: float, launch: Launch, report: Report) -> list[EstimateChanged]:
        """A launch has ended well; riders of one read tell nothing of a task alone."""
        if len(launch.tasks) > 1:
            return []
        task = launch.tasks[0]
        job = self._jobs.get(task.job)
        if job is None:
            return []
        self._predictor.learn(_seen(job, launch, now, report))
        job.ended += 1
        kind = job.asked.class_name
        self._ended[kind] = self._ended.get(kind, 0) + 1
        if kind and _is_power_of_two(self._ended[kind]):
            return [
                event
                for job_id, other in self._classes[kind].items()
                for event in self._estimate(now, job_id, other)
            ]
        return self._estimate(now, task.job, job) if _is_power_of_two(job.ended) else []

    def forget(self, query: str) -> None:
        """A query has ended."""
        for job_id in self._queries.pop(query, ()):
            job = self._jobs.pop(job_id)
            self._classes[job.asked.class_name].pop(job_id, None)
            self._predictor.forget(job_id)

    def _estimate(self, now: float, job_id: str, job: _Job) -> list[EstimateChanged]:
        """What a task of mean size is predicted to take; nothing while nothing is known."""
        assert job.spec.map is not None
        maps = job.spec.map
        map_s = self._predictor.predict(job.asked._replace(input_bytes=maps.bytes / maps.tasks))
        reduce_s = None
        if job.spec.reduce is not None:
            reduce_s = self._predictor.predict(job.asked._replace(kind=REDUCE))
        if map_s is None and reduce_s is None:
            return []
        return [EstimateChanged(now, job_id, map_s, reduce_s)]


def _question(job_id: str, query: Query, spec: Job) -> TaskFeatures:
    assert spec.map is not None
    return TaskFeatures(
        job_id,
        MAP,
        class_of(query, spec),
        query.tenant,
        map_bytes=spec.map.bytes,
        map_tasks=spec.map.tasks,
        reduces=spec.reduces,
    )


def _seen(job: _Job, launch: Launch, now: float, report: Report) -> Seen:
    task = launch.tasks[0]
    if task.kind == MAP:
        assert job.spec.map is not None
        job.mapped_s = now
        size_bytes = job.spec.map.size_of(task.index)
        asked = job.asked._replace(input_bytes=size_bytes, is_local=report.is_local)
        return Seen(asked, now - launch.time_s, report.output_bytes)
    # One that is launched early waits for maps, which is no work of its own.
    asked = job.asked._replace(kind=REDUCE, is_first_wave=launch.time_s < job.mapped_s)
    seconds = now - max(launch.time_s, job.mapped_s)
    if report.merge_s is None or report.rest_s is None:
        return Seen(asked, seconds)
    shuffle_s = max(0.0, seconds - report.merge_s - report.rest_s)
    return Seen(asked, seconds, None, shuffle_s, report.merge_s)


def _is_power_of_two(count: int) -> bool:
    return count & (count - 1) == 0
