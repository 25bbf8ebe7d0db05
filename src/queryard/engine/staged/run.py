"""Runs the tasks of a staged plan, each as one DuckDB statement, in whatever thread asks."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import duckdb
import pyarrow as pa

from queryard.core.model import Kind
from queryard.engine.errors import QueryCancelled, QueryFailed, failure
from queryard.sql.planner.plan import PART, ChunkRead, StagedJob, StagedPlan, TableRead, TaskText

from .exchange import Exchange, Sending
from .store import EntryWriter, MissingRows, Store

# A batch is in hand before it is counted: as many rows as cost no time, of so many bytes.
_MOST_BATCH_ROWS = 16_384
_LEAST_BATCH_ROWS = 2_048
_BATCH_BYTES = 4 << 20
_BATCH_SHARE = 1 / 64  # of the budget at most


class TaskName(Protocol):
    """What names a task: `queryard.core.model.TaskId` does."""

    @property
    def job(self) -> str: ...
    @property
    def kind(self) -> Kind: ...
    @property
    def index(self) -> int: ...


class TaskOutcome(NamedTuple):
    """What a task made, and how long it took."""

    output_bytes: float
    rows: int
    seconds: float


@dataclass(frozen=True, slots=True)
class JobActuals:
    """What a job really did, for EXPLAIN ANALYZE; tasks that ran twice count once."""

    rows: int
    bytes: float
    seconds: float
    tasks_done: int
    shuffled_rows: int
    shuffled_bytes: float


class StagedRun:
    """One execution of a plan on a DuckDB instance that others may use at the same time.

    `run` may be called from any thread, once all tasks that the task needs have run: each thread
    works on a cursor of its own, so `threads=1` in the instance is one core for each caller.
    Running a task again replaces its output by the same rows. Build sides are made into tables of
    a schema of this run, once; everything is dropped by `close`.
    """

    def __init__(
        self,
        plan: StagedPlan,
        instance: duckdb.DuckDBPyConnection,
        memory_bytes: float,
        temp_directory: str | Path | None = None,
    ) -> None:
        self.plan = plan
        self._instance = instance
        self._store = Store(memory_bytes, temp_directory)
        self._schema = f"staged_{uuid.uuid4().hex}"
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._cursors: dict[int, duckdb.DuckDBPyConnection] = {}
        self._running: set[int] = set()
        self._built: dict[str, threading.Lock] = {job.name: threading.Lock() for job in plan.jobs}
        self._ready: set[str] = set()
        self._read_as_rows = {
            branch.read.job
            for job in plan.jobs
            for branch in job.branches
            if isinstance(branch.read, ChunkRead)
        } | {plan.jobs[-1].name}
        self._outcomes: dict[tuple[str, Kind, int], TaskOutcome] = {}
        self._cancelled = False
        self._closed = False
        instance.cursor().execute(f"CREATE SCHEMA {self._schema}")

    # ------------------------------------------------------------------ tasks

    def run(self, task: TaskName) -> TaskOutcome:
        """Run one task in the calling thread; its errors are DuckDB's, told for the user."""
        job = self.plan.job(task.job)
        text = self.plan.task(task.job, task.kind, task.index)
        started_s = time.perf_counter()
        spilled_bytes = self._store.spilled_bytes
        with self._working() as cursor:
            try:
                inputs = self._inputs(job, task.kind, task.index, text)
                for name in text.builds:
                    self._build(name, cursor)
                with _registered(cursor, inputs):
                    made = self._streamed(cursor, job, task, text)
            except duckdb.Error as error:
                raise self._failure(error) from error
        if self._store.spilled_bytes > spilled_bytes:
            _trim_allocators()
        outcome = TaskOutcome(*made, time.perf_counter() - started_s)
        with self._lock:
            self._outcomes[task.job, task.kind, task.index] = outcome
        return outcome

    def _inputs(
        self, job: StagedJob, kind: Kind, index: int, text: TaskText
    ) -> dict[str, pa.Table]:
        """The Arrow tables a task reads, by the names they have in its SQL."""
        if kind == "reduce":
            exchange = self._exchange(job)
            return {
                f"x_{job.name}_{side}": exchange.get(index, _tasks_of(job, side))
                for side in range(job.sides)
            }
        read = text.read
        if isinstance(read, ChunkRead):
            return {f"in_{read.job}": self._results(read.job, read.groups[text.place])}
        if isinstance(read, TableRead) and read.splits:
            split = read.splits[text.place]
            if split.frame is not None:
                return {split.relation: split.frame}
        return {}

    def _streamed(
        self, cursor: duckdb.DuckDBPyConnection, job: StagedJob, task: TaskName, text: TaskText
    ) -> tuple[float, int]:
        """Run a task's statement and keep its rows as they come; their bytes and number."""
        size, rows = 0, 0
        batch_rows = self._batch_rows(job, task.kind)
        with closing(cursor.sql(text.sql).to_arrow_reader(batch_rows)) as reader:
            schema = reader.schema
            if text.side is not None:
                kept: EntryWriter | Sending = self._exchange(job).open(task.index, schema)
            else:
                kept = self._store.open(("result", job.name, task.index), schema)
            with kept:
                while (batch := self._next(reader)) is not None:
                    kept.append(batch)
                    size += batch.nbytes
                    rows += batch.num_rows
                kept.commit()
        return size, rows

    def _batch_rows(self, job: StagedJob, kind: Kind) -> int:
        """How many rows to take at once, by the width of those that tasks like it have made."""
        with self._lock:
            like = [
                o for (name, k, _), o in self._outcomes.items() if (name, k) == (job.name, kind)
            ]
        rows = sum(outcome.rows for outcome in like)
        if rows:
            width_bytes = sum(outcome.output_bytes for outcome in like) / rows
        else:
            width_bytes = job.bytes_expected / max(job.rows_expected, 1.0)
        wanted_bytes = min(_BATCH_BYTES, self._store.memory_bytes * _BATCH_SHARE)
        wanted = int(wanted_bytes / max(width_bytes, 1.0))
        return min(max(wanted, _LEAST_BATCH_ROWS), _MOST_BATCH_ROWS)

    def _next(self, reader: pa.RecordBatchReader) -> pa.RecordBatch | None:
        if self._cancelled:
            raise QueryCancelled("cancelled")
        try:
            return reader.read_next_batch()
        except StopIteration:
            return None
        except (OSError, pa.ArrowException) as error:
            # Arrow's way to tell what DuckDB says in the middle of a stream.
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> QueryFailed:
        return QueryCancelled("cancelled") if self._cancelled else failure(str(error))

    def _build(self, name: str, cursor: duckdb.DuckDBPyConnection) -> None:
        """Make the result of a job a table for all tasks, unless somebody has."""
        with self._built[name]:
            if name in self._ready:
                return
            job = self.plan.job(name)
            rows = self._results(name, tuple(range(job.result_tasks)))
            with _registered(cursor, {f"rows_{name}": rows}):
                cursor.execute(
                    f"CREATE OR REPLACE TABLE {self._schema}.build_{name} AS "
                    f"SELECT {self.plan.unpacked(name)} FROM rows_{name}"
                )
            self._ready.add(name)
            if name not in self._read_as_rows:
                # The table lies within the instance's limit; twice is once too often.
                for index in range(job.result_tasks):
                    self._store.drop(("result", name, index))

    def _results(self, job: str, chunks: tuple[int, ...]) -> pa.Table:
        held = [self._store.get(("result", job, index)) for index in chunks]
        batches = [batch for each in held for batch in each.batches]
        return pa.Table.from_batches(batches, held[0].schema)

    def _exchange(self, job: StagedJob) -> Exchange:
        return Exchange(job.name, job.partitions, PART, self._store)

    @contextmanager
    def _working(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """The calling thread's cursor, known to `cancel` while it is used."""
        me = threading.get_ident()
        with self._lock:
            if self._cancelled or self._closed:
                raise QueryCancelled("cancelled")
            cursor = self._cursors.get(me)
            if cursor is None:
                cursor = self._instance.cursor()
                cursor.execute(f"USE {self._schema}")
                self._cursors[me] = cursor
            self._running.add(me)
        try:
            yield cursor
        finally:
            with self._lock:
                self._running.discard(me)
                self._idle.notify_all()

    # ------------------------------------------------------------------ the whole

    def cancel(self, wait_s: float = 5.0) -> None:
        """Interrupt all running tasks and let none start; returns when they have stopped."""
        deadline_s = time.monotonic() + wait_s
        with self._lock:
            self._cancelled = True
            # A statement that was about to start does not notice the first interrupt: repeat.
            while self._running and time.monotonic() < deadline_s:
                for thread in self._running:
                    self._cursors[thread].interrupt()
                self._idle.wait(0.005)

    def result(self) -> pa.RecordBatchReader:
        """The answer, with DuckDB's column names; all jobs must be done."""
        job = self.plan.jobs[-1]
        keys = [("result", job.name, index) for index in range(job.result_tasks)]
        if missing := [key for key in keys if key not in self._store]:
            raise MissingRows(f"no rows under {missing[0]!r}: the task that makes them has not run")
        names = [field.name for field in self.plan.fields]
        schema = pa.schema(
            [f.with_name(n) for f, n in zip(self._store.get(keys[0]).schema, names, strict=True)],
        )
        batches = (
            pa.RecordBatch.from_arrays(batch.columns, schema=schema)
            for key in keys
            for batch in self._store.get(key).batches
        )
        return pa.RecordBatchReader.from_batches(schema, batches)

    def actuals(self) -> dict[str, JobActuals]:
        """What every job has done so far."""
        with self._lock:
            outcomes = dict(self._outcomes)
        found = {}
        for job in self.plan.jobs:
            mine = {key: o for key, o in outcomes.items() if key[0] == job.name}
            last = "reduce" if job.partitions else "map"
            results = [o for key, o in mine.items() if key[1] == last]
            sent = [o for key, o in mine.items() if key[1] != last]
            found[job.name] = JobActuals(
                rows=sum(o.rows for o in results),
                bytes=sum(o.output_bytes for o in results),
                seconds=sum(o.seconds for o in mine.values()),
                tasks_done=len(mine),
                shuffled_rows=sum(o.rows for o in sent),
                shuffled_bytes=sum(o.output_bytes for o in sent),
            )
        return found

    @property
    def memory_used_bytes(self) -> float:
        """Intermediate rows in memory, apart from build sides: those are in the instance."""
        return self._store.memory_used_bytes

    @property
    def spilled_bytes(self) -> float:
        """Intermediate rows written to files so far."""
        return self._store.spilled_bytes

    def close(self) -> None:
        """Free everything: running tasks are cancelled, tables dropped, files removed."""
        self.cancel()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            cursors = list(self._cursors.values())
            self._cursors.clear()
        for cursor in cursors:
            cursor.close()
        self._store.close()
        with self._instance.cursor() as cursor:
            cursor.execute(f"DROP SCHEMA IF EXISTS {self._schema} CASCADE")

    def __enter__(self) -> StagedRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _trim_allocators() -> None:
    """Give the system what was freed; allocators keep it, and memory is short where rows spill."""
    pa.default_memory_pool().release_unused()
    pa.system_memory_pool().release_unused()  # of malloc, which DuckDB's Arrow batches come from


@contextmanager
def _registered(
    cursor: duckdb.DuckDBPyConnection, inputs: Mapping[str, pa.Table]
) -> Iterator[None]:
    """Let SQL read Arrow tables under names."""
    names = [name.strip('"') for name in inputs]
    try:
        for name, table in zip(names, inputs.values(), strict=True):
            cursor.register(name, table)
        yield
    finally:
        for name in names:
            cursor.unregister(name)


def _tasks_of(job: StagedJob, side: int) -> range:
    """The map tasks of one side: branches of a side lie one behind another."""
    first = 0
    found: list[int] = []
    for branch in job.branches:
        if branch.side == side:
            found += range(first, first + branch.read.tasks)
        first += branch.read.tasks
    return range(found[0], found[-1] + 1)
