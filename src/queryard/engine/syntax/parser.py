"""DuckDB's parser: the statements of a text, and of what type they are."""

from __future__ import annotations

import atexit
import os
import threading

import duckdb

from ..errors import failure


class _Parser:
    """DuckDB's parser, on a connection that runs nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None

    def __call__(self, sql: str) -> list[tuple[str, str]]:
        with self._lock:
            if self._connection is None:
                self._connection = duckdb.connect(":memory:", config={"threads": 1})
                atexit.register(self._close, os.getpid())
            try:
                found = self._connection.extract_statements(sql)
            except duckdb.Error as error:
                raise failure(str(error)) from None
            return [(statement.query, _kind(statement)) for statement in found]

    def _close(self, process: int) -> None:
        if os.getpid() != process:
            return  # a fork: the connection is its parent's
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


def _kind(statement: duckdb.Statement) -> str:
    try:
        return str(statement.type.name)
    except ValueError:  # DuckDB has types that its Python client does not know
        return "OTHER"


parse = _Parser()
