"""What ATTACH shows a client: the granted tables, in words that it can bind.

A client that attaches asks two questions about the catalog and reads CREATE TABLE statements. One
of them that it cannot bind fails the whole ATTACH, so the questions are answered here, with what
the client knows how to use:

- a table whose columns have types that the client does not know is left out;
- the client names tables of all schemas without their schema. It is told of a table that this
  leaves in doubt as of a view, which it names in full;
- the client fills in defaults itself, and can compute constants only. A table with other defaults
  that the client may write is told of as a view, too: it can be read, and not be filled wrongly.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from queryard.core.errors import QueryardError
from queryard.engine.sealing.access import Access
from queryard.sql.catalog import Catalog
from queryard.sql.catalog.model import Table
from queryard.sql.catalog.quoting import identifier

from .versions import Codec

CATALOG = "memory"
MAIN = "main"
# The questions, as DuckDB 1.5 puts them.
_SCHEMAS = (
    "SELECT catalog_name, schema_name FROM information_schema.schemata "
    "WHERE catalog_name NOT IN ('system', 'temp') ORDER BY ALL"
)
_TABLES = (
    "SELECT schema_name, sql, 'table' FROM duckdb_tables() "
    "UNION ALL SELECT schema_name, view_name, 'view' FROM duckdb_views()"
)
_QUESTION_LENGTH = 1000
_NAME = r'([A-Za-z_][A-Za-z0-9_]*|"(?:[^"]|"")+")'
_SCAN = re.compile(rf"SELECT ((?:#\d+)(?:, #\d+)*|NULL::BOOLEAN) FROM {_NAME}")
_VIEW = re.compile(rf"FROM {_NAME}\.{_NAME}")
_CONSTANT = re.compile(
    r"(?:CAST\()?\(?(?:-?\d+(?:\.\d+)?|'(?:[^']|'')*'|NULL|true|false)\)?"
    r"(?: AS [A-Za-z0-9_(), ]+\))?|'t'::BOOLEAN|'f'::BOOLEAN",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Scan:
    """A statement by which a client reads an attached table, as it is run, and the types of the
    columns that it was told of; None where it takes what comes.
    """

    asked: str
    sql: str
    types: tuple[str, ...] | None
    table: str


class Attachable:
    """The catalog of a tenant as one state of it is told to a client."""

    def __init__(self, catalog: Catalog, access: Access, codec: Codec) -> None:
        self.version = catalog.version
        self._access = access
        self._codec = codec
        self._tables = [table for table in catalog.tables.values() if self._is_known(table)]
        self._databases = sorted(each.alias for each in catalog.databases)
        self._names = Counter(table.name.lower() for table in catalog.tables.values())

    def _is_known(self, table: Table) -> bool:
        try:
            columns = table.columns
        except QueryardError:  # a file that cannot be read: a query on it tells
            return False
        return bool(columns) and all(self._codec.knows(column.type) for column in columns)

    def answer(self, sql: str) -> Any:
        """The answer to a question about the catalog, as a table of texts."""
        if _said(sql) == _SCHEMAS:
            schemas = {MAIN, *self._databases, *(table.schema for table in self._tables)} - {""}
            rows = [(CATALOG, schema) for schema in sorted(schemas)]
            return _table(("catalog_name", "schema_name"), rows)
        told = [self._told(table) for table in self._tables]
        return _table(("schema_name", "sql", "'table'"), told)

    def _told(self, table: Table) -> tuple[str, str, str]:
        schema = table.schema or MAIN
        if self._is_view(table):
            return schema, table.name, "view"
        defaults = dict(table.declared.defaults) if self._may_write(table) else {}
        columns = ", ".join(
            f"{identifier(name)} {kind}{_default(defaults.get(name))}"
            for name, kind in table.columns
        )
        full = f"{identifier(schema)}.{identifier(table.name)}"
        return schema, f"CREATE TABLE {full}({columns});", "table"

    def _is_view(self, table: Table) -> bool:
        if table.declared.view or (table.schema and self._names[table.name.lower()] > 1):
            return True
        constant = all(_CONSTANT.fullmatch(text) for _, text in table.declared.defaults)
        return self._may_write(table) and not constant

    def _may_write(self, table: Table) -> bool:
        return table.schema.split(".")[0].lower() in self._access.writes

    # --- what the client asks for afterwards -----------------------------------------------------

    @cached_property
    def _by_name(self) -> Mapping[str, Table]:
        """Tables by the names that a client uses; those of the main schema come first."""
        return {table.name.lower(): table for table in self._in_order(self._tables)}

    @staticmethod
    def _in_order(tables: Iterable[Table]) -> list[Table]:
        return sorted(tables, key=lambda table: not table.schema)

    @cached_property
    def _by_full_name(self) -> Mapping[tuple[str, str], Table]:
        return {
            ((table.schema or MAIN).lower(), table.name.lower()): table for table in self._tables
        }

    def scan(self, sql: str) -> Scan | None:
        """The read of an attached table, with its full name; None if there is no such table."""
        if (found := _SCAN.fullmatch(sql)) is not None:
            table = self._by_name.get(_unquoted(found[2]).lower())
            if table is None:
                return None
            text = f"SELECT {found[1]} FROM {full_name(table)}"
            return Scan(sql, text, _types(table, found[1]), table.key)
        if (found := _VIEW.fullmatch(sql)) is not None:
            place = _unquoted(found[1]).lower(), _unquoted(found[2]).lower()
            if (table := self._by_full_name.get(place)) is not None:
                return Scan(sql, f"FROM {full_name(table)}", None, table.key)
        return None


def is_question(sql: str) -> bool:
    """Whether a text is one by which a client learns of the catalog."""
    return len(sql) < _QUESTION_LENGTH and _said(sql) in (_SCHEMAS, _TABLES)


def is_scan(sql: str) -> bool:
    """Whether a text is one by which a client reads an attached table or view."""
    return _SCAN.fullmatch(sql) is not None or _VIEW.fullmatch(sql) is not None


def _said(sql: str) -> str:
    return " ".join(sql.split())


def full_name(table: Table) -> str:
    """A table as SQL names it."""
    return written(table.schema, table.name)


def written(schema: str, table: str) -> str:
    """A table of a schema, which may lie in a database, as SQL names it.

    >>> written("main", "orders"), written("shop.old", "orders")
    ('"orders"', '"shop"."old"."orders"')
    """
    parts = schema.split(".") if schema and schema != MAIN else []
    return ".".join(map(identifier, [*parts, table]))


def _types(table: Table, columns: str) -> tuple[str, ...] | None:
    if not columns.startswith("#"):
        return None
    numbers = [int(word.lstrip("#")) for word in columns.split(", ")]
    known = table.columns
    return tuple(known[number - 1].type for number in numbers if 0 < number <= len(known))


def _default(text: str | None) -> str:
    return "" if text is None else f" DEFAULT ({text})"


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _table(names: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Any:
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    return pa.table(columns or [pa.array([], pa.string()) for _ in names], names=list(names))
