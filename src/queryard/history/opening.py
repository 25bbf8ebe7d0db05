"""Connections to a history: one that writes, and any number that read.

SQLite's own driver is told to begin no transactions by itself: a writer takes the lock when it
begins, so that it never finds out in the middle that somebody else has it.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.pool import NullPool

from .errors import HistoryError
from .migrations import VERSION, migrate, version_of
from .places import make_private, tighten

# How long somebody else's transaction is waited for; they take milliseconds.
BUSY_S = 5.0
_BROKEN = ("not a database", "malformed", "file is encrypted")
_BUSY = ("locked", "busy")


def is_busy(error: DatabaseError | sqlite3.Error) -> bool:
    """Whether it is only somebody else's turn; settings are made past SQLAlchemy."""
    told = str(error.orig) if isinstance(error, DatabaseError) else str(error)
    late = isinstance(error, OperationalError | sqlite3.OperationalError)
    return late and any(word in told for word in _BUSY)


def reason_of(error: BaseException, file: str) -> str:
    """What went wrong, and what can be done about it."""
    if isinstance(error, HistoryError):
        return str(error)
    if isinstance(error, OSError):
        return f"{file}: {error.strerror or error}; {_REMEDY}"
    if not isinstance(error, DatabaseError):
        return f"{file}: {type(error).__name__}: {error}"
    told = str(error.orig)
    if any(word in told for word in _BROKEN):
        return f"{file}: cannot be read as a history ({told}); move it away, and a new one begins"
    return f"{file}: {told}; {_REMEDY}"


_REMEDY = "make room or give access to its folder, or name another file: connect(history=…)"


def open_for_writing(file: Path) -> Connection:
    """A connection to a history of the present version, which is made if it is not there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    make_private(file)
    until = time.monotonic() + BUSY_S
    while True:
        connection: Connection | None = None
        try:
            connection = _engine(str(file), "BEGIN IMMEDIATE").connect()
            _prepare(connection, file)
            return connection
        except (DatabaseError, sqlite3.Error) as error:
            if connection is not None:
                connection.close()
            # Two that make the file at once may get in each other's way.
            if not is_busy(error) or time.monotonic() > until:
                raise HistoryError(reason_of(error, str(file))) from error
            time.sleep(0.02)


def _prepare(connection: Connection, file: Path) -> None:
    if file.stat().st_size:
        with connection.begin():
            version_of(connection, str(file))  # before anything is done to somebody else's file
    tighten(file)
    raw = connection.connection.cursor()
    # Before the first transaction, else it has no effect: retention gives pages back.
    raw.execute("PRAGMA auto_vacuum = INCREMENTAL")
    raw.execute("PRAGMA journal_mode = WAL")
    # A commit is safe once the system has it, whatever happens to this process.
    raw.execute("PRAGMA synchronous = NORMAL")
    raw.close()
    with connection.begin():
        migrate(connection, str(file))


def open_for_reading(file: Path) -> Connection:
    """A connection that sees all that is committed, also while somebody writes."""
    if not file.is_file():
        raise HistoryError(
            f"{file}: there is no history; one begins with the first query of a session on the data"
        )
    try:
        connection = _connect_to_read(file)
        with connection.begin():
            version = version_of(connection, str(file))
        if version < VERSION:
            connection.close()
            open_for_writing(file).close()
            connection = _connect_to_read(file)
        return connection
    except DatabaseError as error:
        raise HistoryError(reason_of(error, str(file))) from error


def _connect_to_read(file: Path) -> Connection:
    where = file.absolute().as_uri()
    try:
        connection = _engine(f"{where}?mode=ro", "BEGIN").connect()
        connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one()
        connection.rollback()
        return connection
    except OperationalError:
        # On a disk that cannot be written to, nobody else can write either.
        if file.with_name(f"{file.name}-wal").exists():
            raise
        return _engine(f"{where}?immutable=1", "BEGIN").connect()


def _engine(database: str, begin: str) -> Engine:
    def connect() -> sqlite3.Connection:
        return sqlite3.connect(
            database,
            timeout=BUSY_S,
            isolation_level=None,
            check_same_thread=False,
            uri=database.startswith("file:"),
        )

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine
