"""One DuckDB connection that looks at files and never runs a user's query.

DuckDB's own errors become CatalogErrors that name the file. The connection is made when the first
table is opened and shared by all tables of a catalog, one at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

import duckdb

from .advice import way_out, without_fixes
from .locations import filesystem, scheme_of
from .model import CatalogError, Column
from .quoting import path_literal


class MetadataReader:
    """Asks DuckDB what is in files."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._schemes: set[str] = set()

    def rows(self, sql: str, uris: Iterable[str], subject: str) -> list[tuple[Any, ...]]:
        """Rows of a statement about the files `uris`; errors are about `subject`."""
        with self._lock:
            try:
                return self._ready_for(uris).execute(sql).fetchall()
            except CatalogError:
                raise
            except Exception as error:  # file systems of other packages raise what they like
                raise CatalogError(f"{subject}: {first_lines(error)}") from error

    def columns(self, relation: str, uris: Iterable[str], subject: str) -> tuple[Column, ...]:
        """The columns of a relation."""
        described = self.rows(f"DESCRIBE SELECT * FROM {relation}", uris, subject)
        return tuple(Column(row[0], row[1]) for row in described)

    def frame_columns(self, empty_frame: Any, subject: str) -> tuple[Column, ...]:
        """The columns DuckDB sees in an Arrow table."""
        with self._lock:
            connection = self._ready_for(())
            try:
                connection.register("frame", empty_frame)
                described = connection.execute("DESCRIBE frame").fetchall()
                connection.unregister("frame")
            except duckdb.Error as error:
                raise CatalogError(f"{subject}: {first_lines(error)}") from error
        return tuple(Column(row[0], row[1]) for row in described)

    def alone(self) -> threading.RLock:
        """A context in which no other thread uses the connection."""
        return self._lock

    def culprit(self, statement: str, uris: Sequence[str], whole: CatalogError) -> CatalogError:
        """The error of the first file that fails alone, or that of all of them together.

        `statement` has {} where a file goes. DuckDB does not always say which file it was.
        """
        for uri in uris:
            try:
                self.rows(statement.replace("{}", path_literal(uri)), [uri], uri)
            except CatalogError as error:
                return error
        return whole

    def _ready_for(self, uris: Iterable[str]) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            # One thread: metadata is small, and the cores belong to queries.
            self._connection = duckdb.connect(":memory:", config={"threads": 1})
        for scheme in {scheme_of(uri) for uri in uris} - {""} - self._schemes:
            self._connection.register_filesystem(filesystem(scheme))
            self._schemes.add(scheme)
        return self._connection


def first_lines(error: Exception) -> str:
    """What DuckDB says, without the picture of the statement (it is ours, not the user's)."""
    text = str(error).split("\n\nLINE ")[0].strip()
    if text.startswith("Traceback (most recent call last)"):
        # A Python function that DuckDB called has failed, as that of a file system: its last words.
        text = text.splitlines()[-1].strip()
    _, found, rest = text.partition(" Error: ")
    said = rest if found else text
    advice = way_out(text)
    told = " ".join((without_fixes(said) if advice else said.split("\n\n")[0]).split())
    return f"{told.rstrip('.')}. {advice}" if advice else told
