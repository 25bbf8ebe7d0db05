"""All connections of clients, by ids that cannot be guessed, and the end of those that are left.

A client says nothing when it is killed, and this version of the protocol has no sign of life. So a
connection ends by itself: when its client drops a request, when it is idle for too long, sooner
with an open transaction, and when its token wants another connection and has no more.
"""

from __future__ import annotations

import secrets
import threading
import time

from queryard.core.errors import QueryardError

from ..endings import Endings
from ..principal import Principal
from ..yard import Yard
from .errors import QuackError
from .session import Session
from .versions import Codec

# A connection that was idle for so long makes way for another one of its token.
MAKES_WAY_S = 60.0


class Sessions:
    """Connections of all tokens; calls come from any thread."""

    def __init__(self, yard: Yard) -> None:
        self._yard = yard
        self._lock = threading.Lock()
        self._by_id: dict[str, Session] = {}
        self._endings = Endings()
        yard.every_second(self.expire)

    def __len__(self) -> int:
        return len(self._by_id)

    def open(self, principal: Principal, codec: Codec) -> str:
        """A connection for a client that has shown its token; its id."""
        client = self._yard.open(principal, protocol="quack")
        name = secrets.token_hex(16).upper()
        with self._lock:
            self._by_id[name] = Session(name, client, codec)
        return name

    def open_instead(self, principal: Principal, codec: Codec) -> str:
        """The same for a token that has all its connections: an idle one makes way. It blocks."""
        self._make_way(principal)
        return self.open(principal, codec)

    def find(self, name: str) -> Session:
        found = self._by_id.get(name)
        if found is None or found.client.closed:
            why = self._endings.why(name) if found is None else found.client.why_closed
            why = why or "the connection was closed or idle for too long"
            raise QuackError(f"Invalid connection id: {why}; connect again (DETACH and ATTACH)")
        return found

    def leave(self, session: Session, reason: str) -> None:
        """A client is done, or has vanished; it waits for what runs there."""
        self._forget(session, reason)
        session.close(reason)

    def _forget(self, session: Session, reason: str) -> None:
        with self._lock:
            known = self._by_id.pop(session.name, None)
        if known is not None:
            self._endings.note(session.name, reason)

    def _make_way(self, principal: Principal) -> None:
        """Close the connection of a token that was idle for longest, if it was for long."""
        with self._lock:
            idle = [
                session
                for session in self._by_id.values()
                if session.client.principal == principal
                and not (session.busy or session.in_transaction)
                and time.monotonic() - session.used_s > MAKES_WAY_S
            ]
        if idle:
            self.leave(min(idle, key=lambda session: session.used_s), "another one was opened")

    def expire(self) -> None:
        """Close what was left alone."""
        limits, now_s = self._yard.config.limits, time.monotonic()
        with self._lock:
            sessions = list(self._by_id.values())
        for session in sessions:
            if session.client.closed:
                self._forget(session, session.client.why_closed)
                session.drop_rows()
                continue
            if session.busy:
                continue
            idle_s = now_s - session.used_s
            is_open = session.in_transaction
            most_s = min(limits.idle_s, limits.transaction_s) if is_open else limits.idle_s
            if idle_s > most_s:
                what = "its transaction" if is_open else "it"
                self.leave(session, f"{what} was idle for {most_s:g} s")
            elif session.has_rows and idle_s > limits.result_ttl_s:
                session.drop_rows()

    def close(self) -> None:
        with self._lock:
            sessions = list(self._by_id.values())
            self._by_id.clear()
        for session in sessions:
            try:
                session.close("the server is closed")
            except QueryardError:
                continue
