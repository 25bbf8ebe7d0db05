"""What the jobs of a staged query really did, for EXPLAIN ANALYZE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from queryard.core.model import TaskId
from queryard.sql.planner.plan import StagedPlan

from .task import TaskOutcome


@dataclass(frozen=True, slots=True)
class JobActuals:
    """What a job really did; tasks that ran twice count once."""

    rows: int
    bytes: float
    seconds: float
    tasks_done: int
    shuffled_bytes: float


def job_actuals(plan: StagedPlan, outcomes: Mapping[TaskId, TaskOutcome]) -> dict[str, JobActuals]:
    """What every job has done so far, by the outcomes of its tasks."""
    found = {}
    for job in plan.jobs:
        mine = {task: o for task, o in outcomes.items() if task.job == job.name}
        last = "reduce" if job.partitions else "map"
        results = [o for task, o in mine.items() if task.kind == last]
        sent = [o for task, o in mine.items() if task.kind != last]
        found[job.name] = JobActuals(
            rows=sum(o.rows for o in results),
            bytes=sum(o.output_bytes for o in results),
            seconds=sum(o.seconds for o in mine.values()),
            tasks_done=len(mine),
            shuffled_bytes=sum(o.output_bytes for o in sent),
        )
    return found
