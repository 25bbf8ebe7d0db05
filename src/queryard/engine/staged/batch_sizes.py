"""How many rows a task takes at once."""

from __future__ import annotations

from queryard.core.model import Kind, TaskId
from queryard.sql.planner.plan import StagedJob

from .task import TaskOutcome

# A batch is in memory before it is counted: limit its rows, and its bytes.
_MOST_ROWS = 16_384
_LEAST_ROWS = 2_048
_MOST_BYTES = 4 << 20
_SHARE = 1 / 64  # of the memory for rows at most


class BatchSizes:
    """By the width of the rows that tasks like it have made, all attempts counted."""

    def __init__(self, memory_bytes: float) -> None:
        """`memory_bytes` is what the query may use at a node; half of it is for rows."""
        self._wanted_bytes = min(_MOST_BYTES, memory_bytes / 2 * _SHARE)
        self._made: dict[tuple[str, Kind], tuple[int, float]] = {}

    def note(self, task: TaskId, outcome: TaskOutcome) -> None:
        """A task has run."""
        rows, size = self._made.get((task.job, task.kind), (0, 0.0))
        self._made[task.job, task.kind] = (rows + outcome.rows, size + outcome.output_bytes)

    def rows(self, job: StagedJob, kind: Kind) -> int:
        """For a task of a job."""
        rows, size = self._made.get((job.name, kind), (0, 0.0))
        if rows:
            width_bytes = size / rows
        else:
            width_bytes = job.bytes_expected / max(job.rows_expected, 1.0)
        wanted = int(self._wanted_bytes / max(width_bytes, 1.0))
        return min(max(wanted, _LEAST_ROWS), _MOST_ROWS)
