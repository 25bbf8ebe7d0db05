"""The relations of the catalogs in a small instance of DuckDB, each made when it is first read."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import pyarrow as pa

from queryard.engine.instances.catalog_views import FactsDatabase

from .facts import CatalogFacts
from .lookups import Lookups
from .objects import Objects
from .relations import Relation, relations
from .rows import BASE, table_of
from .texts import keyword_rows
from .typed import Statement, named, quoted
from .types import format_type, held_as
from .views import USES, VIEWS


class World:
    """What there is to ask about."""

    def __init__(self, facts: CatalogFacts) -> None:
        self._facts = facts
        self._making = threading.RLock()
        self._made: set[str] = set()
        self._database: FactsDatabase | None = None
        self._users = 0
        self._unwanted = False

    @cached_property
    def _objects(self) -> Objects:
        return Objects(self._facts)

    @cached_property
    def _lookups(self) -> Lookups:
        return Lookups(self._objects)

    def rows(
        self, statement: Statement, values: Mapping[str, Any], needed: Iterable[Relation]
    ) -> Any:
        """The rows of a query, as Arrow; `needed` are the relations that it reads."""
        with self._used(needed) as database:
            return database.rows(statement.sql, _needed(statement, values))

    def types(
        self, statement: Statement, values: Mapping[str, Any], needed: Iterable[Relation]
    ) -> tuple[str, ...]:
        """The types of the columns of a query, as DuckDB calls them."""
        with self._used(needed) as database:
            return database.types(statement.sql, _needed(statement, values))

    def text_of(self, value: int | None, type_: str) -> str | None:
        """What a value of `regclass` or its kin is called."""
        lookups = self._lookups
        if type_ == "regtype":
            return format_type(value, None)
        return {
            "regclass": lookups.relation_text,
            "regnamespace": lookups.schema_text,
            "regproc": lookups.function_text,
            "regprocedure": lookups.function_text,
            "regrole": lookups.role_text,
        }[type_](value)

    def close(self) -> None:
        """End the instance, as soon as no thread uses it; a later question begins another."""
        with self._making:
            self._unwanted = True
            self._end_unused()

    @contextmanager
    def _used(self, needed: Iterable[Relation]) -> Iterator[FactsDatabase]:
        with self._making:
            database = self._database or self._begun()
            for relation in needed:
                self._make(relation, database)
            self._users += 1
        try:
            yield database
        finally:
            with self._making:
                self._users -= 1
                self._end_unused()

    def _begun(self) -> FactsDatabase:
        database = self._database = FactsDatabase()
        for lookup in self._lookups.functions():
            database.add_function(lookup.name, lookup.parameters, lookup.result, lookup.function)
        database.add_table("keywords", _keywords())
        return database

    def _end_unused(self) -> None:
        if self._unwanted and not self._users and self._database is not None:
            self._database.close()
            self._database = None
            self._made.clear()

    def _make(self, relation: Relation, database: FactsDatabase) -> None:
        if relation.key in self._made:
            return
        if relation.key in VIEWS:
            for used in USES[relation.key]:
                schema, _, name = used.partition(".")
                self._make(relations()[schema, name], database)
            database.add_table_of(relation.key, self._view(relation))
        elif relation.name in BASE and relation.schema == "pg_catalog":
            count, columns = BASE[relation.name](self._objects)
            database.add_table(relation.key, table_of(relation, count, columns))
        elif relation.rows == "empty":
            database.add_table(relation.key, table_of(relation, 0, {}))
        else:
            raise ValueError(f"nothing says which rows {relation.key} has")
        self._made.add(relation.key)

    def _view(self, relation: Relation) -> str:
        """The query of a view, with every column of the view in its place and of its type."""
        sql = VIEWS[relation.key].format(
            database=quoted(self._facts.database), user=quoted(self._facts.user)
        )
        columns = ", ".join(
            f"CAST({named(column.name)} AS {held_as(column.type)}) AS {named(column.name)}"
            for column in relation.columns
        )
        missing = ", ".join(f"NULL AS {named(column.name)}" for column in relation.columns)
        # What the view does not say of a column is NULL: rows of nothing name all columns.
        return f"SELECT {columns} FROM (SELECT {missing} WHERE false UNION ALL BY NAME ({sql}))"


def _keywords() -> Any:
    rows = keyword_rows()
    return pa.table(
        {
            name: [row[name] == "True" if name == "barelabel" else row[name] for row in rows]
            for name in ("word", "catcode", "barelabel", "catdesc", "baredesc")
        }
    )


def _needed(statement: Statement, values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in statement.needs}
