"""The node side of a staged query: runs the tasks that are sent to one node."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import duckdb

from queryard.core.model import TaskId
from queryard.engine.errors import QueryCancelled, QueryTimedOut

from .cancellation import Cancellation
from .exchange import Exchange
from .instance import Build, TaskInstance
from .task import TaskOutcome, TaskSpec, make_builds, run_task


class StagedNode:
    """One query at one node: its DuckDB instance, its build sides, and the tasks that run now.

    `run` may be called from many threads at once. `connection` and `exchange` are the caller's to
    close, after `close`.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, exchange: Exchange) -> None:
        self._instance = TaskInstance(connection)
        self._exchange = exchange
        self._lock = threading.Lock()
        self._running: dict[Cancellation, TaskId] = {}
        self._cancelled = False
        self._closed = False

    def run(self, spec: TaskSpec, cancelled: Cancellation | None = None) -> TaskOutcome:
        """Run one task on the calling thread; `cancelled` stops it, before it starts as well."""
        cancelled = cancelled or Cancellation()
        timer = None
        try:
            with self._entered(TaskId(spec.job, spec.kind, spec.index), cancelled):
                timer = _deadline(spec, cancelled)
                return run_task(spec, self._instance, self._exchange, cancelled)
        finally:
            if timer is not None:
                timer.cancel()
            self._exchange.settle()

    def prepare(self, task: TaskId, builds: Iterable[Build], cancelled: Cancellation) -> None:
        """Make the build sides of a task that must wait for other inputs tables already."""
        with self._entered(task, cancelled):
            make_builds(builds, self._instance, self._exchange, cancelled)

    @contextmanager
    def _entered(self, task: TaskId, cancelled: Cancellation) -> Iterator[None]:
        with self._lock:
            if self._cancelled:
                raise QueryCancelled("cancelled")
            self._running[cancelled] = task
        try:
            yield
        finally:
            with self._lock:
                del self._running[cancelled]

    def cancel(self, task: TaskId | None = None, wait_s: float = 5.0) -> None:
        """Stop one task; without one, stop all and let none start. Returns when they have stopped.

        The names of jobs are the plan's.
        """
        with self._lock:
            if task is None:
                self._cancelled = True
            found = [c for c, running in self._running.items() if task in (None, running)]
        for each in found:
            each.ask()
        deadline_s = time.monotonic() + wait_s
        for each in found:
            each.stop(wait_s=max(0.0, deadline_s - time.monotonic()))

    def close(self) -> None:
        """Stop all tasks, and drop the build sides."""
        self.cancel()
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._instance.close()

    def __enter__(self) -> StagedNode:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _deadline(spec: TaskSpec, cancelled: Cancellation) -> threading.Timer | None:
    """Stop the task when its time has come, if it has one."""
    if spec.deadline_s is None:
        return None
    cause = QueryTimedOut(f"task {spec.output.key} ran into the deadline of its query")
    timer = threading.Timer(max(0.0, spec.deadline_s - time.time()), cancelled.stop, [cause])
    timer.name = "queryard-deadline"
    timer.daemon = True
    timer.start()
    return timer
