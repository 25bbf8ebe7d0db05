"""Stops one task: it is interrupted where it is, and goes no further."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import duckdb

from queryard.engine.errors import QueryCancelled, QueryFailed, failure

_AGAIN_S = 0.005


class Cancellation:
    """Whether a task must stop, and the cursor to interrupt for that.

    It can be made before the task starts, so that a task can be stopped that is about to.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._cursor: duckdb.DuckDBPyConnection | None = None
        self._waits_for: threading.Condition | None = None
        self._together: Together | None = None
        self._cause: QueryFailed | None = None

    def ask(self, cause: QueryFailed | None = None) -> None:
        """Ask the task to stop as soon as it can; returns at once."""
        with self._changed:
            self._cause = self._cause or cause or QueryCancelled("cancelled")
            if self._cursor is not None:
                self._cursor.interrupt()
            waits_for, together = self._waits_for, self._together
        if together is not None:
            together.look()
        if waits_for is not None:
            with waits_for:
                waits_for.notify_all()

    def stop(self, cause: QueryFailed | None = None, wait_s: float = 5.0) -> None:
        """Stop the task; returns when it has stopped."""
        self.ask(cause)
        deadline_s = time.monotonic() + wait_s
        with self._changed:
            # A statement that was about to start does not notice the first interrupt: repeat.
            while time.monotonic() < deadline_s:
                if self._cursor is not None:
                    self._cursor.interrupt()
                elif self._together is None or not self._together.look():
                    break
                self._changed.wait(_AGAIN_S)

    @property
    def is_asked(self) -> bool:
        """Whether the task must stop."""
        return self._cause is not None

    def take_part(self, together: Together | None) -> None:
        """The task does something together with others from now on, or by itself again."""
        with self._changed:
            self._together = together
            self._changed.notify_all()

    def check(self) -> None:
        """Raise if the task must stop."""
        if self._cause is not None:
            raise self._cause

    def wait_for(self, changed: threading.Condition, is_so: Callable[[], bool]) -> None:
        """Sleep until something is so, of which `changed` is notified; raise if the task must stop.

        The task must have no cursor meanwhile.
        """
        with self._changed:
            self._waits_for = changed
        try:
            with changed:
                changed.wait_for(lambda: self._cause is not None or is_so())
        finally:
            with self._changed:
                self._waits_for = None
        self.check()

    def told(self, error: Exception) -> QueryFailed:
        """What DuckDB's error means: that the task was stopped, or a failure of its own."""
        return self._cause or failure(str(error))

    @contextmanager
    def interrupting(self, cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """The task runs on this cursor, and nothing else does, as long as the context lasts."""
        with self._changed:
            self.check()
            self._cursor = cursor
        try:
            yield
        finally:
            with self._changed:
                self._cursor = None
                self._changed.notify_all()


class Together:
    """Stops what several tasks do together, once all of them must stop."""

    def __init__(self, tasks: Sequence[Cancellation]) -> None:
        self._tasks = tasks
        self._lock = threading.Lock()
        self._cursor: duckdb.DuckDBPyConnection | None = None

    def look(self) -> bool:
        """Interrupt it if no task is left; whether that is so."""
        if not all(task.is_asked for task in self._tasks):
            return False
        with self._lock:
            if self._cursor is not None:
                self._cursor.interrupt()
        return True

    def check(self) -> None:
        """Raise if all must stop."""
        if self.look():
            self._tasks[0].check()

    @contextmanager
    def interrupting(self, cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """What they do together runs on this cursor as long as the context lasts."""
        with self._lock:
            self._cursor = cursor
        for task in self._tasks:
            task.take_part(self)
        try:
            self.check()
            yield
        finally:
            for task in self._tasks:
                task.take_part(None)
            with self._lock:
                self._cursor = None
