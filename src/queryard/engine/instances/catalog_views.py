"""A small DuckDB instance in memory for facts about tables, never for their data.

The catalog views of the PostgreSQL front end live in one. It reaches no files and loads no
extensions, works in the thread that asks, and takes functions of Python for what is looked up.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

from queryard.core.errors import QueryardError

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "default_null_order": "NULLS_LAST_ON_ASC_FIRST_ON_DESC",
    "enable_external_access": False,
    "memory_limit": "256MB",
    "threads": 1,
}


class FactsFailed(QueryardError):
    """A statement on the facts that DuckDB refuses; the message is DuckDB's."""


class FactsDatabase:
    """Tables of facts, functions over them, and statements on both. Any thread may ask."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(":memory:", config=_SETTINGS)
        self._changing = threading.Lock()
        self._raised = threading.local()

    def add_function(
        self,
        name: str,
        parameters: Sequence[str],
        result: str,
        function: Callable[..., Any],
    ) -> None:
        """Call a function of Python in SQL, with None for NULL.

        An error of Queryard's that it raises is raised by `rows`, as it is.
        """
        raised = self._raised
        kind = _ARROW[result]

        def vector(*columns: Any) -> Any:
            try:
                values = [function(*row) for row in zip(*map(_listed, columns), strict=True)]
            except QueryardError as error:
                raised.error = error
                raise
            return pa.array(values, kind)

        # DuckDB counts the parameters of the function.
        vector.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter(f"column{place}", inspect.Parameter.POSITIONAL_ONLY)
                for place in range(len(parameters))
            ]
        )
        with self._changing:
            self._connection.create_function(
                name,
                vector,
                list(parameters),
                result,
                type=PythonUDFType.ARROW,
                null_handling=FunctionNullHandling.SPECIAL,
            )

    def add_table(self, name: str, rows: Any) -> None:
        """Make a table of the rows of a pyarrow.Table."""
        with self._changing:
            self._connection.register("given_rows", rows)
            try:
                self._connection.execute(f'CREATE TABLE "{name}" AS FROM given_rows')
            finally:
                self._connection.unregister("given_rows")

    def add_table_of(self, name: str, sql: str) -> None:
        """Make a table of the rows of a query."""
        with self._changing:
            self._connection.execute(f'CREATE TABLE "{name}" AS {sql}')

    def rows(self, sql: str, parameters: Mapping[str, Any]) -> Any:
        """The rows of a query as a pyarrow.Table; parameters are called by `$name`."""
        self._raised.error = None
        with self._connection.cursor() as cursor:
            try:
                relation = cursor.sql(sql, params=dict(parameters))
                return relation.to_arrow_table()
            except duckdb.Error as error:
                raise self._raised.error or FactsFailed(str(error)) from None

    def types(self, sql: str, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        """The types of the columns of a query, in DuckDB's words; nothing is run."""
        self._raised.error = None
        with self._connection.cursor() as cursor:
            try:
                relation = cursor.sql(sql, params=dict(parameters))
                return tuple(str(found) for found in relation.types)
            except duckdb.Error as error:
                raise self._raised.error or FactsFailed(str(error)) from None

    def close(self) -> None:
        """End the instance."""
        self._connection.close()


def _listed(column: Any) -> list[Any]:
    return list(column.to_pylist())


_ARROW = {
    "BIGINT": pa.int64(),
    "BOOLEAN": pa.bool_(),
    "INTEGER": pa.int32(),
    "VARCHAR": pa.string(),
    "VARCHAR[]": pa.list_(pa.string()),
}
