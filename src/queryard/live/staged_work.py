"""A staged query: jobs of map and reduce tasks that the kernel schedules one by one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from queryard.core.events import EstimateChanged
from queryard.core.model import Job, Kind, TaskId
from queryard.engine.errors import QueryCancelled, QueryFailed
from queryard.engine.pool import InstancePool
from queryard.engine.staged import JobActuals, StagedRun
from queryard.engine.staged.instance import open_instance
from queryard.results.streams import ResultStream
from queryard.sql.planner import StagedPlan

from .prediction import task_seconds

if TYPE_CHECKING:
    from queryard.results.explanation import Explanation

    from .session import Session


class StagedWork:
    """Its tasks run where the backend has slots; its rows are handed over at the end.

    The first task opens a DuckDB instance, with memory that `pool` lends until the end: only then
    has the kernel found room for the query.
    """

    def __init__(
        self,
        plan: StagedPlan,
        output: ResultStream,
        memory_bytes: int,
        pool: InstancePool,
        temp: Path,
        give_up: Callable[[BaseException], None],
    ) -> None:
        self.plan = plan
        self.output = output
        self.started = False
        self.ended = False
        self.reasons: tuple[str, ...] = ()
        self.error: BaseException | None = None
        self._give_up = give_up
        self._lock = threading.Lock()
        self._handing_over = False
        self._done: set[TaskId] = set()
        self._actuals: dict[str, JobActuals] = {}
        self._memory_bytes = memory_bytes
        self._pool = pool
        self._temp = temp
        self._open: ExitStack | None = None
        self._run: StagedRun | None = None

    def jobs(self) -> tuple[Job, ...]:
        return self.plan.to_jobs()

    def estimates(self, query: str) -> list[EstimateChanged]:
        """What is expected of the tasks of each job."""
        return [
            EstimateChanged(0.0, f"{query}/{job}", map_s=map_s, reduce_s=reduce_s)
            for job, (map_s, reduce_s) in task_seconds(self.plan).items()
        ]

    # --- for the backend ---------------------------------------------------------------------

    def run(self, job: str, kind: Kind, index: int) -> float:
        """Run one task on the calling thread; the bytes it made."""
        self.started = True
        task = TaskId(job, kind, index)
        try:
            made = self._opened().run(task).output_bytes
        except QueryCancelled:
            raise
        except QueryFailed as error:
            # The same statement would fail again: tell the user instead of trying.
            self._give_up(error)
            raise
        with self._lock:
            self._done.add(task)
        return made

    def _opened(self) -> StagedRun:
        with self._lock:
            if self.ended or self._handing_over:
                raise QueryCancelled("cancelled")
            if self._run is None:
                with ExitStack() as opening:
                    self._pool.lend(self._memory_bytes)
                    opening.callback(self._pool.take_back, self._memory_bytes)
                    # Half for the statements, half for the rows that pass between them.
                    half = self._memory_bytes // 2
                    instance = opening.enter_context(open_instance(half, self._temp))
                    run = StagedRun(self.plan, instance, half, self._temp)
                    self._run = opening.enter_context(run)
                    self._open = opening.pop_all()
            return self._run

    # --- for the session ---------------------------------------------------------------------

    def finish(self) -> None:
        """All tasks are done: hand over the rows, and free everything else."""
        with self._lock:
            if self.ended or self._run is None:
                return
            self._handing_over = True
            run = self._run
        error: BaseException | None = None
        try:
            reader = run.result()
            self.output.start(reader.schema, tuple(field.type for field in self.plan.fields))
            for batch in reader:
                if self._cancelled():
                    break
                self.output.put(batch)
        except BaseException as caught:
            error = caught
        finally:
            self._close()
        with self._lock:
            if self._cancelled():
                return
            self.ended = True
            self.error = error
        if error is None:
            self.output.finish()
        else:
            self.output.fail(error)

    def cancel(self, error: BaseException) -> None:
        """Stop all tasks; what they made is dropped when none runs any more."""
        with self._lock:
            if self.ended:
                return
            self.ended = True
            self.error = error
            handing_over = self._handing_over
        self.output.fail(error)
        if not handing_over:
            self._close()

    def _cancelled(self) -> bool:
        return self.ended

    def _close(self) -> None:
        with self._lock:
            run, self._run = self._run, None
            opened, self._open = self._open, None
        if run is not None and opened is not None:
            self._actuals = run.actuals()
            opened.close()

    # --- for people --------------------------------------------------------------------------

    def progress(self) -> float:
        every = sum(job.map_tasks + job.partitions for job in self.plan.jobs)
        return len(self._done) / max(every, 1)

    def explain(self, session: Session) -> Explanation:
        from .explanation import staged_explanation

        run = self._run
        return staged_explanation(self.plan, self._actuals if run is None else run.actuals())
