"""What a query's plan expects of its jobs, corrected by what its tasks did so far."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from queryard.core.model import MAP, Kind
from queryard.estimate.jobs import JobSizes

DOUBT = 1.0
"""The plan's seconds count like so many tasks that took as long as planned."""


class PlannedJob(NamedTuple):
    """One job: the bytes of tables and of other jobs that its maps read, what it leaves, seconds.

    `map_s` and `reduce_s` are of a mean task; None where it has no reduces. With `sizes`, they are
    renewed by what was learnt from other jobs. `fixed_s` is what a task takes that reads nothing;
    `most_bytes` is the most that the job can leave, whatever it reads.
    """

    table_bytes: float
    read_bytes: Mapping[str, float]
    left_bytes: float
    map_s: float
    reduce_s: float | None
    sizes: JobSizes | None = None
    fixed_s: float = 0.0
    most_bytes: float = math.inf


@dataclass(slots=True)
class PlannedQuery:
    """The jobs of a query by name, and how it goes on.

    >>> scan = PlannedJob(100.0, {}, 10.0, 1.0, None)
    >>> query = PlannedQuery({"a": scan, "b": PlannedJob(0.0, {"a": 10.0}, 5.0, 1.0, None)})
    >>> query.finished("a", 40.0)  # four times as much as was planned
    >>> query.size_factor("b")
    4.0
    >>> query.took("a", "map", 50.0)
    >>> round(query.seconds("b", "map"))
    28
    >>> groups = PlannedJob(0.0, {"a": 10.0}, 5.0, 1.0, None, fixed_s=0.5, most_bytes=10.0)
    >>> query = PlannedQuery({"a": scan, "b": groups, "c": scan._replace(read_bytes={"b": 5.0})})
    >>> query.finished("a", 400.0)
    >>> query.seconds("b", "map"), query.size_factor("c") < 1.1  # no start takes longer
    (20.5, True)
    """

    jobs: Mapping[str, PlannedJob]
    _left: dict[str, float] = field(default_factory=dict)
    _log: float = 0.0
    _tasks: int = 0

    def finished(self, job: str, left_bytes: float) -> None:
        """All tasks of a job have ended, and left so many bytes."""
        self._left[job] = left_bytes

    def took(self, job: str, kind: Kind, seconds: float) -> None:
        """A task has ended."""
        planned_s = self._planned_s(job, kind)
        if planned_s and seconds > 0:
            self._log += math.log(seconds / planned_s)
            self._tasks += 1

    def size_factor(self, job: str) -> float:
        """How much more the maps of a job read than was planned, by the jobs that have ended."""
        plan = self.jobs[job]
        planned = plan.table_bytes + sum(plan.read_bytes.values())
        if planned <= 0:
            return 1.0
        real = plan.table_bytes
        for name, size in plan.read_bytes.items():
            real += size * self._left_factor(name)
        return real / planned

    def _left_factor(self, job: str) -> float:
        left, plan = self._left.get(job), self.jobs[job]
        planned = max(plan.left_bytes, 1.0)
        if left is None:
            return min(self.size_factor(job), max(plan.most_bytes / planned, 1.0))
        return left / planned

    def seconds(self, job: str, kind: Kind) -> float | None:
        """What a task is expected to take: as planned, for its real input, at the pace so far."""
        planned_s = self._planned_s(job, kind)
        if planned_s is None:
            return None
        pace = math.exp(self._log / (self._tasks + DOUBT))
        fixed_s = min(self.jobs[job].fixed_s, planned_s)
        scaled_s = fixed_s + (planned_s - fixed_s) * self.size_factor(job)
        return max(scaled_s, planned_s * MOST_SHRINKAGE) * pace

    def _planned_s(self, job: str, kind: Kind) -> float | None:
        plan = self.jobs[job]
        return plan.map_s if kind == MAP else plan.reduce_s


MOST_SHRINKAGE = 0.1
"""To begin a task takes its time, however little it reads."""
