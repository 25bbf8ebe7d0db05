"""The session's own instance: everything that leaves something behind runs here.

Settings, temporary tables, views, macros, functions, transactions, prepared statements, attached
database files and registered frames live on one connection of one instance, where statements run
one after another. Whatever only reads files runs elsewhere (`queryard.engine.pool`), unless it
names something that lives here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from pathlib import Path
from typing import Any

from queryard.sql.catalog import Catalog
from queryard.sql.catalog.database import DatabaseTable
from queryard.sql.catalog.frames import FrameTable
from queryard.sql.catalog.quoting import identifier, literal

from .attached import Attached, Claims
from .classify import Classified, target_words
from .errors import NotAllowed
from .frames import copy_in
from .functions import ScalarFunction, Style, function_name
from .instance import Connection, Instance
from .kept import check_kept
from .views import Views, file_tables, unusable

_FUNCTIONS = "SELECT DISTINCT function_name AS name FROM duckdb_functions() WHERE NOT internal"
_OBJECTS = """
SELECT table_name AS name FROM duckdb_tables() WHERE NOT internal
UNION SELECT view_name FROM duckdb_views() WHERE NOT internal
UNION SELECT schema_name FROM duckdb_schemas() WHERE NOT internal
UNION SELECT database_name FROM duckdb_databases() WHERE NOT internal AND database_name <> 'memory'
UNION SELECT type_name FROM duckdb_types() WHERE NOT internal
UNION SELECT sequence_name FROM duckdb_sequences()
"""
# Statements that leave neither names nor settings behind.
_PLAIN = ("SELECT", "INSERT", "UPDATE", "DELETE", "MERGE_INTO", "COPY", "VACUUM", "ANALYZE")
_HELD = """
SELECT current_setting('threads') AS threads, current_setting('external_threads') AS external,
       current_setting('memory_limit') AS memory, current_setting('temp_directory') AS temp
"""


class SessionInstance:
    """One instance and one connection for all that is stateful, opened when first needed."""

    def __init__(
        self, slots: int, memory_bytes: int, temp: Path, catalog: Catalog, writes: bool
    ) -> None:
        self._slots = slots
        self._memory_bytes = memory_bytes
        self._temp = temp
        self.catalog = catalog
        self._writes = writes
        self._instance: Instance | None = None
        self._connection: Connection | None = None
        self._views = Views()
        # Key -> fingerprint of the frame, and the name of its copy.
        self._frames: dict[str, tuple[str, str]] = {}
        self._claims = Claims()
        self._attached = Attached(self._claims, writes)
        self._functions: list[ScalarFunction] = []
        # What the user has made here, and whether it changes what every statement means.
        self._made: frozenset[str] = frozenset()
        self._pervasive = False
        self._macros: frozenset[str] = frozenset()
        self._in_transaction = False
        self._held: dict[str, Any] = {}

    # --- where a statement must run ------------------------------------------------------------

    def must_run(self, statement: Classified) -> bool:
        """Whether a statement needs this instance."""
        return (
            not statement.reads
            or self._pervasive
            or self._in_transaction
            or not statement.names.isdisjoint(self._made | self._catalog_names())
        )

    def _catalog_names(self) -> set[str]:
        """Names in the catalog that only this instance reads: frames, and databases it writes."""
        tables = self.catalog.tables.values()
        names = {table.name.lower() for table in tables if isinstance(table, FrameTable)}
        if self._writes:
            names |= {database.alias.lower() for database in self.catalog.databases}
            names |= {table.name.lower() for table in tables if isinstance(table, DatabaseTable)}
        return names

    def _check(self, statement: Classified) -> None:
        """Files and frames can neither be made anew nor changed by a statement."""
        words = statement.words
        if statement.kind in ("CREATE", "DROP", "ALTER"):
            head = words[: words.index("as")] if "as" in words else words
        elif statement.kind in ("INSERT", "UPDATE", "DELETE", "MERGE_INTO", "COPY"):
            head = words[: target_words(words)]
        else:
            return
        if "temp" in head or "temporary" in head or "." in head:
            return
        own = {
            table.name.lower()
            for table in self.catalog.tables.values()
            if not isinstance(table, DatabaseTable)
        }
        if taken := sorted(own.intersection(word.strip('"') for word in head) - self._made):
            raise NotAllowed(
                f"{taken[0]} is a table of files or a frame, which {statement.kind} cannot change; "
                "use another name, or CREATE TEMP TABLE to stand before it in this session"
            )

    def reason(self, statement: Classified) -> str | None:
        """Why a statement depends on what was left behind here; None if it does not."""
        if self._in_transaction:
            return "a transaction is open"
        if self._pervasive:
            return "settings of the session were changed"
        if used := sorted(statement.names & self._made):
            return f"{', '.join(used)} belongs to the session"
        return None

    # --- running -------------------------------------------------------------------------------

    @property
    def connection(self) -> Connection:
        if self._connection is None:
            self._instance = Instance(self._slots, self._memory_bytes, self._temp)
            self._connection = Connection(self._instance)
            self._hold_settings()
        return self._connection

    def prepare(
        self, statement: Classified, connection: Connection, names: Set[str]
    ) -> dict[str, Exception]:
        """Make what must be there before the statement: files as views, frames as tables."""
        self._check(statement)
        self._attached.attach(connection, self.catalog)
        if self._writes:
            check_kept(statement, connection)
        if statement.kind == "ATTACH":
            self._claim(statement)
        tables = self.catalog.tables
        if statement.kind == "SELECT" and not statement.reads:  # it looks around
            names = {table.name.lower() for table in tables.values()}
        files = file_tables(self.catalog)
        # Views that are gone make room for frames of the same name.
        errors = self._views.make(connection, files, names - self._made)
        self._forget_frames(connection)
        for key, table in tables.items():
            if isinstance(table, FrameTable) and table.name.lower() in names:
                self._copy_frame(connection, key, table)
        return {**errors, **unusable(self.catalog.unusable, names)}

    def _claim(self, statement: Classified) -> None:
        """A file that a statement attaches must not be in use by another instance."""
        paths = [word for word in statement.texts if ":" not in word]
        if paths and paths[0]:
            self._claims.claim(paths[0], "read_only" not in statement.words)

    def _forget_frames(self, connection: Connection) -> None:
        """Drop the copies of frames that are registered no more."""
        for key, (_, place) in list(self._frames.items()):
            if not isinstance(self.catalog.tables.get(key), FrameTable):
                connection.run(f"DROP TABLE IF EXISTS {place}")
                del self._frames[key]

    def _copy_frame(self, connection: Connection, key: str, table: FrameTable) -> None:
        held = self._frames.get(key, ("", ""))[0]
        if held == table.fingerprint or table.name.lower() in self._made:
            return
        if table.schema:
            connection.run(f"CREATE SCHEMA IF NOT EXISTS memory.{identifier(table.schema)}")
        schema = identifier(table.schema or "main")
        place = f"memory.{schema}.{identifier(table.name)}"
        copy_in(connection, place, table.frame)
        self._frames[key] = (table.fingerprint, place)

    def after(self, statement: Classified) -> None:
        """Take note of what a statement has left behind."""
        kind = statement.kind
        if kind == "TRANSACTION":
            self._in_transaction = statement.words[0] in ("begin", "start")
            if statement.words[0] in ("rollback", "abort"):
                self._forget_made()
        elif kind in ("SET", "VARIABLE_SET", "PRAGMA", "LOAD", "PREPARE"):
            self._pervasive = True
        if kind not in _PLAIN:
            self._hold_settings()
            if "macro" in statement.words or "function" in statement.words:
                rows = self.connection.rows(_FUNCTIONS)
                self._macros = frozenset(str(row["name"]).lower() for row in rows)
            self._look_around()

    def failed(self, statement: Classified) -> None:
        """A transaction that cannot be committed is over as well."""
        if statement.kind == "TRANSACTION" and statement.words[0] in ("commit", "end"):
            self._in_transaction = False
            self._forget_made()

    def _forget_made(self) -> None:
        """Views and copies that were made within a transaction went with it."""
        self._views = Views()
        self._frames.clear()

    def _hold_settings(self) -> None:
        """No statement may change what the slots and the budget rest on, by whatever way."""
        instance = self.connection.instance
        held = instance.control.rows(_HELD)[0]
        if self._held and held != self._held:
            instance.control.set(
                {
                    "threads": str(self._slots),
                    "external_threads": str(self._slots),
                    "memory_limit": f"'{instance.memory_bytes} bytes'",
                    "temp_directory": literal(str(self._temp)),
                }
            )
            raise NotAllowed(
                "threads, memory_limit and temp_directory are the scheduler's to set; "
                "they were set back"
            )
        self._held = held

    def _look_around(self) -> None:
        if self._in_transaction:
            return  # all statements come here until it ends
        paths = self.connection.rows("SELECT path FROM duckdb_databases() WHERE path IS NOT NULL")
        self._claims.keep_only({str(row["path"]) for row in paths})
        own = {table.name.lower() for table in self.catalog.tables.values()}
        found = {str(row["name"]).lower() for row in self.connection.rows(_OBJECTS)}
        functions = self._macros | {function.name.lower() for function in self._functions}
        self._made = frozenset(found - own - {"main"}) | functions
        self._shadowing()

    def _shadowing(self) -> None:
        """A temporary table or a view of the user's may bear the name of a table of files."""
        own = {table.name.lower() for table in self.catalog.tables.values()}
        sql = (
            "SELECT table_name AS name FROM duckdb_tables() WHERE database_name = 'temp' "
            "UNION SELECT view_name FROM duckdb_views() WHERE database_name = 'temp'"
        )
        shadows = {str(row["name"]).lower() for row in self.connection.rows(sql)}
        self._made |= shadows & own

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
        self._made |= {name.lower()}

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._instance is not None:
            self._instance.close()
        self._claims.release()
        self._connection = self._instance = None
