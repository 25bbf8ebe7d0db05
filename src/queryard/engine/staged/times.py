"""What the tasks of a staged plan are expected to take, by the bytes they read and leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from queryard.core.model import MAP, REDUCE
from queryard.engine.calibration import known_rates
from queryard.estimate.jobs import JobSizes, PhaseSizes, TaskTimes, balance
from queryard.estimate.tasks.planned import PlannedJob, PlannedQuery
from queryard.sql.planner.plan import ChunkRead, StagedJob, StagedPlan
from queryard.sql.statistics.store import cache_folder


def task_seconds(plan: StagedPlan) -> dict[str, tuple[float, float | None]]:
    """What a map task and a reduce task of each job of a staged plan take (None: it has none).

    By usual prices of what they read and leave, before anything is learnt here.
    """
    usual = TaskTimes()
    return {
        name: (
            usual.task_seconds(sizes, MAP),
            None if sizes.reduce is None else usual.task_seconds(sizes, REDUCE),
        )
        for name, sizes in planned_sizes(plan).items()
    }


def planned_query(plan: StagedPlan) -> PlannedQuery:
    """What a staged plan expects of its jobs, to be corrected as its tasks end."""
    seconds, sizes = task_seconds(plan), planned_sizes(plan)
    usual = TaskTimes()
    jobs = {}
    for job in plan.jobs:
        read: dict[str, float] = {}
        for branch in job.branches:
            if isinstance(branch.read, ChunkRead):
                read[branch.read.job] = read.get(branch.read.job, 0.0) + branch.read.bytes_expected
        tables = sum(table.bytes for table in job.tables)
        map_s, reduce_s = seconds[job.name]
        jobs[job.name] = PlannedJob(
            tables,
            read,
            job.bytes_expected,
            map_s,
            reduce_s,
            sizes[job.name],
            usual.fixed_seconds(sizes[job.name]),
            job.most_bytes,
        )
    return PlannedQuery(jobs)


def planned_sizes(plan: StagedPlan) -> dict[str, JobSizes]:
    """What the jobs of a plan are expected to read and leave, on this machine."""
    left = {job.name: job.bytes_expected for job in plan.jobs}
    rates = known_rates(cache_folder() / "rates.json")
    return {
        job.name: sizes_of(job, left, job.side_bytes_expected)._replace(rates=rates)
        for job in plan.jobs
    }


def sizes_of(job: StagedJob, left: Mapping[str, float], sides: Sequence[float]) -> JobSizes:
    """What one job reads and leaves, given what jobs leave and what its maps send to each side."""
    branches = job.branches
    read = sum(left[b.read.job] for b in branches if isinstance(b.read, ChunkRead))
    built = sum(left[name] for name in {name for b in branches for name in b.builds})
    sent = sum(sides) if job.partitions else left[job.name]
    chars = sum(len(b.before) + len(b.after) for b in branches) / len(branches)
    maps = PhaseSizes(job.map_tasks, job.map_scan_bytes, read, built, sent, chars)
    if not job.partitions:
        return JobSizes(job.operator, maps, None, balance(job.map_scan_bytes + read, built))
    built = sum(left[name] for name in job.reduce_builds)
    reduces = PhaseSizes(
        job.partitions, job.reduce_scan_bytes, sent, built, left[job.name], len(job.reduce_sql)
    )
    return JobSizes(job.operator, maps, reduces, balance(max(sides), sent - max(sides)))
