"""Which statements need a session's own instance, and what they need there."""

from __future__ import annotations

from collections.abc import Sequence, Set

from queryard.sql.catalog.database import DatabaseTable
from queryard.sql.catalog.open_files import FileInUse, is_writable

from ..errors import NotAllowed
from ..instances.attached import is_named
from ..instances.views import file_tables
from ..sealing.access import Reach
from ..syntax.classify import Classified, copies_to, target_words
from ..syntax.side_effects import BY_TEXT, concerns
from ..syntax.written import refuse_written
from .databases import OwnDatabases
from .instance import OwnInstance
from .state import SessionState

# What these mean, or do, depends on the connection.
_OF_CONNECTION = BY_TEXT | {"nextval", "currval"}


class Routing:
    """Judges statements by what earlier ones of the session have left; it changes nothing."""

    def __init__(
        self,
        own: OwnInstance,
        reach: Reach,
        writes: bool,
        state: SessionState,
        databases: OwnDatabases,
    ) -> None:
        self._own = own
        self._reach = reach
        self._catalog = reach.catalog
        self._writes = writes
        self._state = state
        self._databases = databases

    # --- where a statement must run ------------------------------------------------------------

    def needs_instance(self, statements: Sequence[Classified]) -> bool:
        """Whether statements need this instance, on whichever connection."""
        return self.must_run(statements) or self.needs_read_connection(statements)

    def must_run(self, statements: Sequence[Classified]) -> bool:
        """Whether statements need this instance's one connection."""
        if any(map(self._needs_connection, statements)):
            return True
        # All statements of a script run in one place.
        return len(statements) > 1 and any(map(self._reads_written, statements))

    def needs_read_connection(self, statements: Sequence[Classified]) -> bool:
        """Whether a statement that may run elsewhere needs this instance: it reads what it writes.

        It then has a further connection.
        """
        return any(map(self._reads_written, statements))

    def _needs_connection(self, statement: Classified) -> bool:
        names = statement.names
        objects, transaction = self._state.objects, self._state.transaction
        if not statement.reads or transaction.is_aborted or self._searches_own():
            return True
        if not names.isdisjoint(objects.private | self._frame_names()):
            return True
        if not self._writes:
            # A transaction of a sealed client that has come to a database goes on there.
            goes_on = self._databases.shares and transaction.is_open
            held = self._names_in(self._databases.attached.aliases) if goes_on else set()
            return not names.isdisjoint(objects.made | held)
        if self._reads_written(statement):
            if transaction.is_open:
                return True
            tables = file_tables(self._catalog).values()
            in_schemas = {table.name.lower() for table in tables if table.schema}
            return not names.isdisjoint(in_schemas | _OF_CONNECTION)
        return bool(self._catalog.databases) and not names.isdisjoint(_OF_CONNECTION)

    def _searches_own(self) -> bool:
        """Whether unqualified names may mean what lives here."""
        if not self._state.late:
            return False
        if self._writes:
            return True
        tables = self._catalog.tables.values()
        known = {part for table in tables for part in table.schema.lower().split(".")}
        known |= {database.alias.lower() for database in self._catalog.databases}
        # What is in `temp` is known by its names.
        return not self._state.searched <= known | {"main", "memory", "temp", ""}

    def _frame_names(self) -> set[str]:
        tables = self._catalog.tables.values()
        return {table.name.lower() for table in tables if table.kind == "frame"}

    def _reads_written(self, statement: Classified) -> bool:
        """Whether a statement names something in a database file that this instance writes."""
        return self._writes and not statement.names.isdisjoint(
            self._state.objects.in_files | self._names_in()
        )

    def _names_in(self, aliases: Set[str] | None = None) -> set[str]:
        """The databases of the catalog, or some of them, and their tables."""
        tables = self._catalog.tables.values()
        of = {each.alias for each in self._catalog.databases} if aliases is None else set(aliases)
        names = {
            table.name.lower()
            for table in tables
            if isinstance(table, DatabaseTable) and table.database.alias in of
        }
        return names | {alias.lower() for alias in of}

    # --- what a statement needs, and depends on ------------------------------------------------

    def databases(self, statements: Sequence[Classified]) -> dict[str, bool]:
        """The databases that statements need a turn at, and whether they may write them.

        Clients of a server have them in turns, as each has an instance of its own. A transaction
        that may write a database has it as one that writes: it cannot change that later.
        """
        if not self._databases.shares:
            return {}
        writes = self._reach.access.writes
        acts = self._state.transaction.is_open or any(
            not (each.reads or each.only_looks) for each in statements
        )
        names = self._state.searched.union(
            *(
                statement.names
                for statement in statements
                # What is in use is not listed.
                if statement.reads or not statement.only_looks
            )
        )
        shared = [each for each in self._catalog.databases if is_writable(each.path)]
        return {
            each.alias: acts and each.alias.lower() in writes
            for each in shared
            if is_named(self._catalog, each, names)
        }

    def concerns(self, left: Classified, later: Classified) -> bool:
        """Whether the side effects of a statement may change what a later read-only one sees."""
        if concerns(left, later, self._catalog):
            return True
        if self._databases.shares and self._reach.access.writes:
            # A view in a database may read anything there.
            acts = not (left.reads or left.only_looks)
            return acts and not later.names.isdisjoint(self._names_in())
        if left.reads or left.only_looks or not self._reads_written(later):
            return False
        if self._own.connected is None:
            return True  # what its views and macros read is not known yet
        objects = self._state.objects
        named = later.names & (objects.in_files | self._names_in())
        return not (
            named.isdisjoint(objects.views_in_files | self._views_of_files())
            and named.isdisjoint(left.names)
        )

    def _views_of_files(self) -> set[str]:
        """Views in database files, which may read anything there."""
        tables = self._catalog.tables.values()
        return {
            table.name.lower()
            for table in tables
            if isinstance(table, DatabaseTable) and table.rows is None
        }

    def reason(self, statement: Classified) -> str | None:
        """Why a statement depends on earlier side effects here; None if it does not."""
        if self._state.transaction.is_aborted:
            return "a statement of an open transaction has failed"
        if self._state.settings:
            return "settings of the session were changed"
        if used := sorted(statement.names & self._state.objects.made):
            return f"{', '.join(used)} belongs to the session"
        try:
            refuse_written(statement)
        except FileInUse as error:
            return str(error)
        return None

    def check(self, statement: Classified) -> None:
        """Files and frames can neither be made anew nor changed by a statement."""
        words = statement.words
        if statement.kind in ("CREATE", "DROP", "ALTER"):
            head = words[: words.index("as")] if "as" in words else words
        elif statement.kind == "COPY" and copies_to(statement):
            return
        elif statement.kind in ("INSERT", "UPDATE", "DELETE", "MERGE_INTO", "COPY"):
            head = words[: target_words(words)]
        else:
            return
        if "temp" in head or "temporary" in head or "." in head:
            return
        own = {
            table.name.lower()
            for table in self._catalog.tables.values()
            if not isinstance(table, DatabaseTable)
        }
        named = own.intersection(word.strip('"') for word in head)
        if taken := sorted(named - self._state.objects.made):
            raise NotAllowed(
                f"{taken[0]} is a table of files or a frame, which {statement.kind} cannot change; "
                "use another name, or CREATE TEMP TABLE to stand before it in this session"
            )
