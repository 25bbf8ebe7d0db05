"""What a statement gives and takes: names and types of its columns, types of its parameters.

DuckDB binds the statement, and nothing is run. Where the types of columns hang on parameters that
have none, these are taken for texts, as PostgreSQL takes them.
"""

from __future__ import annotations

import ctypes as c
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from queryard.core.errors import QueryardError

from .arrow import read_all
from .capi import Handle, Result, library, take_text
from .errors import QueryFailed, failure, missing_table
from .instances.instance import Connection
from .instances.settings import Settings, apply, reset
from .instances.small_instance import SmallInstance
from .instances.views import explain_missing
from .parameters import bind
from .sealing.access import Reach
from .syntax.classify import Classified
from .syntax.remembered import MOST, Remembered
from .types import type_name

Parameters = Sequence[Any] | Mapping[str, Any]
UNKNOWN = "UNKNOWN"
# What these give are counts and marks of DuckDB's own, unless they return rows.
_ROWS = ("SELECT", "EXPLAIN", "CALL", "EXECUTE", "PRAGMA", "RELATION", "LOGICAL_PLAN")
_CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE_INTO")


class Described(NamedTuple):
    """Names and types of the columns, in DuckDB's words, and the types of $1, $2 … in order.

    A parameter of which DuckDB does not say the type is `UNKNOWN`.
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    parameters: tuple[str, ...]


class CannotDescribe(QueryardError):
    """The columns of a statement are known only once it runs."""


class Describer:
    """Describes statements over the tables within a reach; from any thread, one at a time."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._lock = threading.Lock()
        self._closed = False
        self._place = SmallInstance(reach.catalog, reach.seal)
        self._known: Remembered[tuple[str, Settings], tuple[int, Described]] = Remembered(
            longest=MOST
        )

    def describe(
        self, statement: Classified, parameters: Parameters | None, settings: Settings
    ) -> Described:
        """What it gives and takes, for a client with these settings."""
        key, shape = (statement.sql, settings), self._reach.catalog.shape
        with self._lock:
            known = self._known_by(key, shape) if parameters is None else None
            if known is not None:
                return known
            try:
                found = self._describe(statement, parameters, settings)
            finally:
                self._place.let_go()
                if self._closed:  # meanwhile
                    self._place.close()
            if parameters is None:
                characters = sum(map(len, (statement.sql, *found.names, *found.types)))
                self._known.put(key, characters, (shape, found))
            return found

    def known(self, statement: Classified, settings: Settings) -> Described | None:
        """What was found of the same statement, if no table may have other columns by now."""
        with self._lock:
            return self._known_by((statement.sql, settings), self._reach.catalog.shape)

    def _known_by(self, key: tuple[str, Settings], shape: int) -> Described | None:
        known = self._known.get(key)
        return known[1] if known is not None and known[0] == shape else None

    def _describe(
        self, statement: Classified, parameters: Parameters | None, settings: Settings
    ) -> Described:
        # A database that is searched by USE must be there, whether a statement names it or not.
        names = statement.names.union(*(each.names for each in settings if each.is_late))
        errors: dict[str, Exception] = {}
        tried: set[str] = set()
        while True:
            connection, more = self._place.prepared(names, attaches=True)
            errors |= more
            try:
                with self._with(settings, connection) as own:
                    return describe_on(own, statement, parameters)
            except QueryFailed as error:
                # A view may name a table that the statement does not.
                missing = (missing_table(str(error)) or "").lower()
                if not missing or missing in tried:
                    raise explain_missing(error, errors, list(self._reach.catalog.tables)) from None
                tried.add(missing)
                names = names | {missing}

    @contextmanager
    def _with(self, settings: Settings, connection: Connection) -> Iterator[Connection]:
        """A connection on which settings hold."""
        if not settings:
            yield connection
            return
        own = self._place.further()
        try:
            apply(own, settings)
            yield own
        finally:
            own.close()
            reset(connection, settings)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._place.close()


def describe_on(
    connection: Connection, statement: Classified, parameters: Parameters | None
) -> Described:
    """What a statement gives and takes on a connection that has all it names."""
    with _prepared(connection, statement.sql) as prepared:
        duck = library()
        places = range(1, int(duck.nparams(prepared)) + 1)
        given = tuple(_type(duck.param_logical_type(prepared, place)) for place in places)
        columns = [
            (
                take_text(duck.prepared_statement_column_name(prepared, place)),
                _type(duck.prepared_statement_column_logical_type(prepared, place)),
            )
            for place in range(int(duck.prepared_statement_column_count(prepared)))
        ]
    if not gives_rows(statement):
        return Described((), (), given)
    if UNKNOWN in [name for _, name in columns]:
        columns = _resolved(connection, statement, given, parameters)
    return Described(tuple(n for n, _ in columns), tuple(t for _, t in columns), given)


def gives_rows(statement: Classified) -> bool:
    """Whether a statement gives rows of its own; others give a count, or a mark."""
    if statement.kind in _CHANGES:
        return "returning" in statement.words
    if statement.kind == "MULTI":
        raise CannotDescribe(
            f"{statement.words[0].upper()}: its columns are known only once it runs"
        )
    return statement.kind in _ROWS


def _resolved(
    connection: Connection,
    statement: Classified,
    given: tuple[str, ...],
    parameters: Parameters | None,
) -> list[tuple[str, str]]:
    """The columns, with values for the parameters."""
    tries: list[Parameters] = (
        [[""] * len(given), [None] * len(given)] if parameters is None else [parameters]
    )
    error: QueryardError | None = None
    for values in tries:
        try:
            rows = bound_rows(connection, f"DESCRIBE {statement.sql}", values)
        except QueryardError as found:
            error = error or found
        else:
            return [(row["column_name"], row["column_type"]) for row in rows]
    assert error is not None
    raise CannotDescribe(f"its columns hang on the types of its parameters: {error}")


def bound_rows(connection: Connection, sql: str, parameters: Parameters) -> list[dict[str, Any]]:
    """The rows of something short with parameters, run on the calling thread."""
    duck = library()
    pending, result = Handle(), Result()
    with _prepared(connection, sql) as prepared:
        try:
            bind(prepared, parameters)
            if duck.pending_prepared_streaming(prepared, c.byref(pending)):
                raise failure(_text(duck.pending_error(pending)))
            if duck.execute_pending(pending, c.byref(result)):
                raise failure(_text(duck.result_error(c.byref(result))))
            rows: list[dict[str, Any]] = read_all(result)[0].to_pylist()
            return rows
        finally:
            duck.destroy_result(c.byref(result))
            if pending.value is not None:
                duck.destroy_pending(c.byref(pending))


@contextmanager
def _prepared(connection: Connection, sql: str) -> Iterator[Handle]:
    duck = library()
    prepared = Handle()
    try:
        if duck.prepare(connection.handle, sql.encode(), c.byref(prepared)):
            raise failure(_text(duck.prepare_error(prepared)))
        yield prepared
    finally:
        if prepared.value is not None:
            duck.destroy_prepare(c.byref(prepared))


def _type(handle: Any) -> str:
    """The name of a logical type, which is freed; UNKNOWN where there is none."""
    name = type_name(handle) if handle else UNKNOWN
    return UNKNOWN if name == "TYPE 0" else name


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode("utf-8", "replace")
