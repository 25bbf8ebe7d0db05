"""From a query that was asked for to the kernel, and from its end back to whoever asked.

A native query that needs the session's connection stands in line for it. One that is to be staged
is planned on a thread of its own. All others go to the kernel at once.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from queryard.backends.local import NODE, LocalBackend
from queryard.core.errors import QueryardError
from queryard.core.events import NodeJoined, QueryCancelled, QuerySubmitted
from queryard.core.model import Node, Query, query_ids
from queryard.core.scheduler import Scheduler
from queryard.engine import errors
from queryard.engine.capi import library
from queryard.engine.classify import Classified
from queryard.engine.native import Budget, NativeEngine, Parameters
from queryard.engine.results import ResultStream
from queryard.engine.session import SessionInstance
from queryard.engine.temp import TempSpace
from queryard.sql.catalog import Catalog

from .asked import Asked
from .driver import Driver
from .handle import Record
from .work import NATIVE_JOB, NativeWork, Work

CLOSE_S = 10.0


@dataclass(frozen=True, slots=True)
class _Turn:
    """A query in line for the session's connection."""

    record: Record
    asked: Asked


class Dispatch:
    """One kernel, one backend, one engine, and the queries on their way."""

    def __init__(
        self,
        catalog: Catalog,
        scheduler: Scheduler,
        slots: int,
        budget: Budget,
        temp: TempSpace,
        writes: bool,
    ) -> None:
        self._catalog = catalog
        self._slots = slots
        self._temp = temp
        self.engine = NativeEngine(catalog, slots, budget, temp.path, writes)
        self._lock = threading.Lock()
        self._records: dict[str, Record] = {}
        self._ids = query_ids(uuid.uuid4().hex[:12])
        # Queries that need the session's connection, and the one that has it.
        self._turns: deque[_Turn] = deque()
        self._at_turn: _Turn | None = None
        self._turn_over = threading.Condition(self._lock)
        self._closed = False
        self._pool_bytes = budget.pool_bytes
        # Of all queries on their way, those that wait for memory included.
        self._reserved_bytes = 0
        # Who wants to change the session's instance between two statements.
        self._changes = 0
        self._driver = Driver(scheduler, self)
        self._backend = LocalBackend(slots, self._driver.post)
        self._driver.start(self._backend)
        self._driver.post(NodeJoined(0.0, Node(NODE, slots, float(budget.pool_bytes))))

    # --- queries come ------------------------------------------------------------------------

    def enter(self, asked: Asked) -> Record:
        """Start a query now, or put it in line for the session's connection."""
        with self._lock:
            self._check_open()
            # What a statement in line will leave behind is not known yet.
            after_others = any(
                turn is not None and turn.asked.leaves_something
                for turn in (self._at_turn, *self._turns)
            )
            in_line = after_others or self._needs_connection(asked)
            output = self._output(in_line or asked.plan == "staged")
            record = Record(next(self._ids), asked.sql, output, asked.leaves_something)
            self._records[record.id] = record
            if in_line:
                self._turns.append(_Turn(record, asked))
                self._next_turn()
                return record
            try:
                self._start(record, asked)
            except BaseException as error:
                self._drop(record, error)
                raise
            return record

    def _output(self, never_full: bool) -> ResultStream:
        """A slow reader pauses its query, unless that would hold up what comes after it."""
        return ResultStream(self._temp.file(".arrow") if never_full else None)

    def _needs_connection(self, asked: Asked) -> bool:
        return any(map(self.engine.session.must_run, asked.statements))

    def _next_turn(self) -> None:
        """Start queries in line until one of them holds the session's connection."""
        while self._at_turn is None and self._turns and not self._changes:
            turn = self._turns.popleft()
            if turn.record.ended:
                continue
            try:
                self._start(turn.record, turn.asked)
            except BaseException as error:
                self._drop(turn.record, error)
                continue
            work = turn.record.work
            if isinstance(work, NativeWork) and work.query.on_session:
                self._at_turn = turn

    def _start(self, record: Record, asked: Asked) -> None:
        if asked.plan == "staged":
            reason = self.not_staged(asked.statements, asked.parameters)
            if reason is None:
                self._backend.errand(lambda: self._stage(record, asked))
                return
            asked = replace(asked, plan="native", reasons=(reason,))
        self._begin(record, asked)

    def not_staged(self, statements: Sequence[Classified], parameters: Parameters) -> str | None:
        """Why the planner is not even asked; None if it is."""
        if len(statements) > 1:
            return "a script of several statements runs as it is"
        if not statements[0].reads:
            return f"{statements[0].kind} does more than read"
        if parameters:
            return "parameters are bound by DuckDB"
        return self.engine.session.reason(statements[0])

    def _begin(self, record: Record, asked: Asked) -> None:
        """Hand a native query to the kernel."""
        native = self.engine.query(
            asked.statements, record.output, asked.parameters, asked.memory_bytes
        )
        width = self._slots if library().leases else 1
        work = NativeWork(native, width, asked.reasons)
        record.work = work
        self._backend.add_native(f"{record.id}/{NATIVE_JOB}", native, width)
        pause = record.output.on_full

        def on_full() -> None:
            if self._is_crowded():
                record.output.overflow_into(self._temp.file(".arrow"))
            else:
                pause()

        record.output.on_full = on_full
        # The session's instance has memory of its own, which its queries share.
        self._submit(record, asked, work, 0 if native.on_session else asked.memory_bytes)

    def _stage(self, record: Record, asked: Asked) -> None:
        """Plan a query into jobs and hand them to the kernel; on a thread of its own."""
        # The planner takes half a second to import, and most sessions never need it.
        from queryard.sql.planner import plan_staged

        from .staged_work import StagedWork

        try:
            plan = plan_staged(asked.sql, self._catalog)
            work = StagedWork(
                plan,
                record.output,
                asked.memory_bytes,
                self.engine.pool,
                self._temp.path,
                lambda error: self._backend.errand(lambda: self.cancel(record.id, error)),
            )
        except QueryardError as error:
            with self._lock:
                if not record.ended:
                    native = replace(asked, plan="native", reasons=(str(error),))
                    if self._needs_connection(native):
                        self._turns.append(_Turn(record, native))
                        self._next_turn()
                    else:
                        self._begin(record, native)
            return
        except BaseException as error:
            # A mistake of the planner's, not of the user's: it must not pass for "cannot be split".
            with self._lock:
                if not record.ended:
                    self._drop(record, error)
            return
        with self._lock:
            if record.ended:
                work.cancel(errors.QueryCancelled("cancelled"))
                return
            record.work = work
            self._backend.add_staged(record.id, work)
            self._submit(record, asked, work, asked.memory_bytes)

    def _is_crowded(self) -> bool:
        """Whether somebody waits for memory, so that nobody may hold it for a slow reader.

        It is asked under the lock of a stream, and takes no other.
        """
        return self._reserved_bytes > self._pool_bytes

    def _submit(self, record: Record, asked: Asked, work: Work, memory_bytes: int) -> None:
        record.memory_bytes = memory_bytes
        self._reserved_bytes += memory_bytes
        if self._is_crowded():
            for other in self._records.values():
                if other.output.full:
                    other.output.overflow_into(self._temp.file(".arrow"))
        self._driver.post(
            QuerySubmitted(
                0.0,
                Query(
                    record.id,
                    work.jobs(),
                    tenant=asked.tenant,
                    priority=asked.priority,
                    memory_bytes=float(memory_bytes),
                    submit_s=self._driver.now(),
                ),
            )
        )

    # --- queries are stopped -----------------------------------------------------------------

    def cancel(self, query: str, error: BaseException | None = None) -> None:
        """Stop a query; unknown and ended ones are left alone."""
        error = error or errors.QueryCancelled("cancelled")
        with self._lock:
            record = self._records.get(query)
            if record is None:
                return
            if record.work is None:
                self._drop(record, error)
                return
        record.work.cancel(error)
        self._driver.post(QueryCancelled(0.0, query, str(error)))

    def limit(self, record: Record, seconds: float, written: str) -> None:
        """Stop a query if it takes longer than this, however it was written."""

        def stop() -> None:
            waiting = record.work is None or not record.work.started
            where = ", still waiting for its turn" if waiting else ""
            error = errors.QueryTimedOut(f"the query ran into its time limit of {written}{where}")
            self.cancel(record.id, error)

        self._driver.call_at(self._driver.now() + seconds, lambda: self._backend.errand(stop))

    def release(self, record: Record) -> None:
        """Nobody reads the rows of a query any more: free them, and cancel it if it only reads.

        It may be called by a finalizer, in the middle of anything: it waits for no lock.
        """

        def let_go() -> None:
            record.output.close()
            if not (record.leaves_something or (record.work is not None and record.work.ended)):
                self.cancel(record.id)

        self._driver.call(lambda: self._backend.errand(let_go))

    # --- queries end (on the driver's thread) ------------------------------------------------

    def finished(self, query: str) -> None:
        if (record := self._records.get(query)) is not None and record.work is not None:
            work = record.work
            if work.ended:
                self._settle(record, work)
            else:
                self._backend.errand(lambda: self._hand_over(record, work))

    def failed(self, query: str, cause: str) -> None:
        if (record := self._records.get(query)) is not None and record.work is not None:
            if record.work.error is None:
                record.work.cancel(errors.QueryFailed(cause))
            self._settle(record, record.work)

    def broken(self, error: BaseException) -> None:
        """The driver itself failed: nobody may wait for it."""
        with self._lock:
            self._closed = True
            for record in list(self._records.values()):
                if record.work is not None:
                    record.work.cancel(error)
                self._drop(record, error)

    def _hand_over(self, record: Record, work: Work) -> None:
        try:
            work.finish()
        finally:
            self._settle(record, work)

    def _settle(self, record: Record, work: Work) -> None:
        """Nothing of a query is left in the kernel and the engine."""
        with self._lock:
            self._backend.forget(record.id)
            if record.id in self._records:
                self._drop(record, work.error)
            if self._at_turn is not None and self._at_turn.record is record:
                self._at_turn = None
                self._turn_over.notify_all()
                self._next_turn()

    def _drop(self, record: Record, error: BaseException | None) -> None:
        del self._records[record.id]
        self._reserved_bytes -= record.memory_bytes
        record.end(error)

    # --- between queries ---------------------------------------------------------------------

    def with_session(self, change: Callable[[SessionInstance], None]) -> None:
        """Do something to the session's instance when no statement has it."""
        with self._lock:
            self._changes += 1
            try:
                self._turn_over.wait_for(lambda: self._at_turn is None or self._closed)
                self._check_open()
                change(self.engine.session)
            finally:
                self._changes -= 1
                self._next_turn()

    def _check_open(self) -> None:
        if self._closed:
            raise QueryardError("the session is closed; open another with queryard.connect")

    def close(self) -> None:
        """Cancel what runs, and free everything."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            records = list(self._records.values())
        for record in records:
            self.cancel(record.id, errors.QueryCancelled("the session was closed"))
        deadline = time.monotonic() + CLOSE_S
        for record in records:
            record.over.wait(max(0.0, deadline - time.monotonic()))
        # A Python function may go on for ever; its instance must not be closed under it.
        if self._backend.close(max(0.0, deadline - time.monotonic())):
            self.engine.close()
        self._driver.stop()
        self._temp.close()
