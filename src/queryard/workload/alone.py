"""How long a query would take with the cluster to itself, by arithmetic.

A deadline is a multiple of this time, so generators need it before anything is simulated.
`queryard.sim.alone_times` runs the query instead, with all the conditions of a run.
"""

from __future__ import annotations

from collections.abc import Sequence

from queryard.core.model import Job, Node, Query

from .model import Arrival, JobTruth


def capacity_slots(nodes: Sequence[Node]) -> float:
    """Core-seconds a cluster gives in a second: its slots, each by its node's map speed."""
    return sum(node.slots * node.map_speed for node in nodes)


def alone_time_s(arrival: Arrival, slots: float) -> float:
    """The longer of the critical path through the jobs and all work spread over all slots.

    A job takes its maps in full waves, then its reduces in full waves.

    >>> from queryard.core.model import Phase
    >>> q = Query("q", (Job("a", map=Phase(4)), Job("b", upstream=("a",), map=Phase(1))))
    >>> truth = {"a": JobTruth(map_s=10.0), "b": JobTruth(map_s=5.0)}
    >>> alone_time_s(Arrival(q, truth), slots=2)
    25.0
    """
    ends: dict[str, float] = {}
    for job in jobs_in_order(arrival.query):
        start_s = max((ends[name] for name in job.upstream), default=0.0)
        truth = arrival.truth[job.name]
        ends[job.name] = start_s + _job_s(job, truth, slots, arrival.query.target_error)
    return max(max(ends.values()), arrival.work_s / slots)


def jobs_in_order(query: Query) -> list[Job]:
    """The jobs, each after all those it waits for."""
    ordered: dict[str, Job] = {}
    while len(ordered) < len(query.jobs):
        for job in query.jobs:
            if job.name not in ordered and all(name in ordered for name in job.upstream):
                ordered[job.name] = job
    return list(ordered.values())


def _job_s(job: Job, truth: JobTruth, slots: float, target_error: float | None) -> float:
    if job.divisible is not None:
        served_by = min(job.divisible.width, slots)
        batches = truth.batches_run(job.divisible.batches, target_error)
        overhead_s = truth.batch_overhead_s * batches
        work_s = truth.total_work_s(job, target_error)
        return work_s / truth.speedup.speed(served_by) + overhead_s
    maps_s = _waves(job.map.tasks, slots) * truth.map_s if job.map else 0.0
    per_reduce_s = truth.shuffle_s + truth.merge_s + truth.reduce_s
    return maps_s + (_waves(job.reduce.tasks, slots) * per_reduce_s if job.reduce else 0.0)


def _waves(tasks: int, slots: float) -> int:
    return -int(-tasks // max(1, int(slots)))
