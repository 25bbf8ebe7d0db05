"""The session's own instance: every statement with side effects runs here.

Settings, temporary tables, views, macros, functions, transactions, prepared statements, attached
database files and registered frames live on one connection of one instance, where statements run
one after another. Reads of database files that this instance writes run on further connections
(`queryard.engine.read_connections`). Statements that only read files run elsewhere
(`queryard.engine.pool`), unless they name something that lives here.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, Protocol

from queryard.sql.catalog import CatalogError
from queryard.sql.catalog.database import DatabaseTable
from queryard.sql.catalog.frames import FrameTable
from queryard.sql.catalog.open_files import Claims, FileInUse, is_same, is_writable
from queryard.sql.catalog.quoting import identifier, literal

from .access import Reach, Seal
from .attached import (
    WAIT_S,
    Attached,
    SearchPath,
    claim_by_statement,
    is_named,
    named_databases,
)
from .classify import Classified, copies_to, target_words
from .describing import Described, Parameters, describe_on
from .durability import check_durable
from .errors import DatabaseBusy, NotAllowed, QueryFailed
from .frames import copy_in, put_in
from .functions import ScalarFunction, Style, function_name
from .instance import Connection, Instance
from .links import Links
from .read_connections import ReadConnection, ReadConnections
from .session_objects import SessionObjects
from .settings import Setting, Settings, apply, noted, sets_variable
from .side_effects import BY_TEXT, concerns
from .views import FileTable, Views, explain_missing, file_tables, unusable, within
from .written import refuse_written

_FUNCTIONS = "SELECT DISTINCT function_name AS name FROM duckdb_functions() WHERE NOT internal"
# What these mean, or do, depends on the connection.
_OF_CONNECTION = BY_TEXT | {"nextval", "currval"}
# Statements that take a moment, whatever they name.
_SHORT = ("TRANSACTION", "SET", "VARIABLE_SET", "PREPARE")
# Statements that leave neither names nor settings behind.
_PLAIN = ("SELECT", "INSERT", "UPDATE", "DELETE", "MERGE_INTO", "COPY", "VACUUM", "ANALYZE")
_HELD = """
SELECT current_setting('threads') AS threads, current_setting('external_threads') AS external,
       current_setting('memory_limit') AS memory, current_setting('temp_directory') AS temp
"""


_ROLLBACK = Classified("ROLLBACK", "TRANSACTION")


class Purse(Protocol):
    """Memory that many instances share."""

    def take(self) -> int:
        """The bytes of an instance that is about to be opened; raises if there are none."""

    def give_back(self, memory_bytes: int) -> None:
        """It was closed."""


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
        self._slots = slots
        self._memory = memory
        # What was taken for the instance that is open.
        self._taken_bytes = 0
        self._temp = temp
        self.reach = reach
        self.catalog = catalog = reach.catalog
        self.writes = writes
        # The client's settings, applied on every instance that runs a query of the client.
        self.settings: Settings = ()
        self._instance: Instance | None = None
        self._connection: Connection | None = None
        # Several statements may want to open the instance or attach a database at once.
        self._opening = threading.RLock()
        # The catalog's own queries have a connection to themselves.
        self._asking = threading.Lock()
        self._asked: Connection | None = None
        # Of files that came after the instance was sealed.
        self._links = Links(temp)
        self.readers = ReadConnections()
        self._inside: set[object] = set()
        self._closed = False
        # Files that are no longer attached, but may still be open.
        self._detached: set[str] = set()
        self._views = Views()
        self._search_path = SearchPath()
        # Key -> fingerprint of the frame, and the name of its copy.
        self._frames: dict[str, tuple[str, str]] = {}
        self._claims = Claims(catalog.metadata, self._ask)
        self._claims.is_busy = lambda: bool(self._inside)
        self._claims.on_wanted = self._give_way
        self._claims.tells = True
        # A sealed client has databases for a statement or a transaction only.
        self._shares = reach.sealed
        self._attached = self._nothing_attached()
        self._functions: list[ScalarFunction] = []
        self._there = SessionObjects()
        # Whether a statement may have left something behind.
        self._is_used = False
        self._in_transaction = False
        # Databases that the open transaction has come to.
        self._touched: set[str] = set()
        # Whether the open transaction has made or dropped something.
        self._has_made = False
        # A BEGIN, COMMIT or ROLLBACK that has not ended.
        self._turning = False
        # A statement of the open transaction has failed: DuckDB may refuse all that follow.
        self._is_aborted = False
        self._held: dict[str, Any] = {}

    def _nothing_attached(self) -> Attached:
        if self._shares:
            return Attached(self._claims, self.reach.access.writes, WAIT_S)
        return Attached(self._claims, self.writes)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open on its connection."""
        return self._in_transaction

    def databases(self, statements: Sequence[Classified]) -> dict[str, bool]:
        """The databases that statements need a turn at, and whether they may write them.

        Clients of a server have them in turns, as each has an instance of its own. A transaction
        that may write a database has it as one that writes: it cannot change that later.
        """
        if not self._shares:
            return {}
        writes = self.reach.access.writes
        acts = self._in_transaction or any(
            not (each.reads or each.only_looks) for each in statements
        )
        names = self._searched().union(
            *(
                statement.names
                for statement in statements
                # What is in use is not listed.
                if statement.reads or not statement.only_looks
            )
        )
        shared = [each for each in self.catalog.databases if is_writable(each.path)]
        return {
            each.alias: acts and each.alias.lower() in writes
            for each in shared
            if is_named(self.catalog, each, names)
        }

    def _searched(self) -> frozenset[str]:
        late = [setting for setting in self.settings if setting.is_late]
        return frozenset(name for setting in late for name in setting.names)

    # --- where a statement must run ------------------------------------------------------------

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
        if not statement.reads or self._is_aborted or self._searches_own():
            return True
        frames = {name.lower() for name in self._frame_names()}
        if not names.isdisjoint(self._there.private | frames):
            return True
        if not self.writes:
            # A transaction of a sealed client that has come to a database goes on there.
            goes_on = self._shares and self._in_transaction
            held = self._databases(self._attached.aliases) if goes_on else set()
            return not names.isdisjoint(self._there.made | held)
        in_schemas = {t.name.lower() for t in file_tables(self.catalog).values() if t.schema}
        if self._reads_written(statement):
            if self._in_transaction:
                return True
            return not names.isdisjoint(in_schemas | _OF_CONNECTION)
        return bool(self.catalog.databases) and not names.isdisjoint(_OF_CONNECTION)

    def _searches_own(self) -> bool:
        """Whether unqualified names may mean what lives here."""
        late = [setting for setting in self.settings if setting.is_late]
        if not late:
            return False
        if self.writes:
            return True
        tables = self.catalog.tables.values()
        known = {part for table in tables for part in table.schema.lower().split(".")}
        known |= {database.alias.lower() for database in self.catalog.databases}
        named = {name for setting in late for name in setting.names}
        return not named <= known | {"main", "memory", ""}

    def _frame_names(self) -> set[str]:
        tables = self.catalog.tables.values()
        return {table.name for table in tables if table.kind == "frame"}

    def _reads_written(self, statement: Classified) -> bool:
        """Whether a statement names something in a database file that this instance writes."""
        return self.writes and not statement.names.isdisjoint(
            self._there.in_files | self._databases()
        )

    def _databases(self, aliases: Set[str] | None = None) -> set[str]:
        """The databases of the catalog, or some of them, and their tables."""
        tables = self.catalog.tables.values()
        of = {each.alias for each in self.catalog.databases} if aliases is None else set(aliases)
        names = {
            table.name.lower()
            for table in tables
            if isinstance(table, DatabaseTable) and table.database.alias in of
        }
        return names | {alias.lower() for alias in of}

    def concerns(self, left: Classified, later: Classified) -> bool:
        """Whether the side effects of a statement may change what a later read-only one sees."""
        if concerns(left, later, self.catalog):
            return True
        if self._shares and self.reach.access.writes:
            # A view in a database may read anything there.
            acts = not (left.reads or left.only_looks)
            return acts and not later.names.isdisjoint(self._databases())
        if left.reads or left.only_looks or not self._reads_written(later):
            return False
        if self._connection is None:
            return True  # what its views and macros read is not known yet
        named = later.names & (self._there.in_files | self._databases())
        return not (
            named.isdisjoint(self._there.views_in_files | self._views_of_files())
            and named.isdisjoint(left.names)
        )

    def _views_of_files(self) -> set[str]:
        """Views in database files, which may read anything there."""
        tables = self.catalog.tables.values()
        return {
            table.name.lower()
            for table in tables
            if isinstance(table, DatabaseTable) and table.rows is None
        }

    def _check(self, statement: Classified) -> None:
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
            for table in self.catalog.tables.values()
            if not isinstance(table, DatabaseTable)
        }
        if taken := sorted(own.intersection(word.strip('"') for word in head) - self._there.made):
            raise NotAllowed(
                f"{taken[0]} is a table of files or a frame, which {statement.kind} cannot change; "
                "use another name, or CREATE TEMP TABLE to stand before it in this session"
            )

    def reason(self, statement: Classified) -> str | None:
        """Why a statement depends on earlier side effects here; None if it does not."""
        if self._is_aborted:
            return "a statement of an open transaction has failed"
        if self.settings:
            return "settings of the session were changed"
        if used := sorted(statement.names & self._there.made):
            return f"{', '.join(used)} belongs to the session"
        try:
            refuse_written(statement)
        except FileInUse as error:
            return str(error)
        return None

    # --- running -------------------------------------------------------------------------------

    @property
    def connection(self) -> Connection:
        with self._opening:
            return self._connection or self._open()

    def _open(self) -> Connection:
        self._check_open()
        if isinstance(self._memory, int):
            memory_bytes = self._memory
        else:
            memory_bytes = self._taken_bytes = self._memory.take()
        try:
            self._instance = Instance(self._slots, memory_bytes, self._temp)
        except BaseException:
            self._give_back()
            raise
        if (seal := self._seal()) is not None:
            self._instance.close_to_others(seal)
        self._connection = opened = Connection(self._instance)
        self._hold_settings()
        return opened

    def reader(self, settings: Settings) -> ReadConnection:
        """A further connection with these settings, to be given back to `readers`."""
        return self.readers.take(self.connection.instance, settings)

    def enter(self, query: object) -> None:
        """A query runs in this instance from now on."""
        with self._opening:
            self._check_open()
            if not self._inside:
                self._renew()
            self._inside.add(query)

    def _renew(self) -> None:
        """Open the instance anew if it may now open other files, and nothing would be lost."""
        if self._instance is None or self._is_used or self._in_transaction:
            return
        if self._seal() != self._instance.seal:
            self._start_anew()

    def close_unused(self) -> None:
        """Close the instance if nothing would be lost, and nothing happens there just now."""
        if not self._opening.acquire(blocking=False):
            return
        try:
            is_open = self._instance is not None
            holds = self._is_used or self._in_transaction or bool(self._functions)
            if is_open and not (holds or self._inside):
                self._start_anew()
        finally:
            self._opening.release()

    def _start_anew(self) -> None:
        self._close_instance()
        self._held = {}
        self._views, self._search_path = Views(), SearchPath()
        self._attached = self._nothing_attached()
        self._claims.release()
        self._frames.clear()

    def _seal(self) -> Seal | None:
        seal = self.reach.seal()
        return None if seal is None else seal.with_folders([str(self._links.folder)])

    def leave(self, query: object) -> None:
        if self._turning:
            self._turn_back()
        self._inside.discard(query)
        # In this order: `close` looks the other way round, so that one of both sees the other.
        if self._closed:
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

    def _turn_back(self) -> None:
        """A BEGIN, COMMIT or ROLLBACK was cancelled in the middle: no transaction is open then."""
        self._claims.redefined()
        with contextlib.suppress(QueryFailed):  # there may be none
            self.connection.run("ROLLBACK")
        self._end_transaction()
        self._forget_made()

    def _end_transaction(self) -> None:
        self._in_transaction = self._is_aborted = self._turning = False
        self._touched.clear()

    def shares_instance(self) -> bool:
        """Whether several queries run in this instance."""
        return len(self._inside) > 1

    def prepare(
        self, statement: Classified, connection: Connection, names: Set[str]
    ) -> dict[str, Exception]:
        """Make what must be there before the statement: files as views, frames as tables."""
        self._check(statement)
        connection.instance.expect(statement.sql)
        self._turning = statement.kind == "TRANSACTION"
        changes = self._attached.changes
        self._attach(connection, statement, names | self._searched())
        self._search_path.follow(connection, self._attached, self.catalog)
        if self._shares and changes != self._attached.changes:
            # What was let go is searched again.
            apply(connection, [setting for setting in self.settings if setting.is_late])
        if self.writes or self.reach.access.writes:
            check_durable(statement, connection)
        if statement.kind == "ATTACH":
            with self._opening:
                path = claim_by_statement(self._claims, statement, connection)
                self._detached = {p for p in self._detached if path is None or not is_same(p, path)}
        tables = self.catalog.tables
        if statement.kind == "SELECT" and not statement.reads:  # it looks around
            names = {table.name.lower() for table in tables.values()}
        # Views that are gone make room for frames of the same name.
        errors = self._views.make(connection, self._files(), names - self._there.made)
        self._forget_frames(connection)
        for key, table in tables.items():
            if isinstance(table, FrameTable) and table.name.lower() in names:
                self._copy_frame(connection, key, table)
        return {**errors, **unusable(self.catalog.unusable, names)}

    def prepare_reader(self, reader: ReadConnection, names: Set[str]) -> dict[str, Exception]:
        """Make what must be there before a read on a further connection."""
        self._attach(reader.connection)
        names = names - self._there.made
        return reader.prepare(self._attached, self.catalog, self._files(), names)

    def _files(self) -> Mapping[str, FileTable]:
        """The tables of files, as the instance can read them."""
        seal = None if self._instance is None else self._instance.seal
        return within(file_tables(self.catalog), seal, self._links)

    def _attach(
        self,
        connection: Connection,
        statement: Classified | None = None,
        names: Set[str] = frozenset(),
    ) -> None:
        with self._opening:
            changes = self._attached.changes
            if not self._shares or statement is None:
                self._attached.attach(connection, self.catalog)
            elif statement.reads or not statement.only_looks:
                # A file may be open in one instance that writes it: what is not named is left.
                named = statement.names | names
                if not self._in_transaction and statement.kind not in _SHORT:
                    self._attached.let_go_unused(connection, self.catalog, named)
                only_reads = statement.reads and not self._in_transaction
                self._attached.attach(connection, self.catalog, named, only_reads)
                if self._in_transaction:
                    self._touched |= {each.alias for each in named_databases(self.catalog, named)}
            elif not self._in_transaction:
                # What another client writes just now is not listed.
                with contextlib.suppress(FileInUse, DatabaseBusy):
                    self._attached.attach(connection, self.catalog, None, True)
            if changes != self._attached.changes and not self._shares:
                self._note_functions(connection)

    def _give_way(self, path: str) -> None:
        """Another client wants a database that is attached here: let it go, if nothing uses it."""
        if not self._opening.acquire(blocking=False):
            return
        try:
            connection = self._connection
            if connection is None or self._inside or not self._shares:
                return
            # A transaction that has failed can do nothing, and is rolled back soon.
            with contextlib.suppress(QueryFailed):
                self._attached.let_go(connection, self._touched)
        finally:
            self._opening.release()

    def _note_functions(self, connection: Connection) -> None:
        rows = connection.rows(_FUNCTIONS)
        self._there.add_functions({str(row["name"]).lower() for row in rows})

    def _ask(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of something short about the databases that are written here."""
        with self._asking:
            if self._instance is None:
                raise FileInUse("the session that writes the database is being closed")
            if self._asked is None:
                self._asked = Connection(self._instance)
            try:
                return [tuple(row.values()) for row in self._asked.rows(sql)]
            except QueryFailed as error:
                raise CatalogError(f"the database that is written: {error}") from error

    def _forget_frames(self, connection: Connection) -> None:
        """Drop the copies of frames that are registered no more."""
        for key, (_, place) in list(self._frames.items()):
            if not isinstance(self.catalog.tables.get(key), FrameTable):
                connection.run(f"DROP TABLE IF EXISTS {place}")
                del self._frames[key]

    def _copy_frame(self, connection: Connection, key: str, table: FrameTable) -> None:
        held = self._frames.get(key, ("", ""))[0]
        if held == table.fingerprint or table.name.lower() in self._there.made:
            return
        if table.schema:
            connection.run(f"CREATE SCHEMA IF NOT EXISTS memory.{identifier(table.schema)}")
        schema = identifier(table.schema or "main")
        place = f"memory.{schema}.{identifier(table.name)}"
        copy_in(connection, place, table.frame)
        self._frames[key] = (table.fingerprint, place)

    def after(self, statement: Classified) -> None:
        """Record the side effects of a statement."""
        kind = statement.kind
        if kind == "TRANSACTION":
            self._after_turning(statement)
            return
        if not self._shares or kind not in _PLAIN:
            self._is_used = self._is_used or not (statement.reads or statement.only_looks)
        if kind in ("SET", "VARIABLE_SET", "PRAGMA", "LOAD"):
            self.settings = noted(self.settings, statement, self._value_of)
            if sets_variable(statement):
                self._there.add_functions({"getvariable"})
        if kind not in _PLAIN:
            self._hold_settings()
            if "macro" in statement.words or "function" in statement.words:
                self._note_functions(self.connection)
            self._has_made = self._in_transaction
            self._claims.redefined()
            self._look_around()

    def _after_turning(self, statement: Classified) -> None:
        """A transaction has begun, or has ended."""
        looks = self._has_made or not self._shares
        self._end_transaction()
        self._in_transaction = statement.words[0] in ("begin", "start")
        if statement.words[0] in ("rollback", "abort"):
            self._forget_made()
        if looks:
            self._claims.redefined()
            self._hold_settings()
            self._look_around()
            self._has_made = False

    def roll_back(self) -> None:
        """Undo the open transaction, if there is one; no statement may use the connection."""
        if not self._in_transaction:
            return
        token = object()
        self.enter(token)
        try:
            with contextlib.suppress(QueryFailed):  # DuckDB may have ended it by itself
                self.connection.run("ROLLBACK")
            self._after_turning(_ROLLBACK)
        finally:
            self.leave(token)

    def _value_of(self, setting: str) -> str:
        rows = self.connection.rows(f"SELECT current_setting({literal(setting)})::VARCHAR AS v")
        return str(rows[0]["v"])

    def failed(self, statement: Classified) -> None:
        """A transaction that cannot be committed is over as well; a file may not be open."""
        self._turning = False
        if statement.kind == "TRANSACTION" and statement.words[0] in ("commit", "end"):
            self._end_transaction()
            self._forget_made()
        elif self._in_transaction:
            self._is_aborted = True
        elif statement.kind == "ATTACH" and not self._in_transaction:
            self._note_files()

    def _forget_made(self) -> None:
        """Views and copies that were made within a transaction went with it."""
        self._views = Views()
        self._frames.clear()
        if self._shares:
            self._attached.forget_missing(self.connection)

    def _hold_settings(self) -> None:
        """Restore the settings that slots and memory budget depend on, if they were changed."""
        instance = self.connection.instance
        held, held_before = instance.control.rows(_HELD)[0], self._held
        if self._held and held != self._held:
            instance.control.set(
                {
                    "threads": str(self._slots),
                    "external_threads": str(self._slots),
                    "memory_limit": f"'{instance.memory_bytes} bytes'",
                    "temp_directory": literal(held_before["temp"]),
                }
            )
            raise NotAllowed(
                "threads, memory_limit and temp_directory are the scheduler's to set; "
                "they were set back"
            )
        self._held = held

    def _look_around(self) -> None:
        if not self._in_transaction:
            self._note_files()
        own = {table.name.lower() for table in self.catalog.tables.values()}
        self._there.look(self.connection, own)

    def _note_files(self) -> None:
        """Take note of files that statements have attached and detached."""
        rows = self.connection.rows("SELECT path FROM duckdb_databases() WHERE path IS NOT NULL")
        paths = {str(row["path"]) for row in rows}
        for path in paths:
            self._claims.opened(path)
        self._detached = self._claims.kept(paths)
        if self._detached:
            # The instance closes a file with the last read of it.
            self.readers.after_all(self._release_detached)

    def _release_detached(self) -> None:
        with self._opening:
            self._claims.release(self._detached)
            self._detached = set()

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
        self._is_used = True
        others = tuple(each for each in self.settings if each.name != setting.name)
        self.settings = (*others, setting)

    def take_rows(self, name: str, rows: Any) -> None:
        """Copy a record batch into a temporary table, for the statement that comes next."""
        self._is_used = True
        with self._in_use() as connection:
            put_in(connection, name, rows)

    def drop_rows(self, name: str) -> None:
        """Drop it again; a transaction that has failed takes it along."""
        with contextlib.suppress(QueryFailed), self._in_use() as connection:
            connection.run(f"DROP TABLE IF EXISTS temp.{identifier(name)}")

    def has_made(self, name: str) -> bool:
        """Whether the session has an object of this name of its own."""
        return name.lower() in self._there.made

    def place_for_rows(self) -> Path:
        """A folder for rows that a client brings, which statements here may read, and no others."""
        return self._links.place()

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
        self._there.add_functions({name.lower()})

    def _close_instance(self) -> None:
        self._claims.closing_all()
        with self._asking:
            self.readers.close()
            for connection in (self._asked, self._connection):
                if connection is not None:
                    connection.close()
            if self._instance is not None:
                self._instance.close()
            self._connection = self._instance = self._asked = None
            self.readers = ReadConnections()
            self._give_back()

    def _give_back(self) -> None:
        if not isinstance(self._memory, int) and self._taken_bytes:
            self._memory.give_back(self._taken_bytes)
            self._taken_bytes = 0

    def close(self) -> None:
        """Take no further statement, and free everything with the last that leaves.

        A query that has ended for its reader may still have a slot in DuckDB: a step there cannot
        be interrupted, and what it works on must not go away meanwhile.
        """
        self._closed = True
        self._free_if_left()

    def _free_if_left(self) -> None:
        with self._opening:
            if not self._inside:
                self._close_instance()
                self._links.close()
                self._claims.release()

    def _check_open(self) -> None:
        if self._closed:
            raise QueryFailed("the session is closed; connect again")
