"""Questions to DuckDB itself: how it reads a statement, and which types and functions it knows.

The planner guesses neither types nor grammar. It holds empty tables of the right shape in an
instance of its own and asks; no row of any user's table is read.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import duckdb

from .contract import TableLike
from .errors import NotStageable


class Field(NamedTuple):
    """A column of an intermediate relation: a name unique within the plan, and DuckDB's type."""

    name: str
    type: str


def quoted(name: str) -> str:
    """The name as an identifier of SQL.

    >>> quoted('a "b"')
    '"a ""b""\"'
    """
    return '"' + name.replace('"', '""') + '"'


def quoted_table(schema: str, name: str) -> str:
    return f"{quoted(schema)}.{quoted(name)}" if schema else quoted(name)


_opening = threading.Lock()
_numbers = itertools.count(1)


@cache
def _instance(process: int) -> duckdb.DuckDBPyConnection:
    """The planner's own instance; opening one costs as much as a whole plan.

    One for each process, as an instance does not survive a fork. It opens no file, whatever a
    statement names.
    """
    return duckdb.connect(":memory:", config={"threads": 1, "enable_external_access": False})


def _cursor() -> duckdb.DuckDBPyConnection:
    with _opening:
        return _instance(os.getpid()).cursor()


class Oracle:
    """A private, empty database for one plan; close it after planning."""

    def __init__(self) -> None:
        self._connection = _cursor()
        self._database = f"plan_{next(_numbers)}"
        self._connection.execute(f"ATTACH ':memory:' AS {self._database}")
        self._connection.execute(f"USE {self._database}")

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.execute("USE memory")
        self._connection.execute(f"DETACH {self._database}")
        self._connection.close()

    def declare(self, table: TableLike) -> None:
        """Make an empty table of this shape, so that statements that name it can be described."""
        if table.schema:
            self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(table.schema)}")
        columns = ", ".join(f"{quoted(c.name)} {c.type}" for c in table.columns)
        name = quoted_table(table.schema, table.name)
        try:
            self._connection.execute(f"CREATE OR REPLACE TABLE {name} ({columns})")
        except duckdb.Error as error:
            raise NotStageable(f"table {table.name!r} has a type unknown here: {error}") from error

    def describe(self, sql: str, parameters: Any = ()) -> tuple[Field, ...]:
        """Names and types of the result of a statement; DuckDB's own error if it has one."""
        rows = self._connection.execute(f"DESCRIBE {sql}", parameters or None).fetchall()
        return tuple(Field(row[0], row[1]) for row in rows)

    def serialise(self, sql: str) -> dict[str, Any]:
        """How DuckDB's parser reads a statement."""
        row = self._connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchone()
        assert row is not None
        tree: dict[str, Any] = json.loads(row[0])
        return tree

    def constant(self, expression: str) -> Any:
        """The value of an expression without columns, or None if DuckDB will not compute it."""
        try:
            row = self._connection.execute(f"SELECT {expression}").fetchone()
        except duckdb.Error:
            return None
        return row[0] if row else None

    def types(self, expressions: Sequence[str], fields: Iterable[Field]) -> tuple[str, ...]:
        """The types of expressions over columns of the given names and types."""
        if not expressions:
            return ()
        columns = ", ".join(f"CAST(NULL AS {f.type}) AS {f.name}" for f in fields)
        items = ", ".join(f"{text} AS x{i}" for i, text in enumerate(expressions))
        found = self.describe(f"SELECT {items} FROM (SELECT {columns or '1 AS one'})")
        return tuple(field.type for field in found)


class FunctionKinds(NamedTuple):
    """The names of DuckDB's functions, by what the planner may do with them."""

    stable: frozenset[str]  # scalar, the same answer for the same arguments always
    unstable: frozenset[str]
    aggregates: frozenset[str]
    canonical: dict[str, str]  # alias -> the name it stands for


@cache
def function_kinds() -> FunctionKinds:
    """DuckDB's functions by kind, asked for once."""
    with _cursor() as connection:
        rows = connection.execute(
            "SELECT lower(function_name), function_type, stability, lower(alias_of) "
            "FROM duckdb_functions() WHERE internal"
        ).fetchall()
    scalar = [(name, stability) for name, kind, stability, _ in rows if kind == "scalar"]
    unstable = frozenset(name for name, stability in scalar if stability != "CONSISTENT")
    other = frozenset(name for name, kind, _, _ in rows if kind in ("macro", "table"))
    stable = frozenset(name for name, _ in scalar) - unstable - other
    return FunctionKinds(
        stable=stable,
        unstable=unstable,
        aggregates=frozenset(name for name, kind, _, _ in rows if kind == "aggregate"),
        canonical={name: alias for name, _, _, alias in rows if alias},
    )
