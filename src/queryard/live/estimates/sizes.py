"""The bytes of the tables that queries name."""

from __future__ import annotations

from queryard.core.errors import QueryardError
from queryard.engine.syntax.classify import all_names
from queryard.estimate.work import Stored
from queryard.sql.catalog import Catalog
from queryard.sql.catalog.model import Table

from ..request import QueryRequest

_STORED: dict[str, Stored] = {
    "parquet": "columns",
    "csv": "text",
    "json": "text",
    "database": "memory",
    "frame": "memory",
}


class TableSizes:
    """The bytes of the tables that a query names, by how they are stored."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._seen: dict[str, Table] = {}
        # Name -> the schema it stands in, how it is stored, its bytes.
        self._by_name: dict[str, list[tuple[frozenset[str], Stored, float]]] = {}

    def of(self, request: QueryRequest) -> dict[Stored, float]:
        self._keep_up()
        # EXPLAIN without ANALYZE reads nothing.
        names = all_names(
            [
                statement
                for statement in request.statements
                if statement.kind != "EXPLAIN" or statement.explained is not None
            ]
        )
        found: dict[Stored, float] = {}
        by_name = self._by_name  # another thread may replace it
        for name in names & by_name.keys():
            for schema, stored, size in by_name[name]:
                if schema <= names:
                    found[stored] = found.get(stored, 0.0) + size
        return found

    def _keep_up(self) -> None:
        """Update new and changed tables; an unchanged table is the same object."""
        tables = self._catalog.tables
        if tables == self._seen:
            return
        by_name: dict[str, list[tuple[frozenset[str], Stored, float]]] = {}
        for table in tables.values():
            schema = frozenset(table.schema.lower().split(".")) if table.schema else frozenset()
            entry = (schema, _STORED[table.kind], _bytes(table))
            by_name.setdefault(table.name.lower(), []).append(entry)
        self._by_name, self._seen = by_name, dict(tables)


def _bytes(table: Table) -> float:
    try:
        return table.bytes
    except QueryardError:  # a query that reads the table gets the error
        return 0.0
