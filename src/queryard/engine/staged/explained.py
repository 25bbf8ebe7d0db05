"""A staged plan as an explanation, with what is expected of its jobs and what they did."""

from __future__ import annotations

import math
from collections.abc import Mapping

from queryard.estimate.expected import Expected, around
from queryard.estimate.work import SPREADS
from queryard.results.explanation import Explanation
from queryard.results.job_tree import ExplainedJob
from queryard.sql.planner.plan import StagedJob, StagedPlan

from .actuals import JobActuals
from .times import task_seconds

# Squared errors of logarithms: sizes of jobs are within a factor of 3 in 90 of 100 cases, times by
# bytes typically within the factor that holds for native queries.
SIZE_DOUBT = (math.log(3.0) / 1.645) ** 2
TIME_DOUBT = (math.log(SPREADS["bytes"]) / 0.6745) ** 2
TEMPLATE_DOUBT = (math.log(SPREADS["template"]) / 0.6745) ** 2

TaskSeconds = Mapping[str, tuple[float, float | None]]
"""What a map task and a reduce task of each job take (None: it has none)."""


def staged_explanation(
    plan: StagedPlan,
    actuals: Mapping[str, JobActuals] | None = None,
    seconds: TaskSeconds | None = None,
) -> Explanation:
    """The jobs of a staged plan, with what they did if they ran.

    `seconds` are those of tasks where they are known better than by the bytes they read.
    """
    jobs = []
    usual = task_seconds(plan)
    for job in plan.jobs:
        done = (actuals or {}).get(job.name)
        ran = done is not None and done.tasks_done > 0
        map_s, reduce_s = (seconds or usual)[job.name]
        known = seconds is not None and seconds[job.name] != usual[job.name]
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
                rows_expected=around(job.rows_expected, SIZE_DOUBT, 1.0),
                bytes_expected=around(job.bytes_expected, SIZE_DOUBT),
                seconds_expected=around(work_s, TEMPLATE_DOUBT if known else TIME_DOUBT),
                memory_expected=_memory(job),
                rows=float(done.rows) if done is not None and ran else None,
                bytes=float(done.bytes) if done is not None and ran else None,
                seconds=done.seconds if done is not None and ran else None,
            )
        )
    return Explanation(plan.sql, "staged", tuple(jobs))


def _memory(job: StagedJob) -> Expected:
    """The rows that its tasks leave for one another and for other jobs."""
    return around(job.shuffle_bytes_expected + job.bytes_expected, SIZE_DOUBT)
