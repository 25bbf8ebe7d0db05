"""Tables as plain data, for another process that reads the same files.

Where a table lies and how it is read is carried; what is in its files is looked at there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .contents import Contents
from .csv_files import CsvTable
from .database import DatabaseTable
from .file_table import FileTable
from .json_files import JsonTable
from .metadata import MetadataReader
from .model import AttachedDatabase, Table
from .parquet import ParquetTable

_KINDS: dict[str, type[FileTable]] = {
    table.kind: table for table in (CsvTable, JsonTable, ParquetTable)
}


@dataclass(frozen=True, slots=True)
class CarriedTable:
    """A table by its kind, its name, and what it is made from."""

    kind: str
    name: str
    schema: str
    made_from: tuple[Any, ...]


def carried(tables: Iterable[Table]) -> tuple[CarriedTable, ...]:
    """Tables as data. Frames are left out: their rows are in this process.

    >>> import pyarrow
    >>> from queryard.sql.catalog import open_catalog
    >>> catalog = open_catalog(tables={"numbers": pyarrow.table({"n": [1, 2, 3]})})
    >>> carried(catalog.tables.values())
    ()
    """
    found = []
    for table in tables:
        made_from: tuple[Any, ...]
        if isinstance(table, DatabaseTable):
            made_from = table.made_from
        elif isinstance(table, FileTable):
            made_from = (table.files, table.options)
        else:
            continue
        found.append(CarriedTable(table.kind, table.name, table.schema, made_from))
    return tuple(found)


def arrived(
    tables: Iterable[CarriedTable],
    databases: Iterable[AttachedDatabase],
    metadata: MetadataReader,
) -> Contents:
    """The contents of a catalog that was carried; `metadata` looks at its files here."""
    found: list[Table] = []
    for table in tables:
        if table.kind == DatabaseTable.kind:
            found.append(DatabaseTable(table.name, table.schema, *table.made_from))
        else:
            files, options = table.made_from
            made = _KINDS[table.kind]
            found.append(made(table.name, table.schema, files, options, metadata))
    return Contents(found, list(databases))
