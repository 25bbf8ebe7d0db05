"""The session's own instance: every statement with side effects runs here.

Settings, temporary tables, views, macros, functions, transactions, prepared statements, attached
database files and registered frames live on one connection of one instance, where statements run
one after another. Reads of database files that this instance writes run on further connections
(`queryard.engine.instances.read_connections`). Statements that only read files run elsewhere
(`queryard.engine.instances.pool`), unless they name something that lives here
(`queryard.engine.session.routing`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from queryard.sql.catalog.quoting import identifier

from ..describing import Described, Parameters, describe_on
from ..errors import QueryFailed
from ..instances.instance import Connection
from ..instances.read_connections import ReadConnection, ReadConnections
from ..instances.settings import Setting, Settings
from ..instances.views import FileTable, explain_missing, file_tables, unusable, within
from ..sealing.access import Reach
from ..syntax.classify import Classified
from .after_statements import AfterStatements
from .databases import OwnDatabases
from .durability import check_durable
from .frames import put_in
from .functions import ScalarFunction, Style, function_name
from .instance import OwnInstance, Purse
from .routing import Routing
from .shown_tables import ShownTables
from .state import SessionState


class SessionInstance:
    """One instance and one connection for all that is stateful, opened when first needed."""

    def __init__(
        self,
        slots: int,
        memory: int | Purse,
        temp: Path,
        reach: Reach,
        writes: bool,
    ) -> None:
        """`memory` are the bytes that the instance may use, or where it takes them from."""
        self.reach = reach
        self.catalog = reach.catalog
        self.writes = writes
        self._own = own = OwnInstance(slots, memory, temp, reach)
        self._state = state = SessionState()
        self._inside: set[object] = set()
        self._databases = OwnDatabases(own, reach, writes, state, lambda: bool(self._inside))
        self._shown = ShownTables()
        self._after = AfterStatements(own, reach.catalog, state, self._databases, self._shown)
        self.routing = Routing(own, reach, writes, state, self._databases)
        self._functions: list[ScalarFunction] = []

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open on its connection."""
        return self._state.transaction.is_open

    @property
    def is_open(self) -> bool:
        """Whether there is an instance of the client's own by now."""
        return self._own.instance is not None

    @property
    def settings(self) -> Settings:
        """The client's settings."""
        return self._state.settings

    # --- what runs inside -----------------------------------------------------------------------

    @property
    def connection(self) -> Connection:
        return self._own.connection

    @property
    def readers(self) -> ReadConnections:
        """The further connections."""
        return self._own.readers

    def reader(self, settings: Settings) -> ReadConnection:
        """A further connection with these settings, to be given back to `readers`."""
        return self.readers.take(self.connection.instance, settings)

    def enter(self, query: object) -> None:
        """A query runs in this instance from now on."""
        with self._own.opening:
            self._own.check_open()
            if not self._inside:
                self._renew()
            self._inside.add(query)

    def leave(self, query: object) -> None:
        if self._state.transaction.turning:
            self._after.turn_back()
        self._inside.discard(query)
        # In this order: `close` looks the other way round, so that one of both sees the other.
        if self._own.is_refused:
            self._free_if_left()

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[Connection]:
        """The connection, which is not closed within the context."""
        token = object()
        self.enter(token)
        try:
            yield self.connection
        finally:
            self.leave(token)

    def shares_instance(self) -> bool:
        """Whether several queries run in this instance."""
        return len(self._inside) > 1

    # --- opening anew, and closing -------------------------------------------------------------

    def _renew(self) -> None:
        """Open the instance anew if it may now open other files, and nothing would be lost."""
        if not (self._state.is_used or self.in_transaction) and self._own.is_outdated():
            self._close_instance()

    @property
    def holds(self) -> bool:
        """Whether something would be lost with it: temporary tables, settings, a transaction."""
        return self._needs_instance or bool(self.settings)

    @property
    def _needs_instance(self) -> bool:
        return self._state.is_used or self.in_transaction or bool(self._functions)

    def close_unused(self) -> None:
        """Close the instance if nothing would be lost, and nothing happens there just now."""
        if not self._own.opening.acquire(blocking=False):
            return
        try:
            is_open = self._own.instance is not None
            if is_open and not (self._needs_instance or self._inside):
                self._close_instance()
        finally:
            self._own.opening.release()

    def _close_instance(self) -> None:
        self._databases.closing()
        self._own.close()
        self._databases.closed()
        self._shown.forget()

    def close(self) -> None:
        """Take no further statement, and free everything with the last that leaves.

        A query that has ended for its reader may still have a slot in DuckDB: a step there cannot
        be interrupted, and what it works on must not go away meanwhile.
        """
        self._own.is_refused = True
        self._free_if_left()

    def _free_if_left(self) -> None:
        with self._own.opening:
            if not self._inside:
                self._close_instance()
                self._own.links.close()

    # --- before and after a statement ----------------------------------------------------------

    def prepare(
        self, statement: Classified, connection: Connection, names: Set[str]
    ) -> dict[str, Exception]:
        """Make what must be there before the statement: files as views, frames as tables."""
        self.routing.check(statement)
        connection.instance.expect(statement.sql)
        self._state.transaction.turning = statement.kind == "TRANSACTION"
        self._databases.make_ready(connection, statement, names)
        if self.writes or self.reach.access.writes:
            check_durable(statement, connection)
        if statement.kind == "ATTACH":
            self._databases.claim(statement, connection)
        if statement.kind == "SELECT" and not statement.reads:  # it looks around
            names = {table.name.lower() for table in self.catalog.tables.values()}
        made = self._state.objects.made
        errors = self._shown.make(connection, self.catalog, self._files(), names, made)
        return {**errors, **unusable(self.catalog.unusable, names)}

    def prepare_reader(self, reader: ReadConnection, names: Set[str]) -> dict[str, Exception]:
        """Make what must be there before a read on a further connection."""
        self._databases.attach(reader.connection)
        names = names - self._state.objects.made
        return reader.prepare(self._databases.attached, self.catalog, self._files(), names)

    def _files(self) -> Mapping[str, FileTable]:
        """The tables of files, as the instance can read them."""
        instance = self._own.instance
        seal = None if instance is None else instance.seal
        return within(file_tables(self.catalog), seal, self._own.links)

    def after(self, statement: Classified) -> None:
        """Record the side effects of a statement."""
        self._after.ended(statement)

    def failed(self, statement: Classified) -> None:
        """Record what a statement that has failed leaves."""
        self._after.failed(statement)

    def roll_back(self) -> None:
        """Undo the open transaction, if there is one; no statement may use the connection."""
        if self.in_transaction:
            with self._in_use():
                self._after.roll_back()

    # --- describing ----------------------------------------------------------------------------

    def describe(self, statement: Classified, parameters: Parameters | None) -> Described:
        """What a statement gives and takes, on the one connection; no statement may use it."""
        with self._in_use() as connection:
            errors = self.prepare(statement, connection, statement.names)
            return self._described(connection, statement, parameters, errors)

    def describe_reading(self, statement: Classified, parameters: Parameters | None) -> Described:
        """The same on a further connection, for a read of what this instance writes."""
        with self._in_use():
            reader = self.reader(self.settings)
            try:
                errors = self.prepare_reader(reader, statement.names)
                return self._described(reader.connection, statement, parameters, errors)
            finally:
                self.readers.give_back(reader)

    def _described(
        self,
        connection: Connection,
        statement: Classified,
        parameters: Parameters | None,
        errors: dict[str, Exception],
    ) -> Described:
        try:
            return describe_on(connection, statement, parameters)
        except QueryFailed as error:
            raise explain_missing(error, errors, list(self.catalog.tables)) from None

    # --- for servers ---------------------------------------------------------------------------

    def adopt(self, setting: Setting) -> None:
        """Make a setting that is not the client's to make; no statement may use the connection."""
        with self._in_use() as connection:
            connection.run(setting.sql)
        self._state.is_used = True
        others = tuple(each for each in self.settings if each.name != setting.name)
        self._state.settings = (*others, setting)

    def take_rows(self, name: str, rows: Any) -> None:
        """Copy a record batch into a temporary table, for the statement that comes next."""
        self._state.is_used = True
        with self._in_use() as connection:
            put_in(connection, name, rows)

    def drop_rows(self, name: str) -> None:
        """Drop it again; a transaction that has failed takes it along."""
        with contextlib.suppress(QueryFailed), self._in_use() as connection:
            connection.run(f"DROP TABLE IF EXISTS temp.{identifier(name)}")

    def has_made(self, name: str) -> bool:
        """Whether the session has an object of this name of its own."""
        return name.lower() in self._state.objects.made

    def place_for_rows(self) -> Path:
        """A folder for rows that a client brings, which statements here may read, and no others."""
        return self._own.links.place()

    # --- functions -----------------------------------------------------------------------------

    def create_function(
        self,
        name: str,
        function: Callable[..., Any],
        parameters: Sequence[str],
        returns: str,
        style: Style,
        side_effects: bool,
    ) -> None:
        """Make a Python function known to SQL."""
        made = ScalarFunction(
            self.connection, function_name(name), function, parameters, returns, style, side_effects
        )
        self._functions.append(made)
        self._state.objects.add_functions({name.lower()})
