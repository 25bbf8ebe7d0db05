"""Tables of DuckDB database files, attached for reading only."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any, Literal

from .locations import local_file
from .metadata import MetadataReader
from .model import (
    AttachedDatabase,
    CatalogError,
    Column,
    Constraint,
    DataFile,
    Declared,
    NotSplittable,
    SourceSplit,
    Table,
    combined_fingerprint,
)
from .open_files import AGAIN_S, Ask, FileInUse, is_same, looking
from .quoting import identifier, literal

MAGIC = b"DUCK"  # at byte 8 of every DuckDB file

# How long a look at a file waits for a session that has just lost it to take note of that.
UNDONE_S = 5.0


class DatabaseTable(Table):
    """A table or view of an attached database; one instance reads it as a whole."""

    kind = "database"

    def __init__(
        self,
        name: str,
        schema: str,
        database: AttachedDatabase,
        inner_schema: str,
        columns: tuple[Column, ...],
        rows: float | None,
        size_bytes: float,
        files: tuple[DataFile, ...],
        declared: Declared = Declared(),  # noqa: B008 - it is frozen
    ) -> None:
        super().__init__(name, schema)
        self.database = database
        self.inner_schema = inner_schema
        self._columns = columns
        self._rows = rows
        self._bytes = size_bytes
        self._files = files
        self._declared = declared

    def over(self, files: tuple[DataFile, ...]) -> DatabaseTable:
        """The same table in another state of its file."""
        found = copy(self)
        found._files = files
        return found

    @property
    def made_from(self) -> tuple[Any, ...]:
        """What it was made from, behind its name and its schema."""
        what = (self.database, self.inner_schema, self._columns, self._rows, self._bytes)
        return (*what, self._files, self._declared)

    @property
    def declared(self) -> Declared:
        return self._declared

    @property
    def columns(self) -> tuple[Column, ...]:
        return self._columns

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The database and its log, as they were when the table was looked at."""
        return self._files

    @property
    def bytes(self) -> float:
        return self._bytes

    @property
    def rows(self) -> float | None:
        return self._rows

    @property
    def relation(self) -> str:
        parts = (self.database.alias, self.inner_schema, self.name)
        return ".".join(identifier(part) for part in parts)

    @property
    def fingerprint(self) -> str:
        return combined_fingerprint([super().fingerprint, self.inner_schema, self.name])

    def splits(self, target_bytes: float) -> tuple[SourceSplit, ...]:
        raise NotSplittable(
            f"table {self.key}: lies in the database {self.database.path}, which one instance "
            "reads as a whole"
        )

    def row_group_splits(self) -> tuple[SourceSplit, ...]:
        return self.splits(1.0)


def is_database(path: Path) -> bool:
    """Whether a local file is a DuckDB database, whatever its ending."""
    try:
        with looking(path):
            return _has_magic(path)
    except FileInUse:
        return True  # an instance writes it


def _has_magic(path: Path) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(12)[8:] == MAGIC
    except OSError:
        return False


def open_database(
    alias: str, path: Path, metadata: MetadataReader, schema: str | None = None
) -> tuple[AttachedDatabase, list[DatabaseTable]]:
    """The tables and views of a database file, named `alias.table`.

    Those of a schema other than `main` are `alias.schema.table`. With `schema=""` the tables of
    `main` are called by their names alone. A file that the session of this catalog writes is not
    opened: the session's instance is asked.
    """
    if not path.exists():
        raise CatalogError(f"{path}: no such database file")
    database = AttachedDatabase(alias, str(path))
    until_s = time.monotonic() + UNDONE_S
    while True:
        with looking(path, metadata) as ask:
            if ask is None:
                if not _has_magic(path):
                    raise CatalogError(f"{path}: is not a DuckDB database file, or cannot be read")
                return database, _opened(database, metadata, schema)
            if (attached := _attached_as(database, ask)) is not None:
                return database, _tables(database, attached, ask, schema)
        # What a transaction has attached goes with its ROLLBACK, a moment before its session knows.
        if time.monotonic() > until_s:
            raise CatalogError(f"{path}: is being detached in this session")
        time.sleep(AGAIN_S)


def with_files(tables: Sequence[DatabaseTable]) -> list[Table]:
    """Tables of one database as of now: the same, with the state that the file has by now."""
    if not tables or (files := _files(tables[0].database.path)) == tables[0].files:
        return list(tables)
    return [table.over(files) for table in tables]


def _opened(
    database: AttachedDatabase, metadata: MetadataReader, schema: str | None
) -> list[DatabaseTable]:
    name = "catalog_looks"

    def rows(sql: str) -> list[tuple[Any, ...]]:
        return metadata.rows(sql, (), database.path)

    with metadata.alone():
        rows(f"ATTACH {literal(database.path)} AS {name} (READ_ONLY)")
        try:
            return _tables(database, name, rows, schema)
        finally:
            rows(f"DETACH {name}")


def _attached_as(database: AttachedDatabase, ask: Ask) -> str | None:
    """The name of a database in the instance that writes it; None if it is detached there."""
    found = ask("SELECT database_name, path FROM duckdb_databases() WHERE path IS NOT NULL")
    for name, path in found:
        if is_same(path, database.path):
            if str(name).lower() == database.alias.lower():
                return str(name)
            raise CatalogError(f"{database.path}: is attached in this session as {name}")
    return None


def _tables(
    database: AttachedDatabase,
    attached: str,
    ask: Ask,
    schema: str | None,
) -> list[DatabaseTable]:
    where = f"WHERE database_name = {literal(attached)}"
    columns: dict[tuple[str, str], list[Column]] = {}
    listed = ask(
        "SELECT schema_name, table_name, column_name, data_type FROM duckdb_columns() "
        f"{where} ORDER BY schema_name, table_name, column_index"
    )
    for inner, name, column, type_ in listed:
        columns.setdefault((inner, name), []).append(Column(column, type_))
    sizes = ask(f"SELECT schema_name, table_name, estimated_size FROM duckdb_tables() {where}")
    rows = {(inner, name): float(count) for inner, name, count in sizes}
    # Row widths divide the file among its tables: the exact blocks would need a walk through it.
    weight = {key: rows.get(key, 0.0) * len(columns[key]) for key in columns}
    total = sum(weight.values()) or 1.0
    files = _files(database.path)
    declared = _declared(where, ask)
    tables = []
    for (inner, name), found in columns.items():
        outer = database.alias if schema is None else schema
        if inner != "main":
            outer = f"{database.alias}.{inner}"
        share = files[0].bytes * weight[inner, name] / total
        count = rows.get((inner, name))
        tables.append(
            DatabaseTable(
                name,
                outer,
                database,
                inner,
                tuple(found),
                count,
                share,
                files,
                declared.get((inner, name), Declared()),
            )
        )
    return tables


_KINDS: dict[str, Literal["primary", "unique", "foreign", "check", "not null"]] = {
    "PRIMARY KEY": "primary",
    "UNIQUE": "unique",
    "FOREIGN KEY": "foreign",
    "CHECK": "check",
    "NOT NULL": "not null",
}


def _declared(where: str, ask: Ask) -> dict[tuple[str, str], Declared]:
    """What the database says of its tables and views beside their columns."""
    constraints: dict[tuple[str, str], list[Constraint]] = {}
    listed = ask(
        "SELECT schema_name, table_name, constraint_type, constraint_name, "
        "constraint_column_names, referenced_table, referenced_column_names, expression "
        f"FROM duckdb_constraints() {where} ORDER BY constraint_index"
    )
    for inner, name, kind, called, columns, table, referenced, condition in listed:
        constraint = Constraint(
            _KINDS[kind], called, tuple(columns), table or "", tuple(referenced), condition or ""
        )
        constraints.setdefault((inner, name), []).append(constraint)
    defaults: dict[tuple[str, str], list[tuple[str, str]]] = {}
    comments: dict[tuple[str, str], list[tuple[str, str]]] = {}
    listed = ask(
        "SELECT schema_name, table_name, column_name, column_default, comment "
        f"FROM duckdb_columns() {where} AND (column_default IS NOT NULL OR comment IS NOT NULL)"
    )
    for inner, name, column, default, comment in listed:
        if default is not None:
            defaults.setdefault((inner, name), []).append((column, default))
        if comment is not None:
            comments.setdefault((inner, name), []).append((column, comment))
    listed = ask(
        f"SELECT schema_name, table_name, comment, NULL FROM duckdb_tables() {where} UNION ALL "
        f"SELECT schema_name, view_name, comment, sql FROM duckdb_views() {where}"
    )
    return {
        (inner, name): Declared(
            view=definition is not None,
            definition=definition,
            comment=comment,
            constraints=tuple(constraints.get((inner, name), ())),
            defaults=tuple(defaults.get((inner, name), ())),
            comments=tuple(comments.get((inner, name), ())),
        )
        for inner, name, comment, definition in listed
    }


def _files(path: str) -> tuple[DataFile, ...]:
    """A database and its log."""
    found = [local_file(Path(path))]
    with contextlib.suppress(CatalogError):  # a log comes and goes
        found.append(local_file(Path(path + ".wal")))
    return tuple(found)
