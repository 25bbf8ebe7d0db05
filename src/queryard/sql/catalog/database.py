"""Tables of DuckDB database files, attached for reading only."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from .locations import local_file
from .metadata import MetadataReader
from .model import (
    AttachedDatabase,
    CatalogError,
    Column,
    DataFile,
    NotSplittable,
    SourceSplit,
    Table,
    combined_fingerprint,
)
from .quoting import identifier, literal

MAGIC = b"DUCK"  # at byte 8 of every DuckDB file


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
    ) -> None:
        super().__init__(name, schema)
        self.database = database
        self.inner_schema = inner_schema
        self._columns = columns
        self._rows = rows
        self._bytes = size_bytes

    @property
    def columns(self) -> tuple[Column, ...]:
        return self._columns

    @cached_property
    def files(self) -> tuple[DataFile, ...]:
        log = Path(self.database.path + ".wal")
        files = [local_file(Path(self.database.path))]
        return tuple([*files, local_file(log)] if log.exists() else files)

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
        with open(path, "rb") as file:
            return file.read(12)[8:] == MAGIC
    except OSError:
        return False


def open_database(
    alias: str, path: Path, metadata: MetadataReader, schema: str | None = None
) -> tuple[AttachedDatabase, list[DatabaseTable]]:
    """The tables and views of a database file, named `alias.table`.

    Those of a schema other than `main` are `alias.schema.table`. With `schema=""` the tables of
    `main` are called by their names alone.
    """
    if not path.exists():
        raise CatalogError(f"{path}: no such database file")
    if not is_database(path):
        raise CatalogError(f"{path}: is not a DuckDB database file, or cannot be read")
    database = AttachedDatabase(alias, str(path))
    name = "catalog_looks"
    attach = f"ATTACH {literal(str(path))} AS {name} (READ_ONLY)"
    with metadata.alone():
        metadata.rows(attach, (), str(path))
        try:
            return database, _tables(database, name, metadata, schema)
        finally:
            metadata.rows(f"DETACH {name}", (), str(path))


def _tables(
    database: AttachedDatabase, attached: str, metadata: MetadataReader, schema: str | None
) -> list[DatabaseTable]:
    subject = database.path
    where = f"WHERE database_name = {literal(attached)}"
    columns: dict[tuple[str, str], list[Column]] = {}
    listed = metadata.rows(
        "SELECT schema_name, table_name, column_name, data_type FROM duckdb_columns() "
        f"{where} ORDER BY schema_name, table_name, column_index",
        (),
        subject,
    )
    for inner, name, column, type_ in listed:
        columns.setdefault((inner, name), []).append(Column(column, type_))
    sizes = metadata.rows(
        f"SELECT schema_name, table_name, estimated_size FROM duckdb_tables() {where}", (), subject
    )
    rows = {(inner, name): float(count) for inner, name, count in sizes}
    # Row widths divide the file among its tables: the exact blocks would need a walk through it.
    weight = {key: rows.get(key, 0.0) * len(columns[key]) for key in columns}
    total = sum(weight.values()) or 1.0
    file_bytes = Path(database.path).stat().st_size
    tables = []
    for (inner, name), found in columns.items():
        outer = database.alias if schema is None else schema
        if inner != "main":
            outer = f"{database.alias}.{inner}"
        share = file_bytes * weight[inner, name] / total
        count = rows.get((inner, name))
        tables.append(DatabaseTable(name, outer, database, inner, tuple(found), count, share))
    return tables
