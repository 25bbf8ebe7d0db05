"""A staged query: jobs of map and reduce tasks that the kernel schedules one by one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from queryard.core.events import EstimateChanged
from queryard.core.model import Job, TaskId
from queryard.engine.errors import QueryCancelled, QueryFailed, failure_kind
from queryard.engine.pool import InstancePool
from queryard.engine.results import ResultStream
from queryard.engine.staged.cancellation import Cancellation
from queryard.engine.staged.instance import open_instance
from queryard.engine.staged.local_exchange import LocalExchange
from queryard.engine.staged.node import StagedNode
from queryard.engine.staged.query import StagedQuery
from queryard.sql.planner import StagedPlan

from .prediction import task_seconds

if TYPE_CHECKING:
    from .explanation import Explanation
    from .session import Session


class _Opened(NamedTuple):
    """What a query has while its tasks run."""

    node: StagedNode
    exchange: LocalExchange
    to_close: ExitStack


class StagedWork:
    """Its tasks run where the backend has slots; its rows are handed over at the end.

    The first task opens a DuckDB instance, with memory that `pool` lends until the end: only then
    has the kernel found room for the query.
    """

    def __init__(
        self,
        plan: StagedPlan,
        query: str,
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
        self._query = StagedQuery(plan, query, memory_bytes)
        self._give_up = give_up
        self._lock = threading.Lock()
        self._handing_over = False
        self._memory_bytes = memory_bytes
        self._pool = pool
        self._temp = temp
        self._open: _Opened | None = None
        self._launches: dict[int, Cancellation] = {}
        self._last_error: BaseException | None = None

    def jobs(self) -> tuple[Job, ...]:
        return self.plan.to_jobs()

    def estimates(self, query: str) -> list[EstimateChanged]:
        """What is expected of the tasks of each job."""
        return [
            EstimateChanged(0.0, f"{query}/{job}", map_s=map_s, reduce_s=reduce_s)
            for job, (map_s, reduce_s) in task_seconds(self.plan).items()
        ]

    # --- for the backend ---------------------------------------------------------------------

    def run(self, launch: int, task: TaskId) -> float:
        """Run one task of a launch on the calling thread; the bytes it made.

        The task's job has the plan's name.
        """
        self.started = True
        cancelled = self._launch(launch)
        try:
            outcome = self._opened().node.run(self._query.spec(task, launch), cancelled)
        except BaseException as error:
            self._last_error = error
            if failure_kind(error) == "never":
                # The same task would fail again: tell the user instead of trying.
                self._give_up(error)
            raise
        finally:
            with self._lock:
                self._launches.pop(launch, None)
        self._query.done(task, outcome)
        return outcome.output_bytes

    def kill(self, launch: int) -> None:
        """Stop the task of one launch; returns when it has stopped."""
        self._launch(launch).stop(QueryCancelled("killed"))

    def _launch(self, launch: int) -> Cancellation:
        with self._lock:
            return self._launches.setdefault(launch, Cancellation())

    def _opened(self) -> _Opened:
        with self._lock:
            if self.ended or self._handing_over:
                raise QueryCancelled("cancelled")
            if self._open is None:
                with ExitStack() as opening:
                    self._pool.lend(self._memory_bytes)
                    opening.callback(self._pool.take_back, self._memory_bytes)
                    # Half for the statements, half for the rows that pass between them.
                    half = self._memory_bytes // 2
                    instance = opening.enter_context(open_instance(half, self._temp))
                    exchange = LocalExchange(half, self._temp)
                    opening.callback(exchange.close)
                    self._query.publish(exchange)
                    node = opening.enter_context(StagedNode(instance, exchange))
                    self._open = _Opened(node, exchange, opening.pop_all())
            return self._open

    # --- for the session ---------------------------------------------------------------------

    def finish(self) -> None:
        """All tasks are done: hand over the rows, and free everything else."""
        with self._lock:
            if self.ended or self._open is None:
                return
            self._handing_over = True
            exchange = self._open.exchange
        error: BaseException | None = None
        try:
            reader = self._query.result(exchange)
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
            self.error = error = self._as_it_was(error)
            handing_over = self._handing_over
        self.output.fail(error)
        if not handing_over:
            self._close()

    def _as_it_was(self, error: BaseException) -> BaseException:
        """The error with the class of what it tells of: the kernel hands on causes as text."""
        last = self._last_error
        if type(error) is QueryFailed and isinstance(last, QueryFailed) and str(last) in str(error):
            return type(last)(str(error))
        return error

    def _cancelled(self) -> bool:
        return self.ended

    def _close(self) -> None:
        with self._lock:
            opened, self._open = self._open, None
        if opened is not None:
            opened.to_close.close()

    # --- for people --------------------------------------------------------------------------

    def progress(self) -> float:
        every = sum(job.map_tasks + job.partitions for job in self.plan.jobs)
        return self._query.tasks_done / max(every, 1)

    def explain(self, session: Session) -> Explanation:
        from .explanation import staged_explanation

        return staged_explanation(self.plan, self._query.actuals())
