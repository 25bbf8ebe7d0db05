"""One query of a user's on leased slots: its statements, one after another."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from queryard.results.streams import Output, ResultStream

from .errors import QueryCancelled
from .instances.instance import Connection
from .instances.views import explain_missing
from .places import Place
from .sealing.hiding import HidingOutput
from .statement import Lease, Statement
from .syntax.classify import Classified
from .syntax.written import refuse_written

Parameters = Sequence[Any] | Mapping[str, Any]


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
        self._entering = False
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
    def sprints(self) -> bool:
        """Whether it is to sprint: see `statement`."""
        return self._sprints

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
            self._enter(lease)
            while not lease.withdrawn and (statement := self._statement()) is not None:
                statement.serve(lease)
                if statement.stage == "ended":
                    self._settle(statement, lease)
        except BaseException as error:
            self._end(error)
        finally:
            self._go_out()

    def _enter(self, lease: Lease) -> None:
        """Open what the query runs in; slots that wait for it can be revoked meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: lease.withdrawn or self.ended or not self._entering)
            if lease.withdrawn or self.ended:
                return
            self._entering = True
        try:
            # Opening an instance is slow: do it without the lock.
            self._place.enter()
        finally:
            with self._changed:
                self._entering = False
                self._changed.notify_all()

    def _statement(self) -> Statement | None:
        with self._changed:
            # One slot may still be recording the side effects of the previous statement.
            self._changed.wait_for(lambda: self.ended or not self._settling)
            if self.ended:
                return None
            if self._current is None:
                self._current = self._next_statement()
            return self._current

    def _next_statement(self) -> Statement:
        is_last = self._at == len(self._statements) - 1
        output: Output = self.output if is_last else _Ignored()
        return self._make(
            self._statements[self._at], output, self._parameters if is_last else (), self._sprints
        )

    def _make(
        self,
        classified: Classified,
        output: Output,
        parameters: Parameters = (),
        sprints: bool = False,
    ) -> Statement:
        reach = self._place.reach
        if reach.sealed and classified.kind == "EXPLAIN":
            output = HidingOutput(output, reach.hide)
        return Statement(
            self._place.enter(),
            classified.sql,
            output,
            parameters,
            lambda connection, name: self._supply(classified, connection, name),
            sprints,
            self._place.shares_instance,
        )

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
            self._failed(statement.error)
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
        if not self._advance(statement):
            self._end(None)
            return
        with self._changed:
            self._settling = False
            self._current = None
            self._changed.notify_all()

    def _advance(self, done: Statement) -> bool:
        """A statement has ended well, and no slot is inside: whether another one follows."""
        self._place.after(self._statements[self._at])
        self._at += 1
        return self._at < len(self._statements)

    def _failed(self, error: BaseException) -> None:
        """The current statement has failed, and the query with it."""
        self._place.failed(self._statements[self._at])
        self._end(explain_missing(error, self._errors, self._place.tables))

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
        if error is not None:
            error = self._place.reach.told(error)
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
            self._leave()

    def _leave(self) -> None:
        self._place.leave()


class _Ignored(ResultStream):
    """The rows of all statements of a script but the last."""

    def put(self, batch: Any) -> None:
        pass
