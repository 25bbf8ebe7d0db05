"""Which tasks the jobs of a plan have, and which of them read the outputs of which."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import NamedTuple

from queryard.core.model import Kind, TaskId
from queryard.sql.planner.plan import ChunkRead, StagedJob, StagedPlan, TableRead


class SegmentRead(NamedTuple):
    """A segment of text that a task reads, and the columns it wants of it."""

    table: str
    fingerprint: str
    number: int
    columns: tuple[str, ...]


def results_of(job: StagedJob) -> list[TaskId]:
    """The tasks that together give the result of a job."""
    kind: Kind = "reduce" if job.partitions else "map"
    return [TaskId(job.name, kind, index) for index in range(job.result_tasks)]


def maps_of(job: StagedJob) -> list[TaskId]:
    """All map tasks of a job."""
    return [TaskId(job.name, "map", index) for index in range(job.map_tasks)]


def maps_of_side(job: StagedJob, side: int) -> list[TaskId]:
    """The map tasks of one side: branches of a side lie one behind another."""
    first = 0
    found: list[int] = []
    for branch in job.branches:
        if branch.side == side:
            found += range(first, first + branch.read.tasks)
        first += branch.read.tasks
    return [TaskId(job.name, "map", index) for index in range(found[0], found[-1] + 1)]


class TaskGraph:
    """The tasks of one plan."""

    def __init__(self, plan: StagedPlan) -> None:
        self._plan = plan
        self.jobs = {job.name: job for job in plan.jobs}

    def read_as_rows(self) -> set[str]:
        """The jobs of which map tasks of others read the rows, or the client."""
        found = {
            branch.read.job
            for job in self._plan.jobs
            for branch in job.branches
            if isinstance(branch.read, ChunkRead)
        }
        return found | {self._plan.jobs[-1].name}

    def segment(self, task: TaskId) -> SegmentRead | None:
        """The segment of text that a task reads; None if it reads something else."""
        if task.kind == "reduce":
            return None
        branch, place = self.jobs[task.job].branch_of(task.index)
        read = branch.read
        if not isinstance(read, TableRead) or not read.is_segment(place):
            return None
        return SegmentRead(read.table, read.fingerprint, place, read.columns)

    def chunk(self, read: ChunkRead, place: int) -> list[TaskId]:
        """The tasks of which one task of a branch reads the rows."""
        results = results_of(self.jobs[read.job])
        return [results[index] for index in read.groups[place]]

    def is_foldable(self, task: TaskId) -> bool:
        """Whether its output may be put together with those of other maps of its job."""
        job = self.jobs[task.job]
        return bool(job.fold_sql) and task.kind == "map" and job.branch_of(task.index)[0].side == 0

    def read_by(self, task: TaskId) -> list[TaskId]:
        """The tasks of which a task reads the outputs."""
        job = self.jobs[task.job]
        if task.kind == "reduce":
            found = maps_of(job)
            builds = job.reduce_builds
        else:
            branch, place = job.branch_of(task.index)
            found, builds = [], branch.builds
            if isinstance(branch.read, ChunkRead):
                found += self.chunk(branch.read, place)
        for name in builds:
            found += results_of(self.jobs[name])
        return found

    def needed(self, done: Container[TaskId]) -> tuple[TaskId, ...]:
        """The tasks that must run, or run again, for the answer, in an order that works."""
        found: dict[TaskId, None] = {}
        wanted = {self._plan.jobs[-1].name}
        for job in reversed(self._plan.jobs):
            if job.name not in wanted:
                continue
            results = missing(results_of(job), done)
            maps = results
            if job.partitions:
                maps = missing(maps_of(job), done) if results else []
                found = dict.fromkeys(results) | found
                wanted.update(job.reduce_builds if results else ())
            found = dict.fromkeys(maps) | found
            for task in maps:
                branch, _ = job.branch_of(task.index)
                wanted.update(branch.builds)
                if isinstance(branch.read, ChunkRead):
                    wanted.add(branch.read.job)
        return tuple(found)


def missing(tasks: Iterable[TaskId], done: Container[TaskId]) -> list[TaskId]:
    """The tasks that are not done."""
    return [task for task in tasks if task not in done]
