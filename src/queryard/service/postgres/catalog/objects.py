"""The objects that have OIDs: schemas, tables, indexes, constraints. The same name has the same OID
in every session, so that a client may keep what it has read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from .dependencies import tables_in
from .facts import CatalogFacts, KeyFacts, TableFacts

OWNER = 10  # PostgreSQL's OID of the first role
PG_CATALOG = 11
PG_TOAST = 99
DEFAULT_SCHEMA = 2200  # PostgreSQL's OID of `public`
INFORMATION_SCHEMA = 13000
_FIRST = 16384  # OIDs below it are PostgreSQL's own
_SPAN = 2**31 - _FIRST


@dataclass(frozen=True, slots=True)
class TableObject:
    """A table with its OID; `numbers` are those of its columns, by name."""

    oid: int
    namespace: int
    facts: TableFacts
    numbers: dict[str, int]


@dataclass(frozen=True, slots=True)
class ViewRule:
    """The rule that makes a view of a query, and the tables that the query reads."""

    oid: int
    view: TableObject
    reads: tuple[TableObject, ...]


@dataclass(frozen=True, slots=True)
class ConstraintObject:
    """A constraint. `index` is the OID of the index that PostgreSQL would keep for the key."""

    oid: int
    name: str
    key: KeyFacts
    table: TableObject
    columns: tuple[int, ...]
    index: int = 0
    index_name: str = ""
    target: TableObject | None = None
    referenced: tuple[int, ...] = ()
    target_index: int = 0


class Objects:
    """All objects of a catalog, with their OIDs."""

    def __init__(self, facts: CatalogFacts) -> None:
        self.facts = facts
        self._taken: set[int] = set()
        tables = sorted(facts.tables, key=lambda table: (table.schema, table.name))
        self.namespaces = {
            "pg_catalog": PG_CATALOG,
            "pg_toast": PG_TOAST,
            "information_schema": INFORMATION_SCHEMA,
            facts.schema: DEFAULT_SCHEMA,
        }
        for schema in sorted({table.schema for table in tables} - self.namespaces.keys()):
            self.namespaces[schema] = self._oid("schema", schema)
        self.database = self._oid("database", facts.database)
        self.tables = tuple(
            TableObject(
                self._oid("table", table.schema, table.name),
                self.namespaces[table.schema],
                table,
                {column.name: number for number, column in enumerate(table.columns, 1)},
            )
            for table in tables
        )
        self.constraints = tuple(self._constraints())
        self.rules = tuple(
            ViewRule(
                self._oid("rule", table.facts.schema, table.facts.name),
                table,
                self._read_by(table.facts),
            )
            for table in self.tables
            if table.facts.view
        )

    def _read_by(self, view: TableFacts) -> tuple[TableObject, ...]:
        """The tables of the catalog that the definition of a view names."""
        found = {}
        for name in tables_in(view.definition or ""):
            full = name if len(name) > 1 else (*view.schema.split("."), *name)
            table = self._by_parts.get(tuple(part.lower() for part in full))
            if table is not None:
                found[table.oid] = table
        return tuple(found.values())

    @cached_property
    def _by_parts(self) -> dict[tuple[str, ...], TableObject]:
        """Tables by their names in parts, in lower case; `shop.main.orders` is `shop.orders`."""
        found = {}
        for table in self.tables:
            parts = (*table.facts.schema.lower().split("."), table.facts.name.lower())
            found[parts] = table
            if len(parts) == 2:
                found.setdefault((parts[0], "main", parts[1]), table)
        return found

    def _oid(self, *names: str) -> int:
        """A number made of the name; the next free one if another object has it already."""
        digest = hashlib.blake2b("\0".join(names).encode("utf-8", "surrogateescape"))
        oid = _FIRST + int.from_bytes(digest.digest()[:8], "big") % _SPAN
        while oid in self._taken:
            oid = _FIRST + (oid + 1 - _FIRST) % _SPAN
        self._taken.add(oid)
        return oid

    def _constraints(self) -> Iterable[ConstraintObject]:
        """Keys first: foreign keys name the index of the key that they refer to."""
        by_name = {(table.facts.schema, table.facts.name): table for table in self.tables}
        indexes: dict[tuple[int, frozenset[int]], int] = {}
        foreign: list[tuple[TableObject, KeyFacts, str]] = []
        for table in self.tables:
            called: set[str] = set()
            for key in table.facts.keys:
                name = _unused(key.name, called)
                if key.kind == "foreign":
                    foreign.append((table, key, name))
                    continue
                columns = _numbers(table, key.columns)
                named = (table.facts.schema, table.facts.name, name)
                index = self._oid("index", *named) if key.kind != "check" else 0
                indexes[table.oid, frozenset(columns)] = index
                yield ConstraintObject(
                    self._oid("constraint", *named), name, key, table, columns, index, name
                )
        for table, key, name in foreign:
            target = by_name.get(key.references or ("", ""))
            if target is None:
                continue  # a table that this client may not see
            referenced = _numbers(target, key.referenced)
            yield ConstraintObject(
                self._oid("constraint", table.facts.schema, table.facts.name, name),
                name,
                key,
                table,
                _numbers(table, key.columns),
                target=target,
                referenced=referenced,
                target_index=indexes.get((target.oid, frozenset(referenced)), 0),
            )

    @cached_property
    def indexed(self) -> tuple[ConstraintObject, ...]:
        """The constraints that PostgreSQL would keep an index for."""
        return tuple(found for found in self.constraints if found.index)

    @cached_property
    def with_index(self) -> frozenset[int]:
        """The OIDs of tables that have a key."""
        return frozenset(found.table.oid for found in self.indexed)

    @cached_property
    def with_foreign_key(self) -> frozenset[int]:
        """The OIDs of tables that refer to others, and of those that are referred to."""
        return frozenset(
            table.oid
            for found in self.constraints
            if found.target is not None
            for table in (found.table, found.target)
        )


def _numbers(table: TableObject, columns: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(table.numbers[name] for name in columns)


def _unused(name: str, taken: set[str]) -> str:
    """A name that no constraint of the table has yet; DuckDB does not insist on that.

    >>> _unused("a_check", {"a_check"})
    'a_check1'
    """
    found, count = name, 0
    while found in taken:
        count += 1
        found = f"{name}{count}"
    taken.add(found)
    return found
