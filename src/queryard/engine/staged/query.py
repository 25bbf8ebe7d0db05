"""The driver side of a staged query: what its tasks are, what they have made, and where it lies."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from queryard.core.model import Kind, TaskId
from queryard.sql.planner.plan import PART, ChunkRead, StagedJob, StagedPlan, TableRead

from .cancellation import Cancellation
from .exchange import Exchange, Partitions, Piece
from .instance import Build
from .store import MissingRows
from .task import Input, Output, TaskOutcome, TaskSpec

# A batch is in memory before it is counted: limit its rows, and its bytes.
_MOST_BATCH_ROWS = 16_384
_LEAST_BATCH_ROWS = 2_048
_BATCH_BYTES = 4 << 20
# So many partial results of one job are put together into one, so that what a query holds does not
# grow with the table.
FOLD_EVERY = 8
_BATCH_SHARE = 1 / 64  # of the memory for rows at most


@dataclass(frozen=True, slots=True)
class JobActuals:
    """What a job really did, for EXPLAIN ANALYZE; tasks that ran twice count once."""

    rows: int
    bytes: float
    seconds: float
    tasks_done: int
    shuffled_bytes: float


class SegmentRead(NamedTuple):
    """A segment of text that a task reads, and the columns it wants of it."""

    table: str
    fingerprint: str
    number: int
    columns: tuple[str, ...]


@dataclass(slots=True)
class Fold:
    """Partial results of a job that were put together, and those that wait for it."""

    pieces: tuple[Piece, ...] = ()
    tasks: set[TaskId] = field(default_factory=set)
    waiting: list[TaskId] = field(default_factory=list)
    busy: bool = False
    useless: bool = False
    number: int = 0


class FoldSpec(NamedTuple):
    """Puts the outputs of some maps of a job, and what was put together before, into one."""

    job: str
    tasks: tuple[TaskId, ...]
    spec: TaskSpec


class StagedQuery:
    """One execution of a plan. It runs nothing: it says what to run, and is told the outcomes.

    `memory_bytes` is what the query may use at each node: half for statements, half for the rows
    between them. `nodes` is at how many nodes its tasks may run; where that is one, rows of build
    sides are dropped as soon as they are tables. Jobs have the plan's names here. Any thread may
    call any method.
    """

    def __init__(self, plan: StagedPlan, query: str, memory_bytes: float, nodes: int = 1) -> None:
        self.plan = plan
        self.query = query
        self.memory_bytes = memory_bytes
        self._lock = threading.Lock()
        # Notified when the last map of a job has run.
        self._mapped = threading.Condition(self._lock)
        self._maps_done: Counter[str] = Counter()
        self._frames: dict[str, Piece] = {}
        self._outcomes: dict[TaskId, TaskOutcome] = {}
        self._attempts: dict[TaskId, int] = {}  # the latest that ended well, also if lost
        self._made: dict[tuple[str, Kind], tuple[int, float]] = {}  # rows and bytes of all attempts
        self._folds: dict[str, Fold] = {}
        self._jobs = {job.name: job for job in plan.jobs}
        read_as_rows = {
            branch.read.job
            for job in plan.jobs
            for branch in job.branches
            if isinstance(branch.read, ChunkRead)
        }
        kept = read_as_rows | {plan.jobs[-1].name}
        self._dropped = frozenset(self._jobs) - kept if nodes == 1 else frozenset()

    # --- what to run --------------------------------------------------------------------------

    def publish(self, exchange: Exchange) -> None:
        """Put the registered frames that the query reads where its tasks find them."""
        for name, frame in self.plan.frames.items():
            self._frames[name] = exchange.publish(f"{self.query}/{name}", frame)

    def spec(
        self, task: TaskId, attempt: int, deadline_s: float | None = None, source: str = ""
    ) -> TaskSpec:
        """What a node must know to run a task; raises `MissingRows` if its inputs are not there.

        `attempt` must be above that of every earlier launch of the task, such as the launch's own
        number. `source` is what goes behind FROM for the segment of text that the task reads.
        """
        job = self.plan.job(task.job)
        text = self.plan.task(*task, source)
        partitions = None
        if text.side is not None and job.partitions > 1:
            partitions = Partitions(PART, job.partitions)
        with self._lock:
            return TaskSpec(
                query=self.query,
                job=task.job,
                kind=task.kind,
                index=task.index,
                attempt=attempt,
                sql=text.sql,
                inputs=tuple(self._inputs(job, task)),
                builds=tuple(self._build(name) for name in text.builds),
                output=Output(self._key(task), partitions),
                batch_rows=self._batch_rows(job, task),
                memory_bytes=self.memory_bytes,
                deadline_s=deadline_s,
            )

    def segment(self, task: TaskId) -> SegmentRead | None:
        """The segment of text that a task reads; None if it reads something else."""
        if task.kind == "reduce":
            return None
        branch, place = self._jobs[task.job].branch_of(task.index)
        read = branch.read
        if not isinstance(read, TableRead) or not read.is_segment(place):
            return None
        return SegmentRead(read.table, read.fingerprint, place, read.columns)

    def fold_spec(self, job_name: str, attempt: int) -> FoldSpec | None:
        """What puts outputs of the maps of a job together, once enough of them have come.

        The outputs that it reads are this fold's from now on: `folded` or `unfolded` must follow.
        """
        job = self._jobs[job_name]
        if not job.fold_sql:
            return None
        with self._lock:
            fold = self._folds.setdefault(job_name, Fold())
            tasks = [t for t in fold.waiting if t in self._outcomes]
            if fold.busy or fold.useless or len(tasks) < FOLD_EVERY or self._is_mapped(job_name):
                return None
            fold.busy = True
            held = [self._outcomes[task].pieces for task in tasks]
            pieces = [*fold.pieces, *(p for each in held for p in each)]
            fold.number += 1
            key = f"{self.query}/{job_name}/fold{fold.number}"
            partitions = Partitions(PART, job.partitions) if job.partitions > 1 else None
            spec = TaskSpec(
                query=self.query,
                job=job_name,
                kind="map",
                index=tasks[0].index,
                attempt=attempt,
                sql=job.fold_sql,
                inputs=(Input(f"x_{job_name}_0", _with_rows([pieces])),),
                builds=(),
                output=Output(key, partitions),
                batch_rows=self._batch_rows(job, tasks[0]),
                memory_bytes=self.memory_bytes,
            )
            return FoldSpec(job_name, tuple(tasks), spec)

    def folded(self, found: FoldSpec, outcome: TaskOutcome) -> tuple[str, ...]:
        """Outputs were put together; the keys of what is not needed any more."""
        with self._lock:
            fold = self._folds[found.job]
            fold.busy = False
            if self._is_mapped(found.job):
                return (found.spec.output.key,)  # reduces may read the outputs as they were
            before = sum(piece.rows for each in found.spec.inputs for piece in each.pieces)
            # Groups that lie apart become no fewer: it would be done in vain again and again.
            fold.useless = outcome.rows > 0.7 * before
            dropped = dict.fromkeys(p.key for each in found.spec.inputs for p in each.pieces)
            dropped.update(dict.fromkeys(self._key(task) for task in found.tasks))
            fold.pieces = outcome.pieces
            fold.tasks.update(found.tasks)
            fold.waiting = [task for task in fold.waiting if task not in fold.tasks]
            return tuple(dropped)

    def unfolded(self, found: FoldSpec) -> None:
        """Putting outputs together has failed; they stay as they are."""
        with self._lock:
            self._folds[found.job].busy = False

    def is_early(self, task: TaskId) -> bool:
        """Whether it is a reduce of which some maps have yet to run, or to run again."""
        with self._lock:
            return task.kind == "reduce" and not self._is_mapped(task.job)

    def builds(self, task: TaskId) -> tuple[Build, ...]:
        """The build sides that a task reads; they stand before any task of its job starts."""
        names = self.plan.task(*task).builds
        with self._lock:
            return tuple(self._build(name) for name in names)

    def wait_for_maps(self, job: str, cancelled: Cancellation) -> None:
        """Sleep until all maps of a job have run; raises if the task must stop that waits."""
        cancelled.wait_for(self._mapped, lambda: self._is_mapped(job))

    def _is_mapped(self, job: str) -> bool:
        return self._maps_done[job] == self._jobs[job].map_tasks

    def _inputs(self, job: StagedJob, task: TaskId) -> Iterator[Input]:
        """What a task reads, by the names it has in its SQL."""
        if task.kind == "reduce":
            for side in range(job.sides):
                maps = [TaskId(job.name, "map", i) for i in _tasks_of(job, side)]
                fold = self._folds.get(job.name) if side == 0 else None
                held = [self._held(t) for t in maps if fold is None or t not in fold.tasks]
                if fold is not None and fold.pieces:
                    held.insert(0, fold.pieces)
                yield Input(f"x_{job.name}_{side}", _partition(held, task.index))
            return
        branch, place = job.branch_of(task.index)
        read = branch.read
        if isinstance(read, ChunkRead):
            results = _results(self._jobs[read.job])
            held = [self._held(results[i]) for i in read.groups[place]]
            yield Input(f"in_{read.job}", _with_rows(held))
        elif isinstance(read, TableRead) and read.is_frame(place):
            name = read.relation(place)
            yield Input(name, (self._frames[name],))

    def _build(self, name: str) -> Build:
        results = _results(self._jobs[name])
        drop = tuple(map(self._key, results)) if name in self._dropped else ()
        pieces = _with_rows([self._held(task) for task in results])
        return Build(name, self.plan.unpacked(name), pieces, drop)

    def _held(self, task: TaskId) -> tuple[Piece, ...]:
        outcome = self._outcomes.get(task)
        if outcome is None:
            raise MissingRows(f"no rows of {self._key(task)}: the task has not run")
        return outcome.pieces

    def _key(self, task: TaskId) -> str:
        return f"{self.query}/{task}"

    def _batch_rows(self, job: StagedJob, task: TaskId) -> int:
        """How many rows to take at once, by the width of those that tasks like it have made."""
        rows, size = self._made.get((job.name, task.kind), (0, 0.0))
        if rows:
            width_bytes = size / rows
        else:
            width_bytes = job.bytes_expected / max(job.rows_expected, 1.0)
        wanted_bytes = min(_BATCH_BYTES, self.memory_bytes / 2 * _BATCH_SHARE)
        wanted = int(wanted_bytes / max(width_bytes, 1.0))
        return min(max(wanted, _LEAST_BATCH_ROWS), _MOST_BATCH_ROWS)

    # --- what became of it ---------------------------------------------------------------------

    def done(self, task: TaskId, outcome: TaskOutcome) -> bool:
        """A task has run; False if a later attempt of it has, which counts instead."""
        with self._lock:
            if outcome.attempt < self._attempts.get(task, outcome.attempt):
                return False
            self._attempts[task] = outcome.attempt
            fold = self._folds.get(task.job)
            if fold is not None and task.kind == "map" and task in fold.tasks:
                return False  # what it made before has been put together with that of others
            if self._is_foldable(task):
                waiting = self._folds.setdefault(task.job, Fold()).waiting
                if task not in waiting:
                    waiting.append(task)
            if task.kind == "map" and task not in self._outcomes:
                self._maps_done[task.job] += 1
                if self._is_mapped(task.job):
                    self._mapped.notify_all()
            self._outcomes[task] = outcome
            rows, size = self._made.get((task.job, task.kind), (0, 0.0))
            made = (rows + outcome.rows, size + outcome.output_bytes)
            self._made[task.job, task.kind] = made
            return True

    def lost(self, place: str) -> tuple[TaskId, ...]:
        """A place is gone with the pieces there. Returns the tasks that lost their outputs."""
        with self._lock:
            gone = [
                task
                for task, outcome in self._outcomes.items()
                if any(piece.holder == place for piece in outcome.pieces)
            ]
            for name, fold in self._folds.items():
                if any(piece.holder == place for piece in fold.pieces):
                    gone += [task for task in fold.tasks if task not in gone]
                    self._folds[name] = Fold(number=fold.number)
            for task in gone:
                del self._outcomes[task]
                self._maps_done[task.job] -= task.kind == "map"
        return tuple(gone)

    def lost_keys(self, keys: Iterable[str]) -> tuple[TaskId, ...]:
        """Some outputs are gone, though their places are not. Returns the tasks that made them."""
        gone_keys = frozenset(keys)
        with self._lock:
            gone = [task for task in self._outcomes if self._key(task) in gone_keys]
            for task in gone:
                del self._outcomes[task]
                self._maps_done[task.job] -= task.kind == "map"
        return tuple(gone)

    def missing(self, task: TaskId) -> tuple[TaskId, ...]:
        """The tasks of which a task reads the outputs, and which have none (any more)."""
        with self._lock:
            return tuple(dict.fromkeys(self._missing(self._read_by(task))))

    def _read_by(self, task: TaskId) -> list[TaskId]:
        job = self._jobs[task.job]
        if task.kind == "reduce":
            found = [TaskId(job.name, "map", index) for index in range(job.map_tasks)]
            builds = job.reduce_builds
        else:
            branch, place = job.branch_of(task.index)
            found, builds = [], branch.builds
            if isinstance(branch.read, ChunkRead):
                results = _results(self._jobs[branch.read.job])
                found += [results[index] for index in branch.read.groups[place]]
        for name in builds:
            found += _results(self._jobs[name])
        return found

    def needed(self) -> tuple[TaskId, ...]:
        """The tasks that must run, or run again, for the answer, in an order that works."""
        found: dict[TaskId, None] = {}
        with self._lock:
            wanted = {self.plan.jobs[-1].name}
            for job in reversed(self.plan.jobs):
                if job.name not in wanted:
                    continue
                results = self._missing(_results(job))
                maps = results
                if job.partitions:
                    every = [TaskId(job.name, "map", i) for i in range(job.map_tasks)]
                    maps = self._missing(every) if results else []
                    found = dict.fromkeys(results) | found
                    wanted.update(job.reduce_builds if results else ())
                found = dict.fromkeys(maps) | found
                for task in maps:
                    branch, _ = job.branch_of(task.index)
                    wanted.update(branch.builds)
                    if isinstance(branch.read, ChunkRead):
                        wanted.add(branch.read.job)
        return tuple(found)

    def ready(self) -> tuple[TaskId, ...]:
        """The tasks that are needed and find all their inputs."""
        found = []
        for task in self.needed():
            try:
                self.spec(task, 0)
            except MissingRows:
                continue
            found.append(task)
        return tuple(found)

    def _is_foldable(self, task: TaskId) -> bool:
        job = self._jobs[task.job]
        return bool(job.fold_sql) and task.kind == "map" and job.branch_of(task.index)[0].side == 0

    def _missing(self, tasks: list[TaskId]) -> list[TaskId]:
        return [task for task in tasks if task not in self._outcomes]

    # --- the whole ------------------------------------------------------------------------------

    @property
    def tasks_done(self) -> int:
        """How many tasks have an output."""
        return len(self._outcomes)

    def result(self, exchange: Exchange) -> pa.RecordBatchReader:
        """The answer, with DuckDB's column names; all jobs must be done."""
        tasks = self.result_tasks()
        with self._lock:
            held = [self._held(task) for task in tasks]
        schema = self.result_schema(exchange.fetch([held[0][0].without_rows()]))
        batches = (
            pa.RecordBatch.from_arrays(batch.columns, schema=schema)
            for pieces in held
            for batch in exchange.fetch(pieces).to_batches()
        )
        return pa.RecordBatchReader.from_batches(schema, batches)

    def result_tasks(self) -> tuple[TaskId, ...]:
        """The tasks of which the outputs are the answer, one after another."""
        return tuple(_results(self.plan.jobs[-1]))

    def result_columns(self, exchange: Exchange) -> pa.Table:
        """The columns of the answer as its first task has made them, without rows."""
        with self._lock:
            held = self._held(self.result_tasks()[0])
        return exchange.fetch([held[0].without_rows()])

    def result_schema(self, columns: pa.Table) -> pa.Schema:
        """The columns of the answer with DuckDB's names."""
        names = [field.name for field in self.plan.fields]
        found = columns.schema
        return pa.schema([f.with_name(n) for f, n in zip(found, names, strict=True)])

    def has(self, task: TaskId) -> bool:
        """Whether the output of a task is there, as far as is known."""
        return task in self._outcomes

    def rows(self, task: TaskId, exchange: Exchange) -> pa.Table:
        """The output of a task."""
        with self._lock:
            held = self._held(task)
        return exchange.fetch(held)

    def keys(self) -> tuple[str, ...]:
        """All keys under which rows of the query may lie, to drop them."""
        with self._lock:
            made = [self._key(task) for task in self._attempts]
            made += [piece.key for fold in self._folds.values() for piece in fold.pieces]
        return (*made, *(piece.key for piece in self._frames.values()))

    def actuals(self) -> dict[str, JobActuals]:
        """What every job has done so far."""
        with self._lock:
            outcomes = dict(self._outcomes)
        found = {}
        for job in self.plan.jobs:
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


def _results(job: StagedJob) -> list[TaskId]:
    """The tasks that together give the result of a job."""
    kind: Kind = "reduce" if job.partitions else "map"
    return [TaskId(job.name, kind, index) for index in range(job.result_tasks)]


def _partition(held: list[tuple[Piece, ...]], number: int) -> tuple[Piece, ...]:
    """The pieces of one partition; at least one, for the columns."""
    found = []
    for pieces in held:
        place = 0 if pieces[0].part is None else bisect_left(pieces, number, key=_part)
        if place < len(pieces) and pieces[place].part in (None, number):
            found.append(pieces[place])
    return _with_rows([found]) if found else (held[0][0]._replace(part=number).without_rows(),)


def _part(piece: Piece) -> int:
    return piece.part or 0


def _with_rows(held: Sequence[Sequence[Piece]]) -> tuple[Piece, ...]:
    """The pieces that have rows; if none has, one for the columns."""
    return tuple(p for pieces in held for p in pieces if p.rows) or (held[0][0],)


def _tasks_of(job: StagedJob, side: int) -> range:
    """The map tasks of one side: branches of a side lie one behind another."""
    first = 0
    found: list[int] = []
    for branch in job.branches:
        if branch.side == side:
            found += range(first, first + branch.read.tasks)
        first += branch.read.tasks
    return range(found[0], found[-1] + 1)
