"""The tables of the catalog as views of one DuckDB instance, made when first named."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from queryard.core.errors import near_name
from queryard.sql.catalog import Catalog, Table
from queryard.sql.catalog.database import DatabaseTable
from queryard.sql.catalog.frames import FrameTable
from queryard.sql.catalog.quoting import identifier, written_name

from ..errors import QueryFailed, missing_table
from ..sealing.access import Seal
from ..sealing.links import CannotLink, Links
from .instance import Connection

SHOWN_TABLES = 20


class FileTable(Protocol):
    """What a view needs to know of a table."""

    @property
    def schema(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def relation(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def elsewhere(self) -> str: ...
    @property
    def columns(self) -> object: ...


class Views:
    """Which tables an instance has as views, and from which state of their files."""

    def __init__(self) -> None:
        # Key -> fingerprint of the files, and the name of the view.
        self._made: dict[str, tuple[str, str]] = {}
        self._schemas: set[str] = set()

    def make(
        self, connection: Connection, tables: Mapping[str, FileTable], names: Iterable[str]
    ) -> dict[str, Exception]:
        """Make the views of all tables that may be meant; what went wrong, by table.

        An error is kept, not raised: a word of a statement may be a column that has the same
        name as a broken table.
        """
        for key in self._made.keys() - tables.keys():
            connection.run(f"DROP VIEW IF EXISTS {self._made.pop(key)[1]}")
        errors: dict[str, Exception] = {}
        wanted = set(names)
        for key, table in tables.items():
            if table.schema.lower() in wanted:  # it may be searched: USE
                self._have_schema(connection, table.schema)
            if table.name.lower() not in wanted:
                continue
            try:
                # Looking at a table may open its files for the first time.
                if self._made.get(key, ("", ""))[0] == table.fingerprint:
                    continue
                self._make_one(connection, key, table)
            except QueryFailed as error:
                # The user did not write the statement that makes the view: leave it out.
                errors[table.name.lower()] = QueryFailed(f"table {key}: {_without_line(error)}")
            except Exception as error:
                errors[table.name.lower()] = error
            else:
                continue
            # What it was made of before is not what a statement may read now.
            if key in self._made:
                connection.run(f"DROP VIEW IF EXISTS {self._made.pop(key)[1]}")
        return errors

    def _make_one(self, connection: Connection, key: str, table: FileTable) -> None:
        if table.elsewhere:
            raise QueryFailed(
                f"{table.elsewhere} does not lie on this machine, and tables are read from local "
                "files only; copy it here and name the copy"
            )
        # The catalog has the better error message for unreadable files.
        assert table.columns is not None
        self._made[key] = (table.fingerprint, self._create(connection, table))

    def _create(self, connection: Connection, table: FileTable) -> str:
        """Make the view; its name."""
        self._have_schema(connection, table.schema)
        schema = identifier(table.schema or "main")
        place = f"memory.{schema}.{identifier(table.name)}"
        connection.run(f"CREATE OR REPLACE VIEW {place} AS SELECT * FROM {table.relation}")
        return place

    def _have_schema(self, connection: Connection, schema: str) -> None:
        if schema and schema not in self._schemas:
            connection.run(f"CREATE SCHEMA IF NOT EXISTS memory.{identifier(schema)}")
            self._schemas.add(schema)


class LinkedTable:
    """A table that an instance may read under links only: it has files that came later."""

    def __init__(self, table: Table, links: Links) -> None:
        self._table = table
        self._links = links
        self.schema, self.name, self.elsewhere = table.schema, table.name, table.elsewhere
        self.fingerprint = f"{table.fingerprint} linked"

    @property
    def columns(self) -> object:
        return self._table.columns

    @property
    def relation(self) -> str:
        try:
            return self._links.relation(self._table.relation)
        except CannotLink as error:
            raise QueryFailed(
                f"files of {self._table.key} came after what this client has made for itself, and "
                f"cannot be shown to it any more ({error}); ask without temporary objects, or "
                "connect anew"
            ) from None


def within(tables: Mapping[str, Table], seal: Seal | None, links: Links) -> Mapping[str, FileTable]:
    """Tables as an instance of this seal can read them."""
    if seal is None:
        return tables
    return {
        key: table
        if seal.paths.issuperset(file.uri for file in table.files)
        else LinkedTable(table, links)
        for key, table in tables.items()
    }


class OwnViews(Views):
    """Views that one connection has to itself; tables in a schema have none."""

    def _create(self, connection: Connection, table: FileTable) -> str:
        name = identifier(table.name)
        connection.run(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM {table.relation}")
        return f"temp.main.{name}"


def file_tables(catalog: Catalog) -> dict[str, Table]:
    """The tables that any instance can have as views."""
    return {
        key: table
        for key, table in catalog.tables.items()
        if not isinstance(table, FrameTable | DatabaseTable)
    }


def _without_line(error: QueryFailed) -> str:
    return str(error).partition("\n\nLINE ")[0]


def unusable(known: Mapping[str, Exception], names: Iterable[str]) -> dict[str, Exception]:
    """What to say of names that mean no table, or several."""
    return {name: known[name] for name in names if name in known}


def explain_missing(
    error: BaseException, errors: Mapping[str, Exception], known: Collection[str]
) -> BaseException:
    """What to say of a table that DuckDB does not find.

    It may be a table with unreadable files. If not, DuckDB's own suggestion does not know the
    tables that no query has used yet.
    """
    name = missing_table(str(error))
    if name is None or not isinstance(error, QueryFailed):
        return error
    # Of a name with dots, the first part is the database or the folder.
    whole = name.lower().strip('"')
    for part in (whole, whole.split(".")[0]):
        if part in errors:
            return errors[part]
    near = near_name(whole, known)
    if near is not None:
        hint = f"Did you mean {written_name(near)}?"
    else:
        some = [written_name(key) for key in sorted(known)[:SHOWN_TABLES]]
        more = ", …" if len(known) > len(some) else ""
        hint = f"There are: {', '.join(some)}{more}" if some else "There are no tables."
    lines = [line for line in str(error).splitlines() if not line.startswith("Did you mean")]
    return QueryFailed("\n".join([lines[0], hint, *lines[1:]]))
