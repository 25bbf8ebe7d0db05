"""Native execution: DuckDB plans and runs whole statements, on slots that are lent to them."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from queryard.results.streams import Output, ResultStream
from queryard.sql.catalog import Catalog

from .capi import library
from .classify import Classified
from .errors import QueryCancelled
from .instance import Connection
from .kept_tables import KeptColumns, KeptTables
from .places import OnPool, OnReadConnection, OnSession, Place
from .pool import InstancePool
from .segments import SegmentStore
from .session import SessionInstance
from .settings import Settings
from .spares import Spares
from .statement import Lease, Statement
from .views import explain_missing
from .written import refuse_written

Parameters = Sequence[Any] | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NativeStatement:
    """What is to be run for a client: a script of statements, and how.

    A very short one may sprint (see `statement`) if it only reads and has no parameters. `kept`
    are tables of text, with the columns that are read of them, which are read from parsed segments
    as far as these are kept.
    """

    statements: tuple[Classified, ...]
    parameters: Parameters
    memory_bytes: int
    sprints: bool
    client: SessionInstance
    settings: Settings = ()
    kept: KeptColumns = ()


class NativeEngine:
    """The pooled instances of one host, and which query runs where."""

    def __init__(
        self,
        catalog: Catalog,
        slots: int,
        pool_bytes: int,
        temp: Path,
        segments: SegmentStore | None = None,
    ) -> None:
        """Without a store of `segments` nothing that was parsed is kept."""
        _say_if_whole()
        self.catalog = catalog
        self.segments = SegmentStore(0.0) if segments is None else segments
        self.pool = InstancePool(slots, pool_bytes, temp)
        self.spares = Spares(self.pool, catalog)

    def open(self, given: NativeStatement, output: Output) -> NativeQuery:
        """A query that no slot has worked on yet."""
        statements, client = given.statements, given.client
        may = len(statements) == 1 and statements[0].reads
        may = may and not (given.parameters or statements[0].has_parameters)
        place: Place
        if client.must_run(statements):
            place = OnSession(client)
            may = False
        elif client.needs_read_connection(statements):
            place = OnReadConnection(client, given.settings)
        else:
            place = OnPool(
                self.pool,
                self.spares,
                self.catalog,
                given.memory_bytes,
                given.settings,
                attaches=not client.writes,
                kept=KeptTables(self.segments, given.kept),
            )
        return NativeQuery(place, statements, output, given.parameters, given.sprints and may)

    def close(self) -> None:
        self.pool.close()
        self.segments.close()


@cache
def _say_if_whole() -> None:
    """Warn once if the installed DuckDB cannot run a statement on several slots."""
    missing = library().missing_for_leases
    if missing:
        warnings.warn(
            f"the installed DuckDB does not export {', '.join(missing)}: each statement runs whole "
            "on one slot and cannot be paused; install the duckdb wheel from PyPI, version 2.0",
            RuntimeWarning,
            stacklevel=2,
        )


class NativeQuery:
    """One query of a user's: its statements one after another, the rows of the last one kept.

    The methods are those of a `Statement`; slots do not notice where one ends and the next begins.
    """

    def __init__(
        self,
        place: Place,
        statements: Sequence[Classified],
        output: Output,
        parameters: Parameters,
        sprints: bool = False,
    ) -> None:
        self.output = output
        self.error: BaseException | None = None
        self.started = False
        self.ended = False
        self._place = place
        self._statements = list(statements)
        self._parameters = parameters
        self._sprints = sprints
        self._changed = threading.Condition()
        self._entering = threading.Lock()
        self._at = 0
        self._current: Statement | None = None
        self._settling = False
        self._inside = 0
        self._left = False
        self._errors: dict[str, Exception] = {}
        self._tried: set[str] = set()
        output.on_room = self._wake

    @property
    def asked(self) -> tuple[Classified, Parameters]:
        """The statement that gives the answer, and its parameters."""
        return self._statements[-1], self._parameters

    @property
    def on_session(self) -> bool:
        """Whether it needs the session's connection, where one query runs at a time."""
        return self._place.on_session

    @property
    def pooled(self) -> bool:
        """Whether its memory is that of a pooled instance."""
        return self._place.pooled

    @property
    def computes(self) -> bool:
        """Whether slots compute now, and are not about to plan or to hand over rows."""
        statement = self._current
        return statement is not None and statement.stage == "running"

    @property
    def sprinting(self) -> bool:
        """Whether it need not be polled to see that it is ready."""
        return self._current is not None and self._current.sprinting

    @property
    def lost_sprint_s(self) -> float | None:
        """For how long it sprinted before it was stopped (0: it was not); None if it did not."""
        return None if self._current is None else self._current.lost_sprint_s

    @property
    def current_s(self) -> float:
        """For how long the statement at hand is being served; the others of a script are short."""
        return 0.0 if self._current is None else time.monotonic() - self._current.began_s

    @property
    def seems_ready(self) -> bool:
        """Whether DuckDB has said that rows are ready, and the next poll may confirm it."""
        return self._current is not None and self._current.seems_ready

    def memory_bytes(self) -> int | None:
        """Memory in use that cannot be evicted; None where that is not known."""
        return self._place.memory_bytes() if self.computes else None

    # --- from a slot's thread ----------------------------------------------------------------

    def serve(self, lease: Lease) -> None:
        """Work on it until the lease is withdrawn or the query has ended."""
        with self._changed:
            self._inside += 1
            self.started = True
        try:
            with self._entering:
                # Opening an instance is slow: do it without the lock.
                if not self.ended:
                    self._place.enter()
            while not lease.withdrawn and (statement := self._statement()) is not None:
                statement.serve(lease)
                if statement.stage == "ended":
                    self._settle(statement, lease)
        except BaseException as error:
            self._end(error)
        finally:
            self._go_out()

    def _statement(self) -> Statement | None:
        with self._changed:
            # One slot may still be recording the side effects of the previous statement.
            self._changed.wait_for(lambda: self.ended or not self._settling)
            if self.ended:
                return None
            if self._current is None:
                classified = self._statements[self._at]
                is_last = self._at == len(self._statements) - 1
                output: Output = self.output if is_last else _Ignored()
                self._current = Statement(
                    self._place.enter(),
                    classified.sql,
                    output,
                    self._parameters if is_last else (),
                    lambda connection, name: self._supply(classified, connection, name),
                    self._sprints,
                    self._place.shares_instance,
                )
            return self._current

    def _supply(self, statement: Classified, connection: Connection, name: str | None) -> bool:
        """Make the tables that a statement names, or one that it turned out to need."""
        if name is None:
            refuse_written(statement, self._parameters)
            self._errors = self._place.prepare(statement, connection, statement.names)
            return True
        if name.lower() in self._tried:
            return False
        self._tried.add(name.lower())
        self._errors |= self._place.prepare(statement, connection, {name.lower()})
        return True

    def _settle(self, statement: Statement, lease: Lease) -> None:
        """A statement has ended: go on to the next, or end with it."""
        if statement.error is not None:
            self._place.failed(self._statements[self._at])
            self._end(explain_missing(statement.error, self._errors, self._place.tables))
            return
        with self._changed:
            if not statement.gone or self._settling:
                # Other slots are still inside, or one of them does the rest.
                self._changed.wait_for(
                    lambda: lease.withdrawn or self.ended or self._current is not statement
                )
                return
            if self._current is not statement:
                return
            self._settling = True
        self._place.after(self._statements[self._at])
        if self._at + 1 == len(self._statements):
            self._end(None)
            return
        with self._changed:
            self._settling = False
            self._current = None
            self._at += 1
            self._changed.notify_all()

    # --- from outside ------------------------------------------------------------------------

    def poll(self) -> None:
        if (statement := self._current) is not None:
            statement.poll()

    def progress(self) -> float:
        """Share done, 0 to 1."""
        if self.ended:
            return 1.0
        here = self._current.progress() if self._current is not None else 0.0
        return min(1.0, (self._at + here) / len(self._statements))

    def withdraw(self, lease: Lease) -> None:
        with self._changed:
            lease.withdrawn = True
            statement = self._current
            self._changed.notify_all()
        if statement is not None:
            statement.withdraw(lease)

    def cancel(self, error: BaseException | None = None) -> None:
        self._end(error or QueryCancelled("cancelled"))

    def _wake(self) -> None:
        if (statement := self._current) is not None:
            statement.wake()

    def _end(self, error: BaseException | None) -> None:
        with self._changed:
            if self.ended:
                return
            self.error = error
            self.ended = True
            statement = self._current
            self._inside += 1  # the place is not given back before this is done
            self._changed.notify_all()
        if statement is not None and statement.stage != "ended":
            statement.cancel(error)
        if error is None:
            self.output.finish()
        else:
            self.output.fail(error)
        self._go_out()

    def _go_out(self) -> None:
        """The last slot that leaves an ended query gives its place back."""
        with self._changed:
            self._inside -= 1
            last = self.ended and self._inside == 0 and not self._left
            self._left = self._left or last
        if last:
            self._place.leave()


class _Ignored(ResultStream):
    """The rows of all statements of a script but the last."""

    def put(self, batch: Any) -> None:
        pass
