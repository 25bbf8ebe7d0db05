"""A session and its transactions: what a connection and its cursors share."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from queryard.engine.syntax.classify import Classified
from queryard.live import Session

from .errors import InterfaceError, translating

if TYPE_CHECKING:
    from queryard.remote.session import RemoteSession

    AnySession = Session | RemoteSession

# What an open transaction holds back until `commit`.
_CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE_INTO")


class Transactions:
    """Begins a transaction where a statement needs one, and ends it when asked to."""

    def __init__(self, session: AnySession, autocommit: bool = False) -> None:
        self._session: AnySession | None = session
        self._lock = threading.RLock()
        self._in_transaction = False
        self.autocommit = autocommit

    @property
    def session(self) -> AnySession:
        """The session below, for all that PEP 249 does not know."""
        if self._session is None:
            raise InterfaceError("the connection is closed; open another with connect")
        with translating():
            self._session.check_owner()
        return self._session

    @property
    def in_transaction(self) -> bool:
        return self._in_transaction

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
        self.session  # noqa: B018  # complains in a forked process, where the lock may be held
        with self._lock:
            if statement.kind in _CHANGES and not (self.autocommit or self._in_transaction):
                self._run("BEGIN TRANSACTION")
                self._in_transaction = True

    def after(self, statement: Classified) -> None:
        """For cursors: a statement may have been BEGIN or COMMIT itself."""
        if statement.kind == "TRANSACTION":
            self._in_transaction = statement.words[0] in ("begin", "start")

    def _end(self, how: str) -> None:
        self.session  # noqa: B018  # complains if it is closed, or another process's
        with self._lock:
            if self._in_transaction:
                self._in_transaction = False
                self._run(how)

    def _run(self, sql: str) -> None:
        with translating():
            self.session.sql(sql).close()
