"""What the names of columns mean in a place of a query."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from .answers import UnknownCatalogQuery
from .typed import Typed, named


class Output(NamedTuple):
    """A column of a relation or of a query; the type is None if only DuckDB knows it."""

    name: str
    type: str | None


@dataclass(slots=True)
class Source:
    """Something in FROM under its alias; `schema` and `oid` are those of a relation."""

    alias: str
    columns: tuple[Output, ...]
    schema: str = ""
    oid: int = 0


@dataclass(slots=True)
class Scope:
    """The sources of a query, and the query around it."""

    parent: Scope | None = None
    sources: list[Source] = field(default_factory=list)
    merged: dict[str, str | None] = field(default_factory=dict)
    """Columns that a join with USING has made one of two."""
    tables: dict[str, tuple[Output, ...]] = field(default_factory=dict)
    """The queries of WITH, by name."""

    def table(self, name: str) -> tuple[Output, ...] | None:
        """The columns of a query of WITH, here or around."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.tables:
                return scope.tables[name]
            scope = scope.parent
        return None

    def column(self, name: str, table: str = "", schema: str = "") -> Typed | None:
        """The column that a name means, in this query or in one around it; None if none does."""
        scope: Scope | None = self
        while scope is not None:
            found = scope._own(name, table, schema)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def _own(self, name: str, table: str, schema: str) -> Typed | None:
        if not table and name in self.merged:
            return Typed(named(name), self.merged[name])
        found: list[Typed] = []
        for source in self.sources:
            if (table and source.alias != table) or (schema and source.schema != schema):
                continue
            for column in source.columns:
                if column.name == name:
                    found.append(Typed(f"{named(source.alias)}.{named(name)}", column.type))
                    break
            else:
                if name == "tableoid" and source.oid:
                    found.append(Typed(f"{source.oid}::BIGINT", "oid"))
                elif table:
                    raise UnknownCatalogQuery(f"column {table}.{name} does not exist", "42703")
        if len(found) > 1:
            raise UnknownCatalogQuery(f'column reference "{name}" is ambiguous', "42702")
        return found[0] if found else None

    def all_columns(self, table: str = "") -> list[tuple[Output, str]]:
        """What `*` or `table.*` stands for: columns, each with its SQL."""
        scope: Scope | None = self
        while scope is not None:
            sources = [s for s in scope.sources if not table or s.alias == table]
            if sources or not table:
                break
            scope = scope.parent
        else:
            raise UnknownCatalogQuery(f'missing FROM-clause entry for table "{table}"', "42P01")
        assert scope is not None
        merged = {} if table else scope.merged
        found = [(Output(name, type_), named(name)) for name, type_ in merged.items()]
        found += [
            (column, f"{named(source.alias)}.{named(column.name)}")
            for source in sources
            for column in source.columns
            if column.name not in merged
        ]
        return found
