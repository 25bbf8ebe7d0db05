"""Tables of text that a native statement reads from parsed segments, while these are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from queryard.sql.catalog.model import Column, Table

from .segments import SegmentStore
from .views import FileTable

KeptColumns = tuple[tuple[str, tuple[str, ...]], ...]
"""The columns that a statement reads of tables of text, by table."""


@dataclass(frozen=True, slots=True)
class KeptTable:
    """A table as it is kept: some columns, and another fingerprint than that of its files."""

    schema: str
    name: str
    relation: str
    fingerprint: str
    columns: tuple[Column, ...]
    paths: tuple[str, ...]
    elsewhere: str = ""


class KeptTables:
    """What is kept of some tables is leased from its first use until `close`."""

    def __init__(self, store: SegmentStore, columns: KeptColumns) -> None:
        self._store = store
        self._columns = dict(columns)
        self._leases = ExitStack()
        self._found: dict[str, FileTable] = {}

    def over(self, tables: Mapping[str, Table]) -> Mapping[str, FileTable]:
        """The tables, those that are kept as a whole in their kept form."""
        if not self._columns:
            return tables
        for key, columns in self._columns.items():
            if key in tables and key not in self._found:
                self._found[key] = self._kept(tables[key], columns)
        return {**tables, **{key: kept for key, kept in self._found.items() if key in tables}}

    def paths(self, tables: Mapping[str, Table]) -> tuple[str, ...]:
        """The files of what is kept of these tables and will be read."""
        self.over(tables)
        kept = (each for each in self._found.values() if isinstance(each, KeptTable))
        return tuple(path for each in kept for path in each.paths)

    def _kept(self, table: Table, columns: tuple[str, ...]) -> FileTable:
        found = self._leases.enter_context(self._store.complete_files(table, columns))
        if found is None:
            return table
        relation, paths = found
        read = tuple(column for column in table.columns if column.name in columns)
        mark = hashlib.sha256(relation.encode()).hexdigest()[:16]
        return KeptTable(
            table.schema, table.name, relation, f"{table.fingerprint} kept {mark}", read, paths
        )

    def close(self) -> None:
        """No statement reads them any more."""
        self._found.clear()
        self._leases.close()
