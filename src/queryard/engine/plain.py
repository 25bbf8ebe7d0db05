"""Plain DuckDB, as one would use it without Queryard: what everything is compared with.

One instance with threads of its own and one memory limit; every query has a cursor and runs on the
caller's thread. DuckDB itself divides its threads between the queries.
"""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from typing import Any

import duckdb

from queryard.core.errors import QueryardError
from queryard.sql.catalog import Catalog, CatalogError, Table
from queryard.sql.catalog.database import DatabaseTable
from queryard.sql.catalog.open_files import Claims
from queryard.sql.catalog.quoting import identifier, literal

from .errors import failure


class PlainDuckDB:
    """The tables of a catalog in an ordinary DuckDB instance; close it, or use it with `with`."""

    def __init__(self, catalog: Catalog, threads: int, memory_bytes: int) -> None:
        warnings.filterwarnings("ignore", "Arrow output on a DB-API result")
        self._temp = tempfile.TemporaryDirectory(prefix="queryard-plain-")
        config: dict[str, Any] = {
            "threads": threads,
            "memory_limit": f"{memory_bytes} bytes",
            "temp_directory": self._temp.name,
        }
        self._claims = Claims()
        self._connection = duckdb.connect(config=config)
        try:
            self._attach(catalog)
        except (duckdb.Error, CatalogError) as error:
            self.close()
            raise failure(str(error)) from None
        for table in catalog.tables.values():
            # A broken table must fail only the queries that name it.
            with contextlib.suppress(duckdb.Error, CatalogError):
                self._make_view(table)

    def _attach(self, catalog: Catalog) -> None:
        self._connection.execute("SET enable_progress_bar = true")
        self._connection.execute("SET enable_progress_bar_print = false")
        for database in catalog.databases:
            alias = identifier(database.alias)
            self._claims.claim(database.path, writes=False)
            self._connection.execute(f"ATTACH {literal(database.path)} AS {alias} (READ_ONLY)")

    def _make_view(self, table: Table) -> None:
        if isinstance(table, DatabaseTable) and table.schema:
            return  # it is called so already
        schema = identifier(table.schema or "main")
        self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS memory.{schema}")
        place = f"memory.{schema}.{identifier(table.name)}"
        self._connection.execute(f"CREATE VIEW {place} AS SELECT * FROM {table.relation}")

    def cursor(self) -> PlainCursor:
        """For one query; from any thread."""
        return PlainCursor(self._connection.cursor())

    def close(self) -> None:
        self._connection.close()
        self._claims.release()
        self._temp.cleanup()

    def __enter__(self) -> PlainDuckDB:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class PlainCursor:
    """One query at a time."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor

    def arrow(self, sql: str) -> Any:
        """Run a statement on this thread; all its rows as a pyarrow.Table."""
        try:
            # `sql` would plan the statement twice, once of it holding the interpreter's lock.
            done = self._cursor.execute(sql)
        except duckdb.Error as error:
            raise failure(str(error)) from None
        except RuntimeError as error:
            # DuckDB reports Ctrl-C this way.
            if "interrupt" in str(error).lower():
                raise KeyboardInterrupt from None
            raise
        if done is None:
            raise QueryardError("there is no statement in it")
        try:
            return done.to_arrow_table()
        except duckdb.Error as error:
            raise failure(str(error)) from None

    def progress(self) -> float:
        """Share done (0 to 1), as DuckDB sees it; 0 once it is closed."""
        try:
            return min(1.0, max(0.0, self._cursor.query_progress() / 100.0))
        except duckdb.Error:
            return 0.0

    def interrupt(self) -> None:
        """Stop what runs, from another thread; nothing happens once it is closed."""
        with contextlib.suppress(duckdb.Error):
            self._cursor.interrupt()

    def close(self) -> None:
        self._cursor.close()
