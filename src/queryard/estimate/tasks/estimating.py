"""Estimates of jobs on their way, by a predictor that learns from tasks as they end.

The simulator and live sessions use it alike. A job is estimated when it is submitted, again when
one, two, four, eight … of its tasks have ended, and with all others of its class when so many
tasks of the class have. Of a query with a plan, all jobs that are left are estimated anew when so
many tasks of the query have ended, or all maps or all tasks of one of its jobs: with the bytes that
these have left, and at the pace of the query so far. What is planned counts for a phase until a few
of its own tasks have ended, and begins with what was learnt from the phases of other jobs.

Riders of one read tell what they have left, and nothing of the time of a task alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from queryard.core.commands import Launch
from queryard.core.events import EstimateChanged
from queryard.core.model import MAP, REDUCE, Job, JobId, Kind, Query

from .model import Predictor, Seen, TaskFeatures, class_of
from .planned import PlannedQuery
from .staged import StagedTimes
from .tallies import Average

# So many tasks of a phase tell more of the others than what was planned.
ENOUGH = 3


@dataclass(slots=True)
class _Job:
    """A job on its way, and its tasks as questions to the predictor."""

    spec: Job
    asked: TaskFeatures
    alone: Counter[Kind] = field(default_factory=Counter)
    """How many of its tasks have ended that did not share a read."""
    mapped_s: float = 0.0
    maps: dict[int, float] = field(default_factory=dict)
    reduces: dict[int, float] = field(default_factory=dict)
    """What each task has left that has ended, by its index, for queries with a plan."""
    took: dict[Kind, Average] = field(default_factory=dict)

    def left_bytes(self, kind: Kind) -> dict[int, float]:
        return self.maps if kind == MAP else self.reduces

    def phase_done(self, kind: Kind) -> bool:
        if kind == MAP:
            return self.spec.map is not None and len(self.maps) == self.spec.map.tasks
        return len(self.reduces) == self.spec.reduces

    @property
    def is_done(self) -> bool:
        return self.phase_done(MAP if self.spec.reduce is None else REDUCE)


@dataclass(slots=True)
class _Followed:
    """A query with a plan, and how many of its tasks have ended."""

    plan: PlannedQuery
    ended: int = 0


class Report(NamedTuple):
    """What a node says of a task that has ended there, as far as it knows.

    `merge_s` and `rest_s` are what a reduce took after its shuffle, if it has such parts. What it
    took counts as on a node of the speed 1. `rider_bytes` is what each rider of a shared read has
    left that ended well, by its job.
    """

    output_bytes: float | None = None
    is_local: bool | None = None
    merge_s: float | None = None
    rest_s: float | None = None
    speed: float = 1.0
    rider_bytes: Mapping[str, float] | None = None


class TaskEstimates:
    """What a predictor says of the jobs of active queries."""

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        self._jobs: dict[str, _Job] = {}
        self._queries: dict[str, list[str]] = {}
        self._classes: dict[str, dict[str, _Job]] = {}
        self._ended: dict[str, int] = {}
        self._followed: dict[str, _Followed] = {}
        self._times = StagedTimes()

    def fork(self) -> Self:
        """One that knows as much, and has no queries yet."""
        fork = type(self)(self._predictor.fork())
        fork._ended = dict(self._ended)
        fork._times = self._times.fork()
        return fork

    def submitted(
        self, now: float, query: Query, plan: PlannedQuery | None = None
    ) -> list[EstimateChanged]:
        """A query was submitted; divisible work is not made of tasks and stays unknown."""
        events = []
        if plan is not None:
            timed = {
                spec.name: self._times.timed(class_of(query, spec), plan.jobs[spec.name])
                for spec in query.jobs
            }
            self._followed[query.id] = _Followed(PlannedQuery(timed))
        for spec in query.jobs:
            if spec.map is None:
                continue
            job_id = query.job_id(spec.name)
            job = self._jobs[job_id] = _Job(spec, _question(job_id, query, spec))
            self._queries.setdefault(query.id, []).append(job_id)
            self._classes.setdefault(job.asked.class_name, {})[job_id] = job
            events += self._estimate(now, job_id, job)
        return events

    def doubts(self, query: Query, plan: PlannedQuery) -> dict[str, float]:
        """How doubtful the work of each job of a planned query is: squared errors of logarithms."""
        found = {}
        for spec in query.jobs:
            class_name, job = class_of(query, spec), plan.jobs[spec.name]
            doubt = self._times.doubt(class_name, self._times.timed(class_name, job))
            if doubt is not None:
                found[spec.name] = doubt
        return found

    def ended(self, now: float, launch: Launch, report: Report) -> list[EstimateChanged]:
        """A launch has ended well."""
        if len(launch.tasks) > 1 or report.rider_bytes is not None:
            return self._rode(now, launch, report.rider_bytes or {})
        task = launch.tasks[0]
        job = self._jobs.get(task.job)
        if job is None:
            return []
        seen = _seen(job, launch, now, report)
        if report.speed != 1.0:
            seen = seen._replace(seconds=seen.seconds * report.speed)
        self._predictor.learn(seen)
        job.alone[task.kind] += 1
        query = JobId.of(task.job).query
        if (followed := self._followed.get(query)) is not None:
            followed.plan.took(job.spec.name, task.kind, seen.seconds)
            followed.ended += 1
            job.left_bytes(task.kind)[task.index] = report.output_bytes or 0.0
            job.took.setdefault(task.kind, Average()).add(seen.seconds)
            if self._phase_ended(followed.plan, job, task.kind) or _is_power_of_two(followed.ended):
                return self._estimate_left(now, query)
        kind = job.asked.class_name
        self._ended[kind] = self._ended.get(kind, 0) + 1
        if kind and _is_power_of_two(self._ended[kind]):
            return [
                event
                for job_id, other in self._classes[kind].items()
                for event in self._estimate(now, job_id, other)
            ]
        is_time = _is_power_of_two(job.alone.total())
        return self._estimate(now, task.job, job) if is_time else []

    def _rode(
        self, now: float, launch: Launch, rider_bytes: Mapping[str, float]
    ) -> list[EstimateChanged]:
        """Note what riders have left, and estimate anew where that ends a phase."""
        events = []
        for task in launch.tasks:
            job, left_bytes = self._jobs.get(task.job), rider_bytes.get(task.job)
            if job is None:
                continue
            job.mapped_s = now
            query = JobId.of(task.job).query
            followed = self._followed.get(query)
            if followed is not None and left_bytes is not None:
                job.maps[task.index] = left_bytes
                if self._phase_ended(followed.plan, job, MAP):
                    events += self._estimate_left(now, query)
        return events

    def _phase_ended(self, plan: PlannedQuery, job: _Job, kind: Kind) -> bool:
        """Note what a phase has left, and learn from it, if all its tasks have ended."""
        if not job.phase_done(kind):
            return False
        sizes, mean_s = plan.jobs[job.spec.name].sizes, job.took.pop(kind, Average()).mean
        if sizes is not None and mean_s is not None:
            self._times.learn(job.asked.class_name, kind, sizes, mean_s)
        if kind == MAP and job.spec.reduce is not None:
            job.asked = job.asked._replace(shuffled_bytes=sum(job.maps.values()))
        else:
            plan.finished(job.spec.name, sum(job.left_bytes(kind).values()))
        return True

    def forget(self, query: str) -> None:
        """A query has ended."""
        self._followed.pop(query, None)
        for job_id in self._queries.pop(query, ()):
            job = self._jobs.pop(job_id)
            self._classes[job.asked.class_name].pop(job_id, None)
            self._predictor.forget(job_id)

    def learn_anew(self, predictor: Predictor) -> Callable[[], None]:
        """Forget what ended tasks have taught, in favour of a predictor that knows nothing.

        What it returns gives back what was forgotten, in the place of what was learnt since.
        """
        before = self._predictor, self._times, self._ended
        self._predictor, self._times, self._ended = predictor, StagedTimes(), {}

        def give_back() -> None:
            self._predictor, self._times, self._ended = before

        return give_back

    def learnt(self) -> dict[str, Any]:
        """What ended phases have taught of jobs with a plan, as plain data."""
        return self._times.to_state()

    def recall(self, learnt: Any) -> None:
        """Go on from what phases of earlier sessions have taught."""
        self._times.take_state(learnt)

    def _estimate_left(self, now: float, query: str) -> list[EstimateChanged]:
        """Estimate all jobs of a query that are left."""
        left = [(name, self._jobs[name]) for name in self._queries[query]]
        return [
            event
            for job_id, job in left
            if not job.is_done
            for event in self._estimate(now, job_id, job)
        ]

    def _estimate(self, now: float, job_id: str, job: _Job) -> list[EstimateChanged]:
        """What a task of mean size is predicted to take; nothing while nothing is known."""
        assert job.spec.map is not None
        maps = job.spec.map
        followed = self._followed.get(JobId.of(job_id).query)
        factor = 1.0 if followed is None else followed.plan.size_factor(job.spec.name)
        input_bytes = maps.bytes * factor / maps.tasks
        plan = None if followed is None else followed.plan
        map_s = self._seconds(job, job.asked._replace(input_bytes=input_bytes), plan)
        reduce_s = None
        if job.spec.reduce is not None:
            reduce_s = self._seconds(job, job.asked._replace(kind=REDUCE), plan)
        if map_s is None and reduce_s is None:
            return []
        return [EstimateChanged(now, job_id, map_s, reduce_s)]

    def _seconds(self, job: _Job, asked: TaskFeatures, plan: PlannedQuery | None) -> float | None:
        """What a task is predicted to take; as planned until a few of its phase have ended."""
        planned_s = None if plan is None else plan.seconds(job.spec.name, asked.kind)
        if planned_s is not None and job.alone[asked.kind] < ENOUGH:
            return planned_s
        predicted_s = self._predictor.predict(asked)
        return planned_s if predicted_s is None else predicted_s


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
