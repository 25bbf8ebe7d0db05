"""The databases of the catalog that an instance has attached, and files that users attach."""

from __future__ import annotations

import os
import re
from collections.abc import Set

from queryard.core.errors import QueryardError
from queryard.sql.catalog import Catalog
from queryard.sql.catalog.database import DatabaseTable
from queryard.sql.catalog.model import AttachedDatabase
from queryard.sql.catalog.open_files import Claims, FileInUse, is_writable
from queryard.sql.catalog.quoting import identifier, literal

from ..errors import DatabaseBusy, NotAllowed
from ..sealing.allowed import attaches_to_read
from ..syntax.classify import Classified
from .instance import Connection

# How long a sealed client waits for a database that another is writing, or reads.
WAIT_S = 10.0
# Of an ATTACH, before the path.
_HEAD = frozenset({"attach", "or", "replace", "database", "if", "not", "exists"})
# A kind of database before a path; a single letter belongs to the path.
_PREFIX = re.compile(r"([A-Za-z]\w+):(.*)", re.DOTALL)


class Attached:
    """The databases of the catalog that one instance has attached, each when it is first named.

    One that was replaced by another file since is attached anew, unless we write to it ourselves.
    """

    def __init__(
        self,
        claims: Claims | None = None,
        writes: bool | frozenset[str] = False,
        wait_s: float = 0.0,
    ) -> None:
        """`writes` are the aliases of databases that are opened for writing, or all.

        For up to `wait_s` it waits for a database that is in use elsewhere in this process.
        """
        self.claims = claims or Claims()
        self._writes = writes
        self._wait_s = wait_s
        # By alias, the file as it was.
        self._files: dict[str, tuple[int, ...]] = {}
        self._paths: dict[str, str] = {}
        # Those that are attached for writing.
        self._written: set[str] = set()
        self.changes = 0
        """How often a database was attached or detached."""

    def attach(
        self,
        connection: Connection,
        catalog: Catalog,
        names: Set[str] | None = None,
        only_reads: bool = False,
    ) -> None:
        """Attach what is not attached yet: all, or what some names may mean."""
        for database in named_databases(catalog, names):
            alias = database.alias
            writes = self._writes_to(database) and not only_reads
            file = _state_of(database.path)
            held = self._files.get(alias)
            if held is not None and writes == (alias in self._written) and (writes or held == file):
                continue
            if held is not None:
                self._detach(connection, alias)
            elif self.claims.holds(database.path):
                continue  # a statement has attached it, or it has another name as well
            self._attach(connection, database, writes)
            self._files[alias] = file
            self._paths[alias] = database.path
            if writes:
                self._written.add(alias)
            self.changes += 1

    def _writes_to(self, database: AttachedDatabase) -> bool:
        writes = self._writes
        return writes if isinstance(writes, bool) else database.alias.lower() in writes

    def let_go(self, connection: Connection, kept: Set[str] = frozenset()) -> None:
        """Detach all but those that are `kept`, so that others can write them.

        The connection must be free, and its transaction, if it has one, must not have used them.
        """
        for alias in self._files.keys() - kept:
            self._detach(connection, alias)

    def let_go_unused(self, connection: Connection, catalog: Catalog, names: Set[str]) -> None:
        """Detach what others may write and a statement that names these does not use."""
        used = {database.alias for database in named_databases(catalog, names)}
        self.let_go(connection, {a for a in self._files if a in used or not self._may_change(a)})

    def _may_change(self, alias: str) -> bool:
        return is_writable(self._paths[alias])

    def alias_of(self, path: str) -> str | None:
        """The name under which a file is attached."""
        return next((alias for alias, own in self._paths.items() if own == path), None)

    def _detach(self, connection: Connection, alias: str) -> None:
        connection.run("USE memory")
        # Another query may just ask this instance what the database has.
        self.claims.closing(self._paths[alias])
        try:
            # A transaction that has not used it can go on.
            control = connection.instance.control
            control.run(f"DETACH DATABASE IF EXISTS {identifier(alias)}")
        except BaseException:
            self.claims.opened(self._paths[alias])
            raise
        self._forget(alias)

    def forget_missing(self, connection: Connection) -> None:
        """A transaction was rolled back, and what it had attached went with it."""
        rows = connection.rows("SELECT database_name AS name FROM duckdb_databases()")
        for alias in self._files.keys() - {str(row["name"]) for row in rows}:
            self._forget(alias)

    def _forget(self, alias: str) -> None:
        del self._files[alias]
        self._written.discard(alias)
        self.changes += 1
        self.claims.release({self._paths.pop(alias)})

    @property
    def aliases(self) -> Set[str]:
        return self._files.keys()

    def _attach(self, connection: Connection, database: AttachedDatabase, writes: bool) -> None:
        mode = "" if writes else " (READ_ONLY)"
        try:
            self.claims.claim(database.path, writes, self._wait_s)
        except FileInUse as error:
            if not self._wait_s:
                raise
            raise DatabaseBusy(
                f"the database {database.alias} is in use by a transaction or a query of another "
                "client, and one writes it at a time; try again when that has ended"
            ) from error
        try:
            alias = identifier(database.alias)
            connection.run(f"ATTACH {literal(database.path)} AS {alias}{mode}")
        except BaseException:
            self.claims.release({database.path})
            raise
        self.claims.opened(database.path)

    def search_path(self, catalog: Catalog) -> str:
        """Where tables are looked for: those of a single database file go by their bare names."""
        bare = {
            table.database.alias
            for table in catalog.tables.values()
            if isinstance(table, DatabaseTable) and not table.schema
        } & self._files.keys()
        if not bare:
            return ""
        return ",".join([*(f"{identifier(alias)}.main" for alias in sorted(bare)), "memory"])


class SearchPath:
    """Where one connection looks for tables."""

    def __init__(self) -> None:
        self._changes = 0
        self._is_set = False

    def follow(self, connection: Connection, attached: Attached, catalog: Catalog) -> None:
        """Add databases that were attached since; what was detached cannot be searched."""
        if self._changes != attached.changes:
            self._changes = attached.changes
            path = attached.search_path(catalog)
            if path or self._is_set:
                connection.run(f"SET search_path = {literal(path or 'memory')}")
                self._is_set = bool(path)


def claim_by_statement(claims: Claims, statement: Classified, connection: Connection) -> str | None:
    """Enter the file that an ATTACH is about to open; its path, if it is one."""
    path = _path(statement, connection)
    if path is not None:
        claims.claim(path, not attaches_to_read(statement.words))
    return path


def _path(statement: Classified, connection: Connection) -> str | None:
    """The local file that an ATTACH opens; None if it opens none."""
    found = statement.tokens
    words = found.texts
    first = next(place for place, word in enumerate(words) if word.lower() not in _HEAD)
    after = [place for place in range(first + 1, len(words)) if words[place].lower() in ("as", "(")]
    until = after[0] if after else len(words)
    given = words[first:until]
    if len(given) == 1 and given[0].startswith("'"):
        path = given[0][1:-1].replace("''", "'")
    elif all(word == "." or word.strip('"').isidentifier() for word in given):
        path = "".join(word.strip('"') for word in given)  # ATTACH shop.duckdb
    elif len(given) == 1 and given[0].startswith('"'):
        path = given[0][1:-1].replace('""', '"')
    else:
        path = _computed(statement, found.offsets[first], connection)
    prefix = _PREFIX.fullmatch(path)
    if prefix is not None and prefix[1].lower() == "duckdb":
        path = prefix[2]
    elif prefix is not None:
        return None
    return path if path and not path.startswith(":") else None


def _computed(statement: Classified, offset: int, connection: Connection) -> str:
    """The value of an expression that stands for a path."""
    text = statement.sql.encode()[offset:].decode()
    alias = re.search(r"\sas\s", text, re.IGNORECASE)
    text = text[: alias.start()] if alias is not None else text
    try:
        return str(connection.rows(f"SELECT ({text}) AS path")[0]["path"])
    except QueryardError:
        raise NotAllowed(
            f"ATTACH {text}: the path must be known before the file is opened; write it as a text "
            "in single quotes"
        ) from None


def _state_of(path: str) -> tuple[int, ...]:
    """A fingerprint of a file: another file, or another state of it, has another one."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def named_databases(catalog: Catalog, names: Set[str] | None) -> list[AttachedDatabase]:
    """The databases that some names may mean; all without names."""
    return [
        database
        for database in catalog.databases
        if names is None or is_named(catalog, database, names)
    ]


def is_named(catalog: Catalog, database: AttachedDatabase, names: Set[str]) -> bool:
    """Whether some names may mean a database, or tables of it."""
    return not names.isdisjoint(_names_in(catalog, database.alias))


def _names_in(catalog: Catalog, alias: str) -> set[str]:
    """The database, and its tables."""
    return {alias.lower()} | {
        table.name.lower()
        for table in catalog.tables.values()
        if isinstance(table, DatabaseTable) and table.database.alias == alias
    }
