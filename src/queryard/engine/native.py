"""Native execution: DuckDB plans and runs whole statements, on slots that are lent to them."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from queryard.sql.catalog import Catalog

from .capi import library
from .classify import Classified
from .errors import QueryCancelled
from .instance import Connection
from .pool import InstancePool, PooledInstance
from .results import Output, ResultStream
from .session import SessionInstance
from .spares import Spares
from .statement import Lease, Statement
from .views import explain_missing, file_tables, unusable

Parameters = Sequence[Any] | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Budget:
    """Bytes for the session's instance and for all pooled instances together."""

    session_bytes: int
    pool_bytes: int


class NativeEngine:
    """The instances of one session, and who may use which."""

    def __init__(
        self, catalog: Catalog, slots: int, budget: Budget, temp: Path, writes: bool
    ) -> None:
        _say_if_whole()
        self.catalog = catalog
        self.session = SessionInstance(slots, budget.session_bytes, temp, catalog, writes)
        self.pool = InstancePool(slots, budget.pool_bytes, temp)
        self.spares = Spares(self.pool, catalog)

    def query(
        self,
        statements: Sequence[Classified],
        output: Output,
        parameters: Parameters,
        memory_bytes: int,
        sprints: bool = False,
    ) -> NativeQuery:
        """A script that runs on the session's instance if any of its statements must.

        One that will be over in a moment may sprint, if it only reads and has no parameters.
        """
        if any(self.session.must_run(statement) for statement in statements):
            return NativeQuery(_OnSession(self.session), statements, output, parameters)
        place = _OnPool(self.pool, self.spares, self.catalog, memory_bytes)
        may = len(statements) == 1 and statements[0].reads
        may = may and not (parameters or statements[0].has_parameters)
        return NativeQuery(place, statements, output, parameters, sprints and may)

    def close(self) -> None:
        self.session.close()
        self.pool.close()


@cache
def _say_if_whole() -> None:
    """Say once that statements cannot be shared among slots here."""
    missing = library().missing_for_leases
    if missing:
        warnings.warn(
            f"the installed DuckDB does not export {', '.join(missing)}: each statement runs whole "
            "on one slot and cannot be paused; install the duckdb wheel from PyPI, version 2.0",
            RuntimeWarning,
            stacklevel=2,
        )


class _OnSession:
    """A turn on the session's connection."""

    shared = True

    def __init__(self, session: SessionInstance) -> None:
        self._session = session

    def enter(self) -> Connection:
        return self._session.connection

    def prepare(
        self, statement: Classified, connection: Connection, names: Set[str]
    ) -> dict[str, Exception]:
        return self._session.prepare(statement, connection, names)

    @property
    def tables(self) -> list[str]:
        return list(self._session.catalog.tables)

    def after(self, statement: Classified) -> None:
        self._session.after(statement)

    def failed(self, statement: Classified) -> None:
        self._session.failed(statement)

    def leave(self) -> None:
        pass

    def memory_bytes(self) -> int | None:
        return None  # it is shared with all that the session keeps


class _OnPool:
    """A pooled instance, taken with the first slot and given back at the end."""

    shared = False

    def __init__(
        self, pool: InstancePool, spares: Spares, catalog: Catalog, memory_bytes: int
    ) -> None:
        self._pool = pool
        self._spares = spares
        self._catalog = catalog
        self._memory_bytes = memory_bytes
        self._taken: PooledInstance | None = None

    def enter(self) -> Connection:
        if self._taken is None:
            self._taken = self._pool.take(self._memory_bytes)
            self._spares.taken()
        return self._taken.connection

    def prepare(
        self, statement: Classified, connection: Connection, names: Set[str]
    ) -> dict[str, Exception]:
        assert self._taken is not None
        self._taken.attached.attach(connection, self._catalog, statement.names | names)
        files = file_tables(self._catalog)
        errors = self._taken.views.make(connection, files, names)
        named = statement.names | names
        read = [table for table in files.values() if table.name.lower() in named]
        self._spares.named(read)
        files_read = chain.from_iterable(table.files for table in read)
        self._taken.footers.choose(connection, statement, files_read)
        return {**errors, **unusable(self._catalog.unusable, names)}

    @property
    def tables(self) -> list[str]:
        return list(self._catalog.tables)

    def after(self, statement: Classified) -> None:
        pass

    def failed(self, statement: Classified) -> None:
        pass

    def leave(self) -> None:
        if self._taken is not None:
            self._pool.give_back(self._taken)
            self._taken = None

    def memory_bytes(self) -> int | None:
        taken = self._taken
        return None if taken is None else taken.instance.used_bytes()


class NativeQuery:
    """One query of a user's: its statements one after another, the rows of the last one kept.

    The methods are those of a `Statement`; slots do not notice where one ends and the next begins.
    """

    def __init__(
        self,
        place: _OnSession | _OnPool,
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
        """The statement whose rows are the answer, and its parameters."""
        return self._statements[-1], self._parameters

    @property
    def on_session(self) -> bool:
        """Whether it needs the session's connection, where one query runs at a time."""
        return self._place.shared

    @property
    def computes(self) -> bool:
        """Whether slots compute now, and are not about to plan or to hand over rows."""
        statement = self._current
        return statement is not None and statement.stage == "running"

    @property
    def sprinting(self) -> bool:
        """Whether it need not be polled to see that it is ready."""
        return self._current is not None and self._current.sprinting

    def memory_bytes(self) -> int | None:
        """What it uses now and could not do without; None where that is not known."""
        return self._place.memory_bytes() if self.computes else None

    # --- from a slot's thread ----------------------------------------------------------------

    def serve(self, lease: Lease) -> None:
        """Work on it until the lease is withdrawn or the query has ended."""
        with self._changed:
            self._inside += 1
            self.started = True
        try:
            with self._entering:
                # Opening an instance takes a while, and nobody else need wait for it.
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
            # One slot may still be taking note of what the previous statement has left.
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
                )
            return self._current

    def _supply(self, statement: Classified, connection: Connection, name: str | None) -> bool:
        """Make the tables that a statement names, or one that it turned out to need."""
        if name is None:
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
            self._inside += 1  # nobody may leave for good before this is done
            self._changed.notify_all()
        if statement is not None and statement.stage != "ended":
            statement.cancel(error)
        if error is None:
            self.output.finish()
        else:
            self.output.fail(error)
        self._go_out()

    def _go_out(self) -> None:
        """The last one out of an ended query gives its place back."""
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
