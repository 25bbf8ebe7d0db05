"""A connection of PEP 249: a session of its own, and its transactions."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Unpack

from queryard import live
from queryard.engine.classify import Classified
from queryard.engine.native import Parameters
from queryard.live.options import SessionOptions, check_options

from . import errors
from .cursor import Cursor
from .errors import InterfaceError, translating

# What an open transaction holds back until `commit`.
_CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE_INTO")


def connect(
    where: str | Path | None = None, *, autocommit: bool = False, **options: Unpack[SessionOptions]
) -> Connection:
    """Connect to data; the options are those of `queryard.connect`.

    Without `autocommit`, the first INSERT, UPDATE or DELETE begins a transaction, which `commit`
    or `rollback` ends.
    """
    check_options(options, SessionOptions.__annotations__)
    with translating():
        session = live.connect(where, **options)
    return Connection(session, autocommit)


class Connection:
    """Cursors of one session; close it, or use it with `with`, which commits and closes."""

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, session: live.Session, autocommit: bool = False) -> None:
        self._session: live.Session | None = session
        self._lock = threading.RLock()
        self._in_transaction = False
        self.autocommit = autocommit

    @property
    def session(self) -> live.Session:
        """The session below, for all that PEP 249 does not know."""
        if self._session is None:
            raise InterfaceError("the connection is closed; open another with connect")
        return self._session

    @property
    def in_transaction(self) -> bool:
        return self._in_transaction

    def cursor(self) -> Cursor:
        self.session  # noqa: B018  # complains if it is closed
        return Cursor(self)

    def execute(self, sql: str, parameters: Parameters | None = None) -> Cursor:
        """A cursor that has executed a statement."""
        return self.cursor().execute(sql, parameters)

    def commit(self) -> None:
        """Keep what was changed since the last time; nothing to do if nothing was."""
        self._end("COMMIT")

    def rollback(self) -> None:
        """Undo what was changed since the last commit."""
        self._end("ROLLBACK")

    def close(self) -> None:
        """Undo what was not committed, and free everything; it may be called again."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def before(self, statement: Classified) -> None:
        """For cursors: begin a transaction where the statement needs one."""
        with self._lock:
            if statement.kind in _CHANGES and not (self.autocommit or self._in_transaction):
                self._run("BEGIN TRANSACTION")
                self._in_transaction = True

    def after(self, statement: Classified) -> None:
        """For cursors: a statement may have been BEGIN or COMMIT itself."""
        if statement.kind == "TRANSACTION":
            self._in_transaction = statement.words[0] in ("begin", "start")

    def _end(self, how: str) -> None:
        with self._lock:
            self.session  # noqa: B018  # complains if it is closed
            if self._in_transaction:
                self._in_transaction = False
                self._run(how)

    def _run(self, sql: str) -> None:
        with translating():
            self.session.sql(sql).close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: object, *exception: object) -> None:
        try:
            if self._session is not None:
                if kind is None:
                    self.commit()
                else:
                    self.rollback()
        finally:
            self.close()
