"""The driver side of a staged query: what its tasks are, what they have made, and where it lies."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator

import pyarrow as pa

from queryard.core.model import TaskId
from queryard.sql.planner.plan import PART, ChunkRead, StagedJob, StagedPlan, TableRead

from .actuals import JobActuals, job_actuals
from .batch_sizes import BatchSizes
from .cancellation import Cancellation
from .exchange import Exchange, Partitions, Piece
from .folding import Folds, FoldSpec
from .instance import Build
from .pieces import of_partition, with_rows
from .store import MissingRows
from .task import Input, Output, TaskOutcome, TaskSpec
from .task_graph import SegmentRead, TaskGraph, maps_of_side, missing, results_of


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
        self._made: dict[TaskId, None] = {}  # tasks that ended well, also if their rows were lost
        self._batches = BatchSizes(memory_bytes)
        self._folds = Folds()
        self._graph = TaskGraph(plan)
        self._jobs = self._graph.jobs
        kept = self._graph.read_as_rows()
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
                batch_rows=self._batches.rows(job, task.kind),
                memory_bytes=self.memory_bytes,
                deadline_s=deadline_s,
            )

    def segment(self, task: TaskId) -> SegmentRead | None:
        """The segment of text that a task reads; None if it reads something else."""
        return self._graph.segment(task)

    def fold_spec(self, job_name: str, attempt: int) -> FoldSpec | None:
        """What puts outputs of the maps of a job together, once enough of them have come.

        The outputs that it reads are this fold's from now on: `folded` or `unfolded` must follow.
        """
        job = self._jobs[job_name]
        if not job.fold_sql:
            return None
        with self._lock:
            if self._is_mapped(job_name):
                return None
            tasks = self._folds.begin(job_name, self._outcomes)
            if not tasks:
                return None
            fold = self._folds[job_name]
            held = [self._outcomes[task].pieces for task in tasks]
            pieces = [*fold.pieces, *(p for each in held for p in each)]
            key = f"{self.query}/{job_name}/fold{fold.number}"
            partitions = Partitions(PART, job.partitions) if job.partitions > 1 else None
            spec = TaskSpec(
                query=self.query,
                job=job_name,
                kind="map",
                index=tasks[0].index,
                attempt=attempt,
                sql=job.fold_sql,
                inputs=(Input(f"x_{job_name}_0", with_rows([pieces])),),
                builds=(),
                output=Output(key, partitions),
                batch_rows=self._batches.rows(job, "map"),
                memory_bytes=self.memory_bytes,
            )
            return FoldSpec(job_name, tuple(tasks), spec)

    def folded(self, found: FoldSpec, outcome: TaskOutcome) -> tuple[str, ...]:
        """Outputs were put together; the keys of what is not needed any more."""
        with self._lock:
            self._folds[found.job].busy = False
            if self._is_mapped(found.job):
                return (found.spec.output.key,)  # reduces may read the outputs as they were
            self._folds.end(found, outcome)
            dropped = dict.fromkeys(p.key for each in found.spec.inputs for p in each.pieces)
            dropped.update(dict.fromkeys(self._key(task) for task in found.tasks))
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
                maps = maps_of_side(job, side)
                fold = self._folds[job.name] if side == 0 else None
                held = [self._held(t) for t in maps if fold is None or t not in fold.tasks]
                if fold is not None and fold.pieces:
                    held.insert(0, fold.pieces)
                yield Input(f"x_{job.name}_{side}", of_partition(held, task.index))
            return
        branch, place = job.branch_of(task.index)
        read = branch.read
        if isinstance(read, ChunkRead):
            held = [self._held(each) for each in self._graph.chunk(read, place)]
            yield Input(f"in_{read.job}", with_rows(held))
        elif isinstance(read, TableRead) and read.is_frame(place):
            name = read.relation(place)
            yield Input(name, (self._frames[name],))

    def _build(self, name: str) -> Build:
        results = results_of(self._jobs[name])
        drop = tuple(map(self._key, results)) if name in self._dropped else ()
        pieces = with_rows([self._held(task) for task in results])
        return Build(name, self.plan.unpacked(name), pieces, drop)

    def _held(self, task: TaskId) -> tuple[Piece, ...]:
        outcome = self._outcomes.get(task)
        if outcome is None:
            raise MissingRows(f"no rows of {self._key(task)}: the task has not run")
        return outcome.pieces

    def _key(self, task: TaskId) -> str:
        return f"{self.query}/{task}"

    # --- what became of it ---------------------------------------------------------------------

    def done(self, task: TaskId, outcome: TaskOutcome) -> bool:
        """A task has run; False if rows of a later attempt stand, which count instead."""
        with self._lock:
            standing = self._outcomes.get(task)
            if standing is not None and outcome.attempt < standing.attempt:
                return False
            self._made[task] = None
            if self._folds.has(task):
                return False  # what it made before has been put together with that of others
            if self._graph.is_foldable(task):
                self._folds.wait(task)
            if task.kind == "map" and task not in self._outcomes:
                self._maps_done[task.job] += 1
                if self._is_mapped(task.job):
                    self._mapped.notify_all()
            self._outcomes[task] = outcome
            self._batches.note(task, outcome)
            return True

    def lost(self, place: str) -> tuple[TaskId, ...]:
        """A place is gone with the pieces there. Returns the tasks that lost their outputs."""
        with self._lock:
            gone = [
                task
                for task, outcome in self._outcomes.items()
                if any(piece.holder == place for piece in outcome.pieces)
            ]
            gone += [task for task in self._folds.lost(place) if task not in gone]
            self._forget(gone)
        return tuple(gone)

    def lost_outputs(self, outputs: Iterable[tuple[str, str]]) -> tuple[TaskId, ...]:
        """Some outputs, by key and place, are gone, though their places may not be.

        Returns the tasks that made them; not those whose rows lie at another place by now.
        """
        lost = frozenset(outputs)
        with self._lock:
            gone = [
                task
                for task, outcome in self._outcomes.items()
                if any((piece.key, piece.holder) in lost for piece in outcome.pieces)
            ]
            self._forget(gone)
        return tuple(gone)

    def _forget(self, gone: Iterable[TaskId]) -> None:
        for task in gone:
            del self._outcomes[task]
            self._maps_done[task.job] -= task.kind == "map"

    def missing(self, task: TaskId) -> tuple[TaskId, ...]:
        """The tasks of which a task reads the outputs, and which have none (any more)."""
        with self._lock:
            return tuple(dict.fromkeys(missing(self._graph.read_by(task), self._outcomes)))

    def needed(self) -> tuple[TaskId, ...]:
        """The tasks that must run, or run again, for the answer, in an order that works."""
        with self._lock:
            return self._graph.needed(self._outcomes)

    # --- the whole ------------------------------------------------------------------------------

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
        return tuple(results_of(self.plan.jobs[-1]))

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

    def pieces(self, task: TaskId) -> tuple[Piece, ...]:
        """Where the output of a task lies; raises `MissingRows`."""
        with self._lock:
            return self._held(task)

    def keys(self) -> tuple[str, ...]:
        """All keys under which rows of the query may lie, to drop them."""
        with self._lock:
            made = [self._key(task) for task in self._made]
            made += self._folds.keys()
        return (*made, *(piece.key for piece in self._frames.values()))

    def actuals(self) -> dict[str, JobActuals]:
        """What every job has done so far."""
        with self._lock:
            outcomes = dict(self._outcomes)
        return job_actuals(self.plan, outcomes)
