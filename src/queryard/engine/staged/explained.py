"""A staged plan as an explanation, with what is expected of its jobs and what they did."""

from __future__ import annotations

import math
from collections.abc import Mapping

from queryard.estimate.expected import Expected, around
from queryard.estimate.tasks.staged import StagedTimes
from queryard.results.explanation import Explanation
from queryard.results.job_tree import ExplainedJob
from queryard.sql.planner.plan import StagedJob, StagedPlan

from .actuals import JobActuals
from .times import planned_query

# The squared error of the logarithm of sizes: they are within a factor of 3 in 90 of 100 cases.
SIZE_DOUBT = (math.log(3.0) / 1.645) ** 2

TaskSeconds = Mapping[str, tuple[float, float | None]]
"""What a map task and a reduce task of each job take (None: it has none)."""


def staged_explanation(
    plan: StagedPlan,
    actuals: Mapping[str, JobActuals] | None = None,
    seconds: TaskSeconds | None = None,
    doubts: Mapping[str, float] | None = None,
) -> Explanation:
    """The jobs of a staged plan, with what they did if they ran.

    `seconds` are those of tasks, and `doubts` the squared errors of the logarithm of the work of
    jobs, where they are known better than by the bytes they read and before anything was learnt.
    """
    jobs = []
    usual, unlearnt = planned_query(plan).jobs, StagedTimes()
    for job in plan.jobs:
        done = (actuals or {}).get(job.name)
        ran = done is not None and done.tasks_done > 0
        planned = usual[job.name]
        map_s, reduce_s = planned.map_s, planned.reduce_s
        if seconds is not None:
            map_s, reduce_s = seconds[job.name]
        doubt = (doubts or {}).get(job.name)
        if doubt is None:
            doubt = unlearnt.doubt("", planned) or 0.0
        rows = around(job.rows_expected, SIZE_DOUBT, 1.0)
        work_s = job.map_tasks * map_s + job.partitions * (reduce_s or 0.0)
        jobs.append(
            ExplainedJob(
                name=job.name,
                operator=job.operator,
                what=job.description,
                inputs=tuple(job.upstream),
                tables=tuple(found.table for found in job.tables),
                map_tasks=job.map_tasks,
                reduce_tasks=job.partitions,
                rows_expected=_at_most(rows, job.most_rows),
                bytes_expected=_at_most(around(job.bytes_expected, SIZE_DOUBT), job.most_bytes),
                seconds_expected=around(work_s, doubt),
                memory_expected=_memory(job),
                rows=float(done.rows) if done is not None and ran else None,
                bytes=float(done.bytes) if done is not None and ran else None,
                seconds=done.seconds if done is not None and ran else None,
            )
        )
    return Explanation(plan.sql, "staged", tuple(jobs))


def _at_most(expected: Expected, most: float) -> Expected:
    """No interval reaches beyond what a job can leave."""
    return Expected(expected.value, expected.low, min(expected.high, max(expected.value, most)))


def _memory(job: StagedJob) -> Expected:
    """The rows that its tasks leave for one another and for other jobs."""
    return around(job.shuffle_bytes_expected + job.bytes_expected, SIZE_DOUBT)
