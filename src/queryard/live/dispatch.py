"""From a query that was asked for to the kernel, and from its end back to whoever asked.

A native query that needs the session's connection stands in line for it. One that is to be staged
is planned on a thread of its own. All others go to the kernel at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from queryard.backends.local import LocalBackend
from queryard.core.errors import QueryardError
from queryard.core.events import (
    Event,
    MemoryChanged,
    PolicyChosen,
    QueryCancelled,
    QuerySubmitted,
)
from queryard.core.model import Node, Query, query_ids
from queryard.core.scheduler import Scheduler
from queryard.engine import errors
from queryard.engine.classify import Classified
from queryard.engine.native import Budget, NativeEngine, Parameters
from queryard.engine.session import SessionInstance
from queryard.engine.temp import TempSpace
from queryard.sql.catalog import Catalog

from . import short_turns
from .asked import Asked
from .connection_line import ConnectionLine
from .driver import Driver
from .foresight import Foresight
from .gatekeeper import Gatekeeper
from .limits import Refused
from .local_nodes import LocalNodes
from .native_start import NativeStart
from .overlook import Overlook
from .prediction import Predictor
from .record import Record
from .recording import Recorder
from .resources import reservation, small_sizes
from .slow_readers import SlowReaders
from .waits import Waits
from .work import NativeWork, Work

CLOSE_S = 10.0
# How long after a query has begun an instance is made ready for the next one.
WHILE_S = 0.25


class Dispatch:
    """One kernel, one backend, one engine, and the queries on their way."""

    def __init__(
        self,
        catalog: Catalog,
        scheduler: Scheduler,
        nodes: Sequence[Node],
        budget: Budget,
        temp: TempSpace,
        writes: bool,
        gatekeeper: Gatekeeper,
        recorder: Recorder,
    ) -> None:
        self._catalog = catalog
        self._temp = temp
        self._gate = gatekeeper
        self._recorder = recorder
        self._lock = threading.RLock()
        self._records: dict[str, Record] = {}
        self._ids = query_ids(recorder.session)
        self._line = ConnectionLine(self._lock, self._start_in_line, self._concerns)
        self._closed = False
        self._broken = False
        self._most_bytes = reservation(None, budget.pool_bytes)
        self._readers = SlowReaders(budget.pool_bytes, temp.file)
        self._driver = Driver(scheduler, self)
        self._nodes = LocalNodes(nodes, self._driver.post)
        slots = self._nodes.slots
        self.engine = NativeEngine(catalog, slots, budget, temp.path, writes)
        self._foresight = Foresight(
            Predictor(catalog), self._driver.post, self._records, recorder.past
        )
        self._backend = LocalBackend(
            slots, self._driver.post, self._foresight.follow, self._nodes.speeds
        )
        self._native = NativeStart(
            catalog,
            self.engine,
            self._backend,
            gatekeeper,
            self._readers,
            self._most_bytes,
            budget.pool_bytes,
        )
        self.overlook = Overlook(self._driver, self._backend, recorder, self.records)
        self._foresight.forecasts_by(self.overlook)
        self._waits = Waits(self.overlook.fork, self.now)
        self._driver.start(self._backend)
        self.engine.spares.keep(small_sizes(budget.pool_bytes), self._in_a_while)

    def _in_a_while(self, work: Callable[[], None]) -> None:
        """Something that a program which asks a short question and ends can do without."""
        at_s = self._driver.now() + WHILE_S
        self._driver.call_at(at_s, lambda: self._backend.errand(work))

    # --- queries come ------------------------------------------------------------------------

    def now(self) -> float:
        """The session's clock."""
        return self._driver.now()

    def enter(self, asked: Asked) -> Record:
        """Start a query now, or put it in line for the session's connection."""
        self._check_open()
        wait_s = self._wait_s(asked)
        runs_since = self._native.look(asked)
        with self._lock:
            self._check_open()
            try:
                self._gate.check(asked, self._nodes.slots, wait_s)
            except Refused as error:
                self._recorder.refused(next(self._ids), asked, error, self.now())
                raise
            in_line = self._native.needs_connection(asked) or self._line.concerns(asked)
            output = self._readers.stream(in_line or asked.plan == "staged")
            record = Record(next(self._ids), asked, output, self.now())
            record.runs_since = runs_since
            self._foresight.expect(record)
            self._records[record.id] = record
            self._gate.enter(record)
            self._waits.entered(asked, record.expected_s / self._nodes.slots)
            short_turns.begin()
            if in_line:
                self._line.join(record, asked)
                return record
            try:
                self._start(record, asked)
            except BaseException as error:
                self._drop(record, error)
                raise
            return record

    def _wait_s(self, asked: Asked) -> float:
        """How long a query would wait, if that may be longer than some limit."""
        most_s = self._gate.doubtful_s(asked, self._nodes.slots)
        if most_s is None:
            return 0.0
        in_line_s = 0.0
        if self._native.needs_connection(asked):
            with self._lock:
                in_line_s = self._line.due_s / self._nodes.slots
        return max(in_line_s, self._waits.expected_s(asked, self._foresight.work_s(asked), most_s))

    def _concerns(self, earlier: Asked, later: Asked) -> bool:
        """Whether what a query leaves behind may matter to one that only reads."""
        return earlier.leaves_something and any(
            self.engine.session.concerns(left, statement)
            for left in earlier.statements
            for statement in later.statements
        )

    def _start_in_line(self, record: Record, asked: Asked) -> bool:
        """It is the turn of a query in line; whether it holds the session's connection now."""
        if record.ended:
            return False
        # Those before it in line may have changed files: it joins no run that is under way.
        record.runs_since = self._native.runs_made
        try:
            self._start(record, asked)
        except BaseException as error:
            self._drop(record, error)
            return False
        work = record.work
        return isinstance(work, NativeWork) and work.run.native.on_session

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
        work = self._native.work(record, asked)
        run = work.run
        self._submit(record, work, 0 if run.holder else run.memory_bytes)
        if run.holder is not None and run.holder is not record:
            # It may have begun since the record joined it.
            self._driver.post(MemoryChanged(0.0, record.id, 0.0))
            self._note_start(record)

    def _stage(self, record: Record, asked: Asked) -> None:
        """Plan a query into jobs and hand them to the kernel; on a thread of its own."""
        # The planner takes half a second to import, and most sessions never need it.
        from queryard.sql.planner import plan_staged

        from .staged_work import StagedWork

        memory_bytes = asked.memory_bytes or self._gate.most_bytes(asked, self._most_bytes)
        try:
            plan = plan_staged(asked.statements[0].sql, self._catalog)
            work = StagedWork(
                plan,
                record.output,
                memory_bytes,
                self.engine.pool,
                self._temp.path,
                lambda error: self._backend.errand(lambda: self.cancel(record.id, error)),
            )
        except QueryardError as error:
            with self._lock:
                if not record.ended:
                    native = replace(asked, plan="native", reasons=(str(error),))
                    if self._native.needs_connection(native):
                        self._line.join(record, native)
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
            record.meter = self._backend.add_staged(record.id, work)
            self._submit(record, work, memory_bytes)

    def _submit(self, record: Record, work: Work, memory_bytes: int) -> None:
        self._readers.reserve(record, memory_bytes)
        asked = record.asked
        query = Query(
            record.id,
            work.jobs(),
            tenant=asked.tenant,
            priority=asked.priority,
            memory_bytes=float(memory_bytes),
            submit_s=record.submitted_s,
            deadline_s=asked.deadline_s,
        )
        self._driver.post(QuerySubmitted(0.0, query), *work.estimates(record.id))
        self._recorder.asked(record)
        self._foresight.submitted(record)

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
        self._driver.post(*self._moved_memory(record), QueryCancelled(0.0, query, str(error)))

    def _moved_memory(self, record: Record) -> list[Event]:
        """Another one holds the memory of a run whose holder leaves."""
        run = record.run
        other = None if run is None else run.pass_on(record)
        if run is None or other is None:
            return []
        other.memory_bytes, record.memory_bytes = record.memory_bytes, other.memory_bytes
        return [
            MemoryChanged(0.0, record.id, 0.0),
            MemoryChanged(0.0, other.id, float(run.memory_bytes)),
        ]

    def limit(self, record: Record, seconds: float, written: str) -> None:
        """Stop a query if it takes longer than this, however it was written."""

        query = record.id  # the timer outlives a query that ends in time, and must not keep it

        def stop() -> None:
            found = self._records.get(query)
            if found is None:
                return
            waiting = found.work is None or not found.work.started
            where = ", still waiting for its turn" if waiting else ""
            error = errors.QueryTimedOut(f"the query ran into its time limit of {written}{where}")
            self.cancel(query, error)

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

    # --- what becomes of them (on the driver's thread) ---------------------------------------

    def began(self, query: str) -> None:
        """A slot was given to a query; with it, all who share its run begin."""
        record = self._records.get(query)
        if record is None or record.work is None:
            return
        run = record.run
        if run is None:
            self._note_start(record)
        elif (holder := run.hold(record)) is not None:
            for other in list(run.records):
                self._note_start(other)
                if other is not record:
                    self._driver.post(MemoryChanged(0.0, other.id, 0.0))
            if holder is not record:  # who has left meanwhile
                self._driver.post(MemoryChanged(0.0, holder.id, float(run.memory_bytes)))

    def _note_start(self, record: Record) -> None:
        if record.started_s is None:
            record.started_s = self.now()
            self._gate.started(record)

    def finished(self, query: str) -> None:
        if (record := self._records.get(query)) is not None and record.work is not None:
            work = record.work
            if work.ended:
                self._settle(record, work)
            else:
                self._backend.errand(lambda: self._hand_over(record, work))

    def failed(self, query: str, cause: str) -> None:
        if (record := self._records.get(query)) is not None and record.work is not None:
            work = record.work
            if isinstance(work, NativeWork) and work.run.again and not work.ended:
                self._backend.errand(lambda: self._begin_again(record, work))
                return
            if work.error is None:
                work.cancel(errors.QueryFailed(cause))
            self._settle(record, work)

    def _begin_again(self, record: Record, work: NativeWork) -> None:
        """It ran out of memory that was too little by guess: run it with what is usual."""
        with self._lock:
            if record.ended:
                return
            if work.ended:  # cancelled since the kernel let it go
                self._settle(record, work)
                return
            self._backend.forget(record.id)
            self._readers.free(record)
            self._native.over(work.run)
            most_bytes = self._gate.most_bytes(record.asked, self._most_bytes)
            record.asked = replace(record.asked, memory_bytes=most_bytes)
            record.twin_of = ""
            self._begin(record, record.asked)

    def broken(self, error: BaseException) -> None:
        """The driver itself failed: nobody may wait for it."""
        with self._lock:
            self._broken = True
            for record in list(self._records.values()):
                if record.work is not None:
                    record.work.cancel(error)
                self._drop(record, error)

    def scale(self, nodes: int) -> None:
        self._nodes.scale(nodes)

    def let_go(self, node: str) -> None:
        self._nodes.let_go(node)

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
                if isinstance(work, NativeWork) and work.run.native.ended:
                    self._native.over(work.run)
                    if work.error is None and work.run.holder is record:
                        self._foresight.learn(record, work.run.work_s)
                self._drop(record, work.error)
            self._line.left(record)

    def _drop(self, record: Record, error: BaseException | None) -> None:
        del self._records[record.id]
        self._readers.free(record)
        self._gate.left(record)
        short_turns.end()
        record.end(error, self.now())
        self._recorder.ended(record)

    # --- between queries ---------------------------------------------------------------------

    def records(self) -> list[Record]:
        """All on their way, the earliest first."""
        with self._lock:
            return list(self._records.values())

    def choose(self, profile: Mapping[str, Any]) -> None:
        """Follow another policy from now on; what runs is not disturbed."""
        self._driver.post(PolicyChosen(0.0, profile))

    def with_session(self, change: Callable[[SessionInstance], None]) -> None:
        """Do something to the session's instance when no statement has it."""
        with self._line.pause():
            self._check_open()
            change(self.engine.session)

    def _check_open(self) -> None:
        if self._closed:
            raise QueryardError("the session is closed; open another with queryard.connect")
        if self._broken:
            raise QueryardError(
                "the session's scheduler has failed, which is a mistake of Queryard's; close the "
                "session and open another with queryard.connect"
            )

    def close(self) -> None:
        """Cancel what runs, and free everything."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            records = list(self._records.values())
            self._line.close()
        for record in records:
            self.cancel(record.id, errors.QueryCancelled("the session was closed"))
        deadline = time.monotonic() + CLOSE_S
        for record in records:
            record.over.wait(max(0.0, deadline - time.monotonic()))
        # A Python function may go on for ever; its instance must not be closed under it.
        if self._backend.close(max(0.0, deadline - time.monotonic())):
            self.engine.close()
        self._foresight.close()
        self.overlook.note_cost()
        self._driver.stop()
        self._recorder.close()
        self._temp.close()
