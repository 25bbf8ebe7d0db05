"""What is expected of jobs and queries: what was estimated, else what was observed."""

from __future__ import annotations

import math

from ..entities import JobState, QueryState
from ..errors import InvalidEvent
from ..events import EstimateChanged
from ..means import Mean
from ..model import MAP, REDUCE, Kind
from ..state import State

# What a task is expected to take while nothing whatever is known.
UNKNOWN_TASK_S = 1.0


def changed(state: State, event: EstimateChanged) -> None:
    job = state.jobs.get(event.job)
    if job is None:
        return  # an estimate that came after the end
    for value in (event.map_s, event.reduce_s, event.work_s, event.make_s, event.ride_s):
        if value is not None and not 0 <= value < math.inf:
            raise InvalidEvent(f"{event!r}: an estimate is a finite number of at least 0")
    if event.map_s is not None:
        job.map_s, job.map_known, job.map_guessed = event.map_s, True, False
    if event.reduce_s is not None:
        job.reduce_s, job.reduce_known, job.reduce_guessed = event.reduce_s, True, False
    if event.work_s is not None:
        job.work_s, job.work_known = event.work_s, True
    if event.make_s is not None:
        job.make_s = event.make_s
    if event.ride_s is not None:
        job.ride_s = event.ride_s
    if event.speedup is not None:
        _bend(state, job, event)
    update_totals(state, job.query)
    state.notes.touched.append(job)


def _bend(state: State, job: JobState, event: EstimateChanged) -> None:
    """A divisible job has another speed-up curve from now on."""
    if job.spec.divisible is None:
        raise InvalidEvent(f"{event!r}: only divisible jobs have a speed-up; this one has tasks")
    assert event.speedup is not None
    job.speedup = event.speedup
    if job.speedup.is_perfect:
        state.curved.pop(job.id, None)
    else:
        state.curved[job.id] = job


def class_mean(state: State, job: JobState, kind: Kind) -> Mean:
    """The observed mean of the same job in queries of the same class."""
    key = (job.query.spec.class_name, job.spec.name, kind)
    mean = state.class_means.get(key)
    if mean is None:
        mean = state.class_means[key] = Mean()
    return mean


def expect(state: State, query: QueryState) -> None:
    """What is expected of a new query, once all that its instant brought is known."""
    for job in query.jobs:
        if job.map is not None and not job.map_known:
            seen_s = _seen_s(state, job, MAP)
            job.map_guessed = seen_s is None
            job.map_s = UNKNOWN_TASK_S if seen_s is None else seen_s
        if job.reduce is not None and not job.reduce_known:
            seen_s = _seen_s(state, job, REDUCE)
            job.reduce_guessed = seen_s is None
            job.reduce_s = UNKNOWN_TASK_S if seen_s is None else seen_s
        if job.spec.divisible is not None and not job.work_known:
            job.work_s = UNKNOWN_TASK_S * job.spec.divisible.batches
    update_totals(state, query)


def _seen_s(state: State, job: JobState, kind: Kind) -> float | None:
    """What the class, else the cluster, has shown, until an estimate is given."""
    mean = state.class_means.get((job.query.spec.class_name, job.spec.name, kind))
    return mean.mean if mean else state.observed_s(kind)


def learn(state: State, job: JobState, kind: Kind, mean_s: float) -> None:
    """Where no estimate was given, the job's own mean takes its place."""
    if kind == MAP and not job.map_known:
        job.map_s, job.map_guessed = mean_s, False
    elif kind != MAP and not job.reduce_known:
        job.reduce_s, job.reduce_guessed = mean_s, False
    else:
        return
    update_totals(state, job.query)
    state.notes.touched.append(job)


def update_totals(state: State, query: QueryState) -> None:
    """Add up what is left of a query, and what lies on its longest path."""
    slots = max(1, state.total_slots)
    jobs = query.jobs
    if len(jobs) == 1:
        job = jobs[0]
        query.left_s = job.left_s
        query.total_s = total_s = job.total_s
        job.level_s = alone_s(state, job, slots)
        query.alone_s = max(job.level_s, total_s / slots)
        return
    query.left_s = sum(job.left_s for job in jobs)
    query.total_s = sum(job.total_s for job in jobs)
    longest = 0.0
    for job in _from_root(query):
        below = job.downstream
        job.depth = 1 + max((down.depth for down in below), default=-1)
        job.tail_work_s = max((d.tail_work_s + d.total_s for d in below), default=0.0)
        job.level_s = alone_s(state, job, slots) + max((d.level_s for d in below), default=0.0)
        longest = max(longest, job.level_s)
    query.alone_s = max(longest, query.total_s / slots)


def _from_root(query: QueryState) -> list[JobState]:
    """The jobs, each after all those that wait for it."""
    waiting = {job.spec.name: len(job.downstream) for job in query.jobs}
    by_name = {job.spec.name: job for job in query.jobs}
    order = [job for job in query.jobs if not job.downstream]
    for job in order:
        for name in job.spec.upstream:
            waiting[name] -= 1
            if not waiting[name]:
                order.append(by_name[name])
    return order


def alone_s(state: State, job: JobState, slots: int) -> float:
    """How long a job is expected to take with all slots that it can use to itself."""
    if job.spec.map is None:
        width = job.spec.divisible.width if job.spec.divisible else 1
        most = max(1, state.host_slots) if job.stays else slots
        return job.work_s / job.speedup.speed(min(most, width))
    seconds = max(job.map_s, job.spec.map.tasks * job.map_s / slots)
    if job.spec.reduce:
        seconds += max(job.reduce_s, job.spec.reduce.tasks * job.reduce_s / slots)
    return seconds
