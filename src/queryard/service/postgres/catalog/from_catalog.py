"""From a catalog, as a client may see it, to the facts that its catalog views are made of."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Protocol

from queryard.core.errors import QueryardError
from queryard.sql.catalog.model import Constraint, Table

from .facts import CatalogFacts, ColumnFacts, KeyFacts, KeyKind, TableFacts

_log = logging.getLogger(__name__)

_KEYS: Mapping[str, KeyKind] = {
    "primary": "primary",
    "unique": "unique",
    "foreign": "foreign",
    "check": "check",
}


class HasTables(Protocol):
    """A catalog, or a view of one that shows only the tables that were granted."""

    @property
    def tables(self) -> Mapping[str, Table]: ...


def facts_of(
    catalog: HasTables,
    *,
    database: str = "memory",
    schema: str = "main",
    user: str = "queryard",
    tenant: str = "default",
    writes: Collection[str] = (),
    searched: tuple[str, ...] = ("main",),
) -> CatalogFacts:
    """The facts about every table of a catalog.

    `writes` are the aliases of databases that the client may write. A table that cannot be read (a
    damaged file) is left out, as a query on it would fail; the log says so.
    """
    writable = {alias.lower() for alias in writes}
    visible = {(table.schema, table.name) for table in catalog.tables.values()}
    tables = []
    for table in catalog.tables.values():
        try:
            tables.append(_table(table, visible, schema, writable))
        except QueryardError as error:
            _log.warning("table %s is not shown to PostgreSQL clients: %s", table.key, error)
    return CatalogFacts(tuple(tables), database, schema, user, tenant, searched)


def _table(
    table: Table, visible: Collection[tuple[str, str]], schema: str, writable: Collection[str]
) -> TableFacts:
    declared = table.declared
    not_null = {
        name
        for constraint in declared.constraints
        if constraint.kind in ("not null", "primary")
        for name in constraint.columns
    }
    defaults = dict(declared.defaults)
    comments = dict(declared.comments)
    own = table.schema or schema
    return TableFacts(
        own,
        table.name,
        tuple(
            ColumnFacts(
                column.name,
                column.type,
                column.name in not_null,
                defaults.get(column.name),
                comments.get(column.name),
            )
            for column in table.columns
        ),
        _keys(table, declared.constraints, visible, own),
        None if declared.view else table.rows,
        None if declared.view else table.bytes,
        declared.view,
        declared.definition,
        declared.comment,
        table.schema.split(".")[0].lower() in writable,
    )


def _keys(
    table: Table,
    constraints: tuple[Constraint, ...],
    visible: Collection[tuple[str, str]],
    schema: str,
) -> tuple[KeyFacts, ...]:
    """The keys, without those that refer to a table which the client may not see."""
    found = []
    for constraint in constraints:
        kind = _KEYS.get(constraint.kind)
        if kind is None:
            continue  # NOT NULL is a fact of the column
        if kind != "foreign":
            found.append(
                KeyFacts(kind, constraint.name, constraint.columns, condition=constraint.condition)
            )
        elif (table.schema, constraint.table) in visible:
            found.append(
                KeyFacts(
                    kind,
                    constraint.name,
                    constraint.columns,
                    (schema, constraint.table),
                    constraint.referenced,
                )
            )
    return tuple(found)
