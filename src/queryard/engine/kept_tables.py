"""Tables of text that a native statement reads from parsed segments, while these are kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import duckdb

from queryard.sql.catalog.canonical import is_text_table
from queryard.sql.catalog.model import Column, Table
from queryard.sql.catalog.quoting import identifier, path_list

from .instances.views import FileTable
from .segments import SegmentStore

KeptColumns = tuple[tuple[str, tuple[str, ...]], ...]
"""The columns that a statement reads of tables of text, by table."""


@dataclass(frozen=True, slots=True)
class KeptTable:
    """A table as it is kept, with another fingerprint than that of its files.

    It has all columns; those that are not read are NULL.
    """

    schema: str
    name: str
    relation: str
    fingerprint: str
    columns: tuple[Column, ...]
    paths: tuple[str, ...]
    elsewhere: str = ""


def columns_read(sql: str, tables: Sequence[Table], store: SegmentStore) -> KeptColumns:
    """What DuckDB's own plan of a statement reads of its table of text, if that is kept.

    For statements that our planner cannot split: if one of the `tables` that it may name is text
    and kept as a whole. Nothing if that is not so, or cannot be found out.
    """
    texts = [table for table in tables if is_text_table(table)]
    if len(texts) != 1:
        return ()
    (text,) = texts
    with store.complete(text, ()) as relation:
        if relation is None:
            return ()
    names = _projected(sql, tables)
    if names is None or not names <= {column.name for column in text.columns}:
        return ()
    wanted = tuple(column.name for column in text.columns if column.name in names)
    with store.complete(text, wanted) as relation:
        return () if relation is None else ((text.key, wanted),)


def _projected(sql: str, tables: Sequence[Table]) -> set[str] | None:
    """The columns that scans of text in DuckDB's plan read; None if there is no such plan."""
    files = [file.uri for table in tables for file in table.files]
    try:
        with duckdb.connect(":memory:", config={"threads": 1}) as connection:
            # The statement is only planned, and no other file is looked at for that.
            connection.execute(f"SET allowed_paths = {path_list(files)}")
            connection.execute("SET enable_external_access = false")
            for table in tables:
                name = identifier(table.name)
                if table.schema:
                    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {identifier(table.schema)}")
                    name = f"{identifier(table.schema)}.{name}"
                connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {table.relation}")
            found = connection.execute(f"EXPLAIN (FORMAT json) {sql}").fetchone()
    except duckdb.Error:
        return None
    assert found is not None
    scans = [node for root in json.loads(found[1]) for node in _text_scans(root)]
    if not scans:
        return None
    columns: set[str] = set()
    for scan in scans:
        listed = scan.get("Projections")
        if listed is None:
            return None
        columns.update([listed] if isinstance(listed, str) else listed)
    return columns - {""}


def _text_scans(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    extra = node.get("extra_info") or {}
    if str(extra.get("Function", "")).startswith(("READ_CSV", "READ_JSON", "READ_NDJSON")):
        yield extra
    for child in node.get("children", ()):
        yield from _text_scans(child)


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
        # Columns that nothing is read of may be named in the statement all the same.
        items = (
            identifier(column.name)
            if column.name in columns
            else f"CAST(NULL AS {column.type}) AS {identifier(column.name)}"
            for column in table.columns
        )
        relation = f"(SELECT {', '.join(items)} FROM {relation})"
        mark = hashlib.sha256(relation.encode()).hexdigest()[:16]
        version = f"{table.fingerprint} kept {mark}"
        return KeptTable(table.schema, table.name, relation, version, table.columns, paths)

    def close(self) -> None:
        """No statement reads them any more."""
        self._found.clear()
        self._leases.close()
