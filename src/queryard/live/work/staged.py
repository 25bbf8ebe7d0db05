"""Staged work: jobs of map and reduce tasks that the kernel schedules one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import pyarrow as pa

from queryard.backends.protocol import Spread, Staged
from queryard.core.events import EstimateChanged, MemoryChanged, Retry
from queryard.core.model import Job, JobId, Table
from queryard.core.speedup import Speedup
from queryard.engine.errors import InputMissing, OutOfMemory, failure_kind, has_local_cause
from queryard.engine.sealing.access import Reach
from queryard.engine.staged.actuals import JobActuals
from queryard.engine.staged.exchange import Superseded
from queryard.engine.staged.explained import staged_explanation
from queryard.engine.staged.reads import SegmentReads
from queryard.engine.staged.tasks import StagedTasks
from queryard.engine.staged.times import planned_query, task_seconds
from queryard.estimate.tasks.planned import PlannedQuery
from queryard.results.explanation import Explanation
from queryard.results.streams import ResultStream
from queryard.sql.catalog.model import combined_fingerprint
from queryard.sql.planner import StagedPlan
from queryard.sql.planner.plan import StagedJob, TableRead

from .base import Moved


class StagedTaskSet(Protocol):
    """The tasks of a staged query: given to the backend, and read from when all have ended."""

    @property
    def at_nodes(self) -> bool:
        """Whether they run at the nodes of a cluster, each with caches of its own."""

    def for_backend(self) -> Staged | Spread:
        """What the backend is given."""

    def result(self) -> pa.RecordBatchReader:
        """The answer; all tasks must have ended well."""

    def actuals(self) -> dict[str, JobActuals]:
        """What every job has done so far."""

    def close(self) -> None:
        """Free everything, once no task runs."""


MakeTasks = Callable[[StagedPlan, str, int, SegmentReads | None, Reach], StagedTaskSet]
"""Makes the tasks of a plan: for a query, with so much memory, over the segments of text that it
scans, if it scans any, within a client's reach."""


class TasksHere(StagedTasks):
    """Tasks that run in this process."""

    at_nodes = False

    def for_backend(self) -> Staged:
        return Staged(self)


class StagedOutline:
    """What a staged plan says of a query before anything of it runs."""

    def __init__(self, query: str, plan: StagedPlan) -> None:
        self._query = query
        self._plan = plan
        self._jobs = plan.to_jobs()

    def jobs(self) -> tuple[Job, ...]:
        return self._jobs

    def estimates(self, expected_s: float, speedup: Speedup) -> list[EstimateChanged]:
        """What is expected of the tasks of each job, by the bytes they read."""
        return [
            EstimateChanged(0.0, str(JobId(self._query, job)), map_s=map_s, reduce_s=reduce_s)
            for job, (map_s, reduce_s) in task_seconds(self._plan).items()
        ]

    def planned(self) -> PlannedQuery | None:
        return planned_query(self._plan)

    def moved_bytes(self, nodes: int) -> float:
        left = {job.name: job.bytes_expected for job in self._plan.jobs}
        built = {name for job in self._plan.jobs for name in job.builds}
        read = {name for job in self._plan.jobs for name in job.upstream} - built
        shuffled = sum(job.shuffle_bytes_expected for job in self._plan.jobs)
        # A build side is fetched by every node.
        built_bytes = nodes * sum(left[name] for name in built)
        return shuffled + sum(left[name] for name in read) + built_bytes


class StagedWork(StagedOutline):
    """Its tasks run where the backend has slots; its rows are handed over at the end."""

    hands_over = True

    def __init__(
        self,
        query: str,
        plan: StagedPlan,
        memory_bytes: int,
        tasks: StagedTaskSet,
        shares: frozenset[str] = frozenset(),
    ) -> None:
        """`shares` are the tables of which scans are worth sharing.

        Where tasks run at the nodes of a cluster no scan is shared, and scans tell where splits
        are.
        """
        super().__init__(query, plan)
        self.memory_bytes = memory_bytes
        self._tasks = tasks
        self._reads: dict[str, TableRead] = plan.scanned()
        if tasks.at_nodes:
            self._jobs = tuple(
                replace(job, scans=self._placed(staged), scans_alone=True)
                for job, staged in zip(self._jobs, plan.jobs, strict=True)
            )
        else:
            self._jobs = tuple(
                job if shares.issuperset(job.scans) else replace(job, scans=())
                for job in self._jobs
            )

    def _placed(self, job: StagedJob) -> tuple[str, ...]:
        """The tables of which splits are the inputs of a job's maps, as their places are known.

        A table that a plan has cut for itself goes under a name of its own, by how many splits
        there are: the next plan of its kind cuts it alike.
        """
        reads = [branch.read for branch in job.branches]
        found = []
        for read in reads:
            if not isinstance(read, TableRead) or not read.splits:
                return ()
            if any(split.is_frame for split in read.splits):
                return ()
            name = read.table if read.canonical else f"{read.table} in {len(read.splits)}"
            self._reads[name] = read
            found.append(name)
        return tuple(found)

    def tables(self) -> Mapping[str, tuple[str, Table]]:
        named = {name for job in self._jobs for name in job.scans}
        return {
            name: (_fingerprint(read), Table(name, read.as_table.splits))
            for name, read in self._reads.items()
            if name in named
        }

    def for_backend(self, output: ResultStream) -> Staged | Spread:
        return self._tasks.for_backend()

    def entered(self) -> Moved:
        return Moved((), ())

    def granted(self) -> Moved:
        return Moved((self._query,), ())

    def left(self) -> Sequence[MemoryChanged]:
        return ()

    def on_failure(self, error: BaseException) -> Retry:
        if isinstance(error, InputMissing | Superseded):
            return "free"
        if has_local_cause(error):
            return "elsewhere"
        return "never" if failure_kind(error) == "never" else "count"

    def needs_more(self, error: BaseException, most_bytes: int) -> bool:
        return isinstance(error, OutOfMemory) and self.memory_bytes < most_bytes

    def hand_over(self, output: ResultStream) -> None:
        reader = self._tasks.result()
        output.start(reader.schema, tuple(field.type for field in self._plan.fields))
        for batch in reader:
            if output.closed:
                break
            output.put(batch)
        output.finish()

    @property
    def holds(self) -> bool:
        return True

    def close(self) -> None:
        self._tasks.close()

    def explanation(self) -> Explanation | None:
        return staged_explanation(self._plan, self._tasks.actuals())


def _fingerprint(read: TableRead) -> str:
    """Another one if a table was split otherwise."""
    return read.fingerprint or combined_fingerprint(split.relation for split in read.splits)
