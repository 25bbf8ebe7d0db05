"""Runs the tasks of a staged plan, each as one DuckDB statement, in whatever thread asks."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import duckdb
import pyarrow as pa

from queryard.core.model import Kind
from queryard.engine.errors import QueryCancelled, failure
from queryard.sql.planner.plan import PART, ChunkRead, StagedJob, StagedPlan, TableRead, TaskText

from .exchange import Exchange
from .store import Store


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
        with self._working() as cursor:
            try:
                inputs = self._inputs(job, task.kind, task.index, text)
                for name in text.builds:
                    self._build(name, cursor)
                table = self._executed(cursor, text.sql, inputs)
                self._keep(job, task, text, table)
            except duckdb.Error as error:
                if self._cancelled:
                    raise QueryCancelled("cancelled") from error
                raise failure(str(error)) from error
        outcome = TaskOutcome(table.nbytes, table.num_rows, time.perf_counter() - started_s)
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

    def _executed(
        self, cursor: duckdb.DuckDBPyConnection, sql: str, inputs: Mapping[str, pa.Table]
    ) -> pa.Table:
        for name, table in inputs.items():
            cursor.register(name.strip('"'), table)
        try:
            return cursor.sql(sql).to_arrow_table()
        finally:
            for name in inputs:
                cursor.unregister(name.strip('"'))

    def _keep(self, job: StagedJob, task: TaskName, text: TaskText, table: pa.Table) -> None:
        if text.side is not None:
            self._exchange(job).put(task.index, table)
        else:
            self._store.put(("result", job.name, task.index), table.schema, table.to_batches())

    def _build(self, name: str, cursor: duckdb.DuckDBPyConnection) -> None:
        """Make the result of a job a table for all tasks, unless somebody has."""
        with self._built[name]:
            if name in self._ready:
                return
            job = self.plan.job(name)
            rows = self._results(name, tuple(range(job.result_tasks)))
            cursor.register(f"rows_{name}", rows)
            try:
                cursor.execute(
                    f"CREATE OR REPLACE TABLE {self._schema}.build_{name} AS "
                    f"SELECT {self.plan.unpacked(name)} FROM rows_{name}"
                )
            finally:
                cursor.unregister(f"rows_{name}")
            self._ready.add(name)
            self._store.reserve(rows.nbytes)

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
        held = [self._store.get(("result", job.name, i)) for i in range(job.result_tasks)]
        names = [field.name for field in self.plan.fields]
        schema = pa.schema(
            [f.with_name(n) for f, n in zip(held[0].schema, names, strict=True)],
        )
        batches = (
            pa.RecordBatch.from_arrays(batch.columns, schema=schema)
            for each in held
            for batch in each.batches
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
        """Intermediate rows in memory, build sides included."""
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


def _tasks_of(job: StagedJob, side: int) -> range:
    """The map tasks of one side: branches of a side lie one behind another."""
    first = 0
    found: list[int] = []
    for branch in job.branches:
        if branch.side == side:
            found += range(first, first + branch.read.tasks)
        first += branch.read.tasks
    return range(found[0], found[-1] + 1)
