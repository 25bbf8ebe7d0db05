"""The databases of the catalog in a session's instance, and the files that its statements attach.

Clients of a server are sealed, and share the databases: each has an instance of its own, a file
may be open in one instance that writes it, and so they have it in turns, for a statement or a
transaction.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Set

from queryard.sql.catalog.open_files import Claims, FileInUse, is_same

from ..errors import DatabaseBusy, QueryFailed
from ..instances.attached import WAIT_S, Attached, SearchPath, claim_by_statement, named_databases
from ..instances.instance import Connection
from ..instances.settings import apply
from ..sealing.access import Reach
from ..syntax.classify import Classified
from .instance import OwnInstance
from .state import SessionState

# Statements that take a moment, whatever they name.
_SHORT = ("TRANSACTION", "SET", "VARIABLE_SET", "PREPARE")


class OwnDatabases:
    """What one session's instance has attached, and has claimed for that."""

    def __init__(
        self,
        own: OwnInstance,
        reach: Reach,
        writes: bool,
        state: SessionState,
        is_busy: Callable[[], bool],
    ) -> None:
        """`is_busy` says whether a query runs in the instance."""
        self._own = own
        self._reach = reach
        self._catalog = reach.catalog
        self._writes = writes
        self._state = state
        self._is_busy = is_busy
        # A sealed client has databases for a statement or a transaction only.
        self.shares = reach.sealed
        self._claims = Claims(reach.catalog.metadata, own.ask)
        self._claims.is_busy = is_busy
        self._claims.on_wanted = self._give_way
        self._claims.tells = True
        self.attached = self._nothing_attached()
        self._search_path = SearchPath()
        # Files that are no longer attached, but may still be open.
        self._detached: set[str] = set()

    def _nothing_attached(self) -> Attached:
        if self.shares:
            return Attached(self._claims, self._reach.access.writes, WAIT_S)
        return Attached(self._claims, self._writes)

    # --- before a statement --------------------------------------------------------------------

    def make_ready(self, connection: Connection, statement: Classified, names: Set[str]) -> None:
        """Attach what a statement needs, and look for tables there."""
        changes = self.attached.changes
        self.attach(connection, statement, names | self._state.searched)
        self._search_path.follow(connection, self.attached, self._catalog)
        if self.shares and changes != self.attached.changes:
            # What was let go is searched again.
            apply(connection, self._state.late)

    def attach(
        self,
        connection: Connection,
        statement: Classified | None = None,
        names: Set[str] = frozenset(),
    ) -> None:
        """Attach what a statement needs, or all."""
        transaction = self._state.transaction
        with self._own.opening:
            changes = self.attached.changes
            if not self.shares or statement is None:
                self.attached.attach(connection, self._catalog)
            elif statement.reads or not statement.only_looks:
                # A file may be open in one instance that writes it: what is not named is left.
                named = statement.names | names
                if not transaction.is_open and statement.kind not in _SHORT:
                    self.attached.let_go_unused(connection, self._catalog, named)
                only_reads = statement.reads and not transaction.is_open
                self.attached.attach(connection, self._catalog, named, only_reads)
                if transaction.is_open:
                    found = named_databases(self._catalog, named)
                    transaction.touched |= {each.alias for each in found}
            elif not transaction.is_open:
                # What another client writes just now is not listed.
                with contextlib.suppress(FileInUse, DatabaseBusy):
                    self.attached.attach(connection, self._catalog, None, True)
            if changes != self.attached.changes and not self.shares:
                self._state.objects.look_for_functions(connection)

    def claim(self, statement: Classified, connection: Connection) -> None:
        """Enter the file that an ATTACH of the client's is about to open."""
        with self._own.opening:
            path = claim_by_statement(self._claims, statement, connection)
            self._detached = {p for p in self._detached if path is None or not is_same(p, path)}

    # --- after a statement ---------------------------------------------------------------------

    def redefined(self) -> None:
        """What is in the databases may have changed."""
        self._claims.redefined()

    def forget_missing(self) -> None:
        """A transaction was rolled back, and what it had attached went with it."""
        if self.shares:
            self.attached.forget_missing(self._own.connection)

    def note_files(self) -> None:
        """Take note of files that statements have attached and detached."""
        connection = self._own.connection
        rows = connection.rows("SELECT path FROM duckdb_databases() WHERE path IS NOT NULL")
        paths = {str(row["path"]) for row in rows}
        for path in paths:
            self._claims.opened(path)
        self._detached = self._claims.kept(paths)
        if self._detached:
            # The instance closes a file with the last read of it.
            self._own.readers.after_all(self._release_detached)

    def _release_detached(self) -> None:
        with self._own.opening:
            self._claims.release(self._detached)
            self._detached = set()

    # --- letting go ----------------------------------------------------------------------------

    def _give_way(self, path: str) -> None:
        """Another client wants a database that is attached here: let it go, if nothing uses it."""
        if not self._own.opening.acquire(blocking=False):
            return
        try:
            connection = self._own.connected
            if connection is None or self._is_busy() or not self.shares:
                return
            # A transaction that has failed can do nothing, and is rolled back soon.
            with contextlib.suppress(QueryFailed):
                self.attached.let_go(connection, self._state.transaction.touched)
        finally:
            self._own.opening.release()

    def closing(self) -> None:
        """The instance is about to be closed."""
        self._claims.closing_all()

    def closed(self) -> None:
        """The instance was closed, and its files with it."""
        self._search_path = SearchPath()
        self.attached = self._nothing_attached()
        self._claims.release()
