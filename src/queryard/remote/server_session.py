"""One session at a server: it is opened when there is something to keep, opened again, and closed.

A client that only reads has none. A session counts as a connection and lasts until it was idle for
long, so that those of clients that were killed would be in the way of others.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TypeVar

from queryard.core.errors import QueryardError
from queryard.engine.syntax.classify import Classified
from queryard.engine.syntax.side_effects import state_left
from queryard.results.ownership import Owner

from .errors import NotKnown, ServerError
from .transport import Transport

T = TypeVar("T")


class _Held:
    """What the server holds for a client: a session by its id, and queries outside of it."""

    def __init__(self) -> None:
        self.session: str | None = None
        self.queries: dict[str, None] = {}


class ServerSession:
    """What is there is closed with the last reference to this; from any thread."""

    def __init__(
        self, transport: Transport, owner: Owner, *, tenant: str | None, label: str
    ) -> None:
        self._transport = transport
        self._tenant = tenant
        self._label = label
        self._lock = threading.Lock()
        # Whether later statements may rely on earlier ones, so that the session must stay.
        self._has_state = False
        self._in_transaction = False
        self._held = held = _Held()
        self._finalizer = weakref.finalize(self, _close, transport, owner, held)
        # A wrong address, token or tenant is told at once.
        if tenant is None:
            transport.json("GET", "/v1/whoami")
        else:
            self._opened()

    @property
    def id(self) -> str | None:
        """The id of the session; None while there is none."""
        return self._held.session

    def run(self, send: Callable[[str | None], T], statements: Sequence[Classified] = ()) -> T:
        """Send something about statements, to the session if there is one or they need one.

        Where the server has closed an idle session, it is sent once more without that, or to
        another.
        """
        session = self._session_for(statements)
        try:
            return self._noted(send, session, statements)
        except NotKnown as error:
            if session is None:
                raise
            self._forget(session, error)
        return self._noted(send, self._session_for(statements), statements)

    def _session_for(self, statements: Sequence[Classified]) -> str | None:
        if self._tenant is None and all(statement.reads for statement in statements):
            return self._held.session
        return self._opened()

    def _opened(self) -> str:
        with self._lock:
            if self._held.session is None:
                body = {"label": self._label, "tenant": self._tenant}
                told = self._transport.json("POST", "/v1/sessions", body=body, again=True)
                self._held.session = str(told["id"])
            return self._held.session

    def _noted(
        self, send: Callable[[str | None], T], session: str | None, statements: Sequence[Classified]
    ) -> T:
        """Send something, and note what the statements leave in the session."""
        try:
            answer = send(session)
        except ServerError:  # they may have run
            self._note(statements)
            raise
        self._note(statements)
        return answer

    def _note(self, statements: Sequence[Classified]) -> None:
        for statement in statements:
            if statement.reads:
                continue
            if statement.kind == "TRANSACTION":
                self._in_transaction = statement.words[0] in ("begin", "start")
            elif state_left(statement):
                self._has_state = True

    def _forget(self, session: str, error: NotKnown) -> None:
        with self._lock:
            if self._held.session != session:
                return  # another thread has
            if self._has_state or self._in_transaction:
                raise QueryardError(
                    f"{self._transport.url}: the session has ended on the server, as it was idle "
                    "for long or the server has restarted. Its settings, temporary tables and "
                    "transactions are gone; open another with queryard.connect"
                ) from error
            self._held.session = None

    def began(self, query: str) -> None:
        """A query was entered outside of a session: it ends with this, unless it has before."""
        self._held.queries[query] = None

    def over(self, query: str) -> None:
        """A query has ended, or was cancelled; a finalizer may call this."""
        self._held.queries.pop(query, None)

    def close(self) -> None:
        """Cancel what runs for it, and close the transport."""
        self._finalizer()

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive


def _close(transport: Transport, owner: Owner, held: _Held) -> None:
    """A finalizer: it must not keep a reference to the session."""
    if owner.is_here:
        for query in list(held.queries):
            transport.later("DELETE", f"/v1/queries/{query}")
        if held.session is not None:
            transport.later("DELETE", f"/v1/sessions/{held.session}")
        transport.close()
