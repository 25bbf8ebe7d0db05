"""A staged plan: plain data that travels to wherever tasks run.

Names in the SQL of tasks: `in_J` holds the rows of job J a task reads, `x_J_S` one partition of
side S of what the map tasks of J sent to its reduce tasks, and `build_J` is all of J's result, made
into a table once and shared by every task that joins with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from queryard.core.errors import InvalidModel, unknown_name
from queryard.core.model import Job, Kind, Operator, Phase, Split, Table, TableInput

from .oracle import Field
from .types import unpacked

PART = "part"


class ReadSplit(NamedTuple):
    """A part of a table: what goes behind FROM, and about how many bytes that is.

    The relation of a registered frame is a name, under which a task is given its rows. A segment
    of text may have none: what it was parsed into is known when it is read. `places` are machines
    that hold it, where the catalog says so.
    """

    relation: str
    bytes: float
    is_frame: bool = False
    is_segment: bool = False
    places: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableRead:
    """The splits of a table, one for each task. Without splits (an empty table) no row is read.

    `canonical` says that these are the splits of the table that every plan shares. `columns` are
    those that are read, and `fingerprint` is that of the files that were split.
    """

    table: str
    splits: tuple[ReadSplit, ...]
    empty: str  # a relation of the table's shape without rows
    canonical: bool = False
    columns: tuple[str, ...] = ()
    fingerprint: str = ""

    @property
    def tasks(self) -> int:
        return max(len(self.splits), 1)

    @property
    def as_table(self) -> Table:
        """The table with its splits, each with the places that the catalog names."""
        return Table(self.table, tuple(Split(split.bytes, split.places) for split in self.splits))

    def relation(self, index: int) -> str:
        return self.splits[index].relation if self.splits else self.empty

    def is_segment(self, index: int) -> bool:
        """Whether it is a segment of text, which is parsed once for all that read it."""
        return bool(self.splits) and self.splits[index].is_segment

    def is_frame(self, index: int) -> bool:
        return bool(self.splits) and self.splits[index].is_frame

    def bytes(self, index: int) -> float:
        return float(self.splits[index].bytes) if self.splits else 0.0


@dataclass(frozen=True, slots=True)
class ChunkRead:
    """Results of the tasks of another job; each task reads a group of them."""

    job: str
    groups: tuple[tuple[int, ...], ...]
    bytes_expected: float

    @property
    def tasks(self) -> int:
        return len(self.groups)

    def relation(self, index: int) -> str:
        return f"in_{self.job}"

    def bytes(self, index: int) -> float:
        every = sum(len(group) for group in self.groups)
        return self.bytes_expected * len(self.groups[index]) / max(every, 1)


@dataclass(frozen=True, slots=True)
class NothingRead:
    """A task that makes its rows from nothing."""

    tasks: int = 1

    def relation(self, index: int) -> str:
        return "(SELECT 1)"

    def bytes(self, index: int) -> float:
        return 0.0


Read = TableRead | ChunkRead | NothingRead


@dataclass(frozen=True, slots=True)
class Branch:
    """Map tasks with the same SQL over different parts of one input, for one side of a reduce."""

    read: Read
    before: str
    after: str
    builds: tuple[str, ...] = ()
    side: int = 0

    def sql(self, place: int, source: str = "") -> str:
        """The SQL of one of the tasks; `source` is what a segment of text was parsed into."""
        return f"{self.before}{source or self.read.relation(place)}{self.after}"


@dataclass(frozen=True, slots=True)
class StagedJob:
    """One job: map tasks, and if there are partitions a reduce task for each."""

    name: str
    operator: Operator
    description: str
    branches: tuple[Branch, ...]
    fields: tuple[Field, ...]
    rows_expected: float
    bytes_expected: float
    partitions: int = 0
    reduce_sql: str = ""
    reduce_builds: tuple[str, ...] = ()
    side_bytes_expected: tuple[float, ...] = ()
    """What the map tasks of each side send to the reduce tasks."""
    map_scan_bytes: float = 0.0
    reduce_scan_bytes: float = 0.0
    """Of the columns of tables that its tasks read, once they are decoded."""
    most_rows: float = math.inf
    """Its result has no more, however many rows it reads."""
    fold_sql: str = ""
    """Makes of several outputs of maps, read as the first side, one of the same form; "" where
    outputs cannot be put together before the reduce phase."""

    @property
    def most_bytes(self) -> float:
        """The bytes of the most rows that its result can have."""
        return self.most_rows * self.bytes_expected / max(self.rows_expected, 1.0)

    @property
    def sides(self) -> int:
        return len(self.side_bytes_expected)

    @property
    def shuffle_bytes_expected(self) -> float:
        return sum(self.side_bytes_expected)

    @property
    def map_tasks(self) -> int:
        return sum(branch.read.tasks for branch in self.branches)

    @property
    def builds(self) -> tuple[str, ...]:
        """The jobs with results that are joined as a whole within tasks."""
        found = dict.fromkeys(b for branch in self.branches for b in branch.builds)
        found.update(dict.fromkeys(self.reduce_builds))
        return tuple(found)

    @property
    def upstream(self) -> tuple[str, ...]:
        reads = [b.read.job for b in self.branches if isinstance(b.read, ChunkRead)]
        return tuple(dict.fromkeys([*reads, *self.builds]))

    @property
    def tables(self) -> tuple[TableInput, ...]:
        """Which tables are read, and how many bytes of each."""
        found: dict[str, float] = {}
        for branch in self.branches:
            if isinstance(branch.read, TableRead):
                size = sum(branch.read.bytes(i) for i in range(branch.read.tasks))
                found[branch.read.table] = found.get(branch.read.table, 0.0) + size
        return tuple(TableInput(table, size) for table, size in found.items())

    @property
    def scans(self) -> tuple[str, ...]:
        """The tables with canonical splits that are, one after another, the inputs of its maps."""
        reads = [branch.read for branch in self.branches]
        found = [r.table for r in reads if isinstance(r, TableRead) and r.canonical and r.splits]
        return tuple(found) if len(found) == len(reads) else ()

    @property
    def result_tasks(self) -> int:
        """The tasks that together give the result of the job."""
        return self.partitions or self.map_tasks

    def branch_of(self, index: int) -> tuple[Branch, int]:
        """The branch of a map task, and its place there."""
        left = index
        for branch in self.branches:
            if 0 <= left < branch.read.tasks:
                return branch, left
            left -= branch.read.tasks
        raise InvalidModel(f"job {self.name!r} has {self.map_tasks} map tasks, not one {index}")


class TaskText(NamedTuple):
    """What a task does: its SQL, what must be there for it, and where its rows go."""

    sql: str
    builds: tuple[str, ...]
    side: int | None  # of the reduce phase the rows are meant for; None: they are the result


@dataclass(frozen=True, slots=True)
class StagedPlan:
    """Jobs in an order in which they can run; the last one's rows are the answer, in order.

    `frames` are the rows of registered frames that tasks read, by name. They are not part of the
    plan: the driver of the query puts them where its tasks find them, and a copy has none.
    """

    sql: str
    jobs: tuple[StagedJob, ...]
    fields: tuple[Field, ...]  # names and types as DuckDB gives them
    frames: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return StagedPlan, (self.sql, self.jobs, self.fields)

    def job(self, name: str) -> StagedJob:
        for job in self.jobs:
            if job.name == name:
                return job
        raise InvalidModel(unknown_name("job", name, [job.name for job in self.jobs]))

    def task(self, job_name: str, kind: Kind, index: int, source: str = "") -> TaskText:
        """The SQL of one task and what it needs; `source` is what its segment was parsed into."""
        job = self.job(job_name)
        if kind == "reduce":
            if not 0 <= index < job.partitions:
                raise InvalidModel(f"job {job_name!r} has no reduce task {index}")
            return TaskText(job.reduce_sql, job.reduce_builds, None)
        branch, place = job.branch_of(index)
        side = branch.side if job.partitions else None
        return TaskText(branch.sql(place, source), branch.builds, side)

    def unpacked(self, job_name: str) -> str:
        """The select list that gives the result of a job its types again."""
        fields = self.job(job_name).fields
        return ", ".join(unpacked(field.name, field.type) for field in fields) or "*"

    def to_jobs(self) -> tuple[Job, ...]:
        """The jobs as the kernel schedules them.

        A job names `scans` where its maps read canonical splits only, so that task i of any such
        job over a table reads the same rows. Plans that cut a table for themselves share no scan.
        """
        return tuple(_kernel_job(job) for job in self.jobs)

    def scanned(self) -> dict[str, TableRead]:
        """The tables of which jobs name the scans, with their canonical splits."""
        return {
            branch.read.table: branch.read
            for job in self.jobs
            for branch in job.branches
            if job.scans and isinstance(branch.read, TableRead)
        }

    def describe(self) -> list[dict[str, Any]]:
        """What EXPLAIN shows, one entry per job."""
        return [
            {
                "job": job.name,
                "operator": job.operator,
                "upstream": list(job.upstream),
                "tables": {found.table: found.bytes for found in job.tables},
                "map_tasks": job.map_tasks,
                "reduce_tasks": job.partitions,
                "rows": job.rows_expected,
                "bytes": job.bytes_expected,
                "description": job.description,
            }
            for job in self.jobs
        ]


def _kernel_job(job: StagedJob) -> Job:
    sizes = tuple(b.read.bytes(i) for b in job.branches for i in range(b.read.tasks))
    reduce = None
    if job.partitions:
        reduce = Phase(job.partitions, job.shuffle_bytes_expected / job.partitions)
    return Job(
        job.name,
        operator=job.operator,
        upstream=job.upstream,
        inputs=job.tables,
        map=Phase(job.map_tasks, sizes=sizes),
        reduce=reduce,
        scans=job.scans,
    )
