"""What the statements of a session leave when they end, fail or are cancelled."""

from __future__ import annotations

import contextlib

from queryard.sql.catalog import Catalog
from queryard.sql.catalog.quoting import literal

from ..errors import QueryFailed
from ..instances.settings import noted, sets_variable
from ..syntax.classify import Classified
from .databases import OwnDatabases
from .instance import OwnInstance
from .shown_tables import ShownTables
from .state import SessionState

# Statements that leave neither names nor settings behind.
_PLAIN = ("SELECT", "INSERT", "UPDATE", "DELETE", "MERGE_INTO", "COPY", "VACUUM", "ANALYZE")
_ROLLBACK = Classified("ROLLBACK", "TRANSACTION")


class AfterStatements:
    """Brings what is known of a session up to date after each statement on its connection."""

    def __init__(
        self,
        own: OwnInstance,
        catalog: Catalog,
        state: SessionState,
        databases: OwnDatabases,
        shown: ShownTables,
    ) -> None:
        self._own = own
        self._catalog = catalog
        self._state = state
        self._databases = databases
        self._shown = shown

    def ended(self, statement: Classified) -> None:
        """Record the side effects of a statement."""
        state = self._state
        kind = statement.kind
        if kind == "TRANSACTION":
            self._turned(statement)
            return
        if not self._databases.shares or kind not in _PLAIN:
            state.is_used = state.is_used or not (statement.reads or statement.only_looks)
        if kind in ("SET", "VARIABLE_SET", "PRAGMA", "LOAD"):
            state.settings = noted(state.settings, statement, self._value_of)
            if sets_variable(statement):
                state.objects.add_functions({"getvariable"})
        if kind not in _PLAIN:
            self._own.hold_settings()
            if "macro" in statement.words or "function" in statement.words:
                state.objects.look_for_functions(self._own.connection)
            state.transaction.has_made = state.transaction.is_open
            self._databases.redefined()
            self._look_around()

    def failed(self, statement: Classified) -> None:
        """A transaction that cannot be committed is over as well; a file may not be open."""
        transaction = self._state.transaction
        transaction.turning = False
        if statement.kind == "TRANSACTION" and statement.words[0] in ("commit", "end"):
            transaction.end()
            self._forget_made()
        elif transaction.is_open:
            transaction.is_aborted = True
        elif statement.kind == "ATTACH":
            self._databases.note_files()

    def turn_back(self) -> None:
        """A BEGIN, COMMIT or ROLLBACK was cancelled in the middle: no transaction is open then."""
        self._databases.redefined()
        with contextlib.suppress(QueryFailed):  # there may be none
            self._own.connection.run("ROLLBACK")
        self._state.transaction.end()
        self._forget_made()

    def roll_back(self) -> None:
        """Undo the open transaction."""
        with contextlib.suppress(QueryFailed):  # DuckDB may have ended it by itself
            self._own.connection.run("ROLLBACK")
        self._turned(_ROLLBACK)

    def _turned(self, statement: Classified) -> None:
        """A transaction has begun, or has ended."""
        transaction = self._state.transaction
        looks = transaction.has_made or not self._databases.shares
        transaction.end()
        transaction.is_open = statement.words[0] in ("begin", "start")
        if statement.words[0] in ("rollback", "abort"):
            self._forget_made()
        if looks:
            self._databases.redefined()
            self._own.hold_settings()
            self._look_around()
            transaction.has_made = False

    def _forget_made(self) -> None:
        """Views and copies that were made within a transaction went with it."""
        self._shown.forget()
        self._databases.forget_missing()

    def _look_around(self) -> None:
        if not self._state.transaction.is_open:
            self._databases.note_files()
        own = {table.name.lower() for table in self._catalog.tables.values()}
        self._state.objects.look(self._own.connection, own)

    def _value_of(self, setting: str) -> str:
        found = f"SELECT current_setting({literal(setting)})::VARCHAR AS v"
        return str(self._own.connection.rows(found)[0]["v"])
