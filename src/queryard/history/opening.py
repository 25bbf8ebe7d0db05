"""Connections to a history: one that writes, and any number that read.

Python's driver is told to begin no transactions by itself (`isolation_level=None`): a statement
is its own transaction unless BEGIN comes first, and `with connection` ends it. A writer begins
with BEGIN IMMEDIATE, which takes the lock, so that it never finds out in the middle that another
connection has it.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path

from .errors import HistoryError
from .migrations import VERSION, migrate, version_of
from .places import make_private, tighten

# How long the transaction of another connection is waited for; it takes milliseconds.
BUSY_S = 5.0
_REMEDY = "make room or give access to its folder, or name another file: connect(history=…)"


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection has the lock."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _code(error: sqlite3.Error) -> int:
    # Errors of the driver itself have no code; the upper bits only refine the lower eight.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def reason_of(error: BaseException, file: str) -> str:
    """What went wrong, and what can be done about it."""
    if isinstance(error, HistoryError):
        return str(error)
    if isinstance(error, OSError):
        return f"{file}: {error.strerror or error}; {_REMEDY}"
    if isinstance(error, sqlite3.Error):
        if _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            remedy = "move it away, and a new one begins"
            return f"{file}: cannot be read as a history ({error}); {remedy}"
        if isinstance(error, sqlite3.OperationalError):
            return f"{file}: {error}; {_REMEDY}"
    return f"{file}: {type(error).__name__}: {error}"


def open_for_writing(file: Path) -> sqlite3.Connection:
    """A connection to a history of the present version, which is made if it is not there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    make_private(file)
    until = time.monotonic() + BUSY_S
    while True:
        try:
            return _prepared(file)
        except sqlite3.Error as error:
            # Two sessions that make the file at once may get in each other's way.
            if not is_busy(error) or time.monotonic() > until:
                raise HistoryError(reason_of(error, str(file))) from error
            time.sleep(0.02)


def _prepared(file: Path) -> sqlite3.Connection:
    connection = _connect(str(file))
    try:
        if file.stat().st_size:
            _version(connection, file)  # before anything is done to a foreign file
        tighten(file)
        # Before the first transaction, else it has no effect: retention gives pages back.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        # A commit is safe once the system has it, whatever happens to this process.
        connection.execute("PRAGMA synchronous = NORMAL")
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            migrate(connection, str(file))
    except BaseException:
        connection.close()
        raise
    return connection


def open_for_reading(file: Path) -> sqlite3.Connection:
    """A connection that sees all that is committed, also while a session writes."""
    if not file.is_file():
        raise HistoryError(
            f"{file}: there is no history; one begins with the first query of a session on the data"
        )
    try:
        connection, version = _connect_to_read(file)
        if version == VERSION:
            return connection
        with contextlib.closing(connection):
            try:
                open_for_writing(file).close()
            except (HistoryError, OSError):  # where nothing can be written
                return _migrated_copy(connection, file)
        return _connect_to_read(file)[0]
    except sqlite3.Error as error:
        raise HistoryError(reason_of(error, str(file))) from error


def _migrated_copy(connection: sqlite3.Connection, file: Path) -> sqlite3.Connection:
    """What is in a file of an earlier version, in memory, brought up to date there."""
    copy = _connect(":memory:")
    connection.backup(copy)
    migrate(copy, str(file))
    return copy


def _connect_to_read(file: Path) -> tuple[sqlite3.Connection, int]:
    """A connection, and the version of the file."""
    where = file.absolute().as_uri()
    try:
        return _checked(f"{where}?mode=ro", file)
    except sqlite3.OperationalError:
        # On a disk that cannot be written to, no other process can write either.
        if file.with_name(f"{file.name}-wal").exists():
            raise
        return _checked(f"{where}?immutable=1", file)


def _checked(database: str, file: Path) -> tuple[sqlite3.Connection, int]:
    connection = _connect(database)
    try:
        return connection, _version(connection, file)
    except BaseException:
        connection.close()
        raise


def _version(connection: sqlite3.Connection, file: Path) -> int:
    with connection:
        connection.execute("BEGIN")
        return version_of(connection, str(file))


def _connect(database: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        database,
        timeout=BUSY_S,
        isolation_level=None,
        check_same_thread=False,
        uri=database.startswith("file:"),
    )
    connection.row_factory = sqlite3.Row
    return connection
