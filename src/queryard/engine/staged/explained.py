"""A staged plan as an explanation, with what its jobs did if they ran."""

from __future__ import annotations

from collections.abc import Mapping

from queryard.results.explanation import ExplainedJob, Explanation
from queryard.sql.planner.plan import StagedPlan

from .query import JobActuals


def staged_explanation(
    plan: StagedPlan, actuals: Mapping[str, JobActuals] | None = None
) -> Explanation:
    """The jobs of a staged plan, with what they did if they ran."""
    jobs = []
    for job in plan.describe():
        done = (actuals or {}).get(job["job"])
        ran = done is not None and done.tasks_done > 0
        jobs.append(
            ExplainedJob(
                name=job["job"],
                operator=job["operator"],
                what=job["description"],
                inputs=tuple(job["upstream"]),
                tables=tuple(job["tables"]),
                map_tasks=job["map_tasks"],
                reduce_tasks=job["reduce_tasks"],
                rows_expected=job["rows"],
                bytes_expected=job["bytes"],
                rows=float(done.rows) if done is not None and ran else None,
                bytes=float(done.bytes) if done is not None and ran else None,
                seconds=done.seconds if done is not None and ran else None,
            )
        )
    return Explanation(plan.sql, "staged", tuple(jobs))
