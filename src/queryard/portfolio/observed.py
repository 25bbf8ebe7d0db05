"""What a run really was, as a schedule that can be scored."""

from __future__ import annotations

from queryard.metrics import RunRows
from queryard.metrics.cost import node_stays_s

from .scores import QueryEnd, Schedule


def schedule_of(run: RunRows) -> Schedule:
    """The ends of all queries (of those that never ended, the end of the run), and the leases."""
    queries = tuple(
        QueryEnd(
            row.query.id,
            row.submit_s,
            run.closed_s if row.end_s is None else row.end_s,
            row.task_s,
            row.query.deadline_s,
        )
        for row in run.queries.values()
    )
    return Schedule(queries, tuple(node_stays_s(run)))
