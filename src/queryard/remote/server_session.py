"""One session at a server: it is opened, sent queries, opened again, and closed."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from typing import Any

import httpx

from queryard.core.errors import QueryardError
from queryard.results.ownership import Owner

from .errors import NotKnown
from .transport import ARROW, Transport


class ServerSession:
    """A session by the id that the server gave it; it is closed with the last reference to this."""

    def __init__(
        self, transport: Transport, owner: Owner, *, tenant: str | None, label: str
    ) -> None:
        self._transport = transport
        self._owner = owner
        self._tenant = tenant
        self._label = label
        self._lock = threading.Lock()
        self.has_state = False
        """Whether later statements may rely on earlier ones, so that the session must stay."""
        self._id = self._opened()
        self._finalizer = self._closing()

    @property
    def id(self) -> str:
        with self._lock:
            return self._id

    def _opened(self) -> str:
        body = {"label": self._label, "tenant": self._tenant}
        told = self._transport.json("POST", "/v1/sessions", body=body, again=True)
        return str(told["id"])

    def _closing(self) -> weakref.finalize[..., ServerSession]:
        return weakref.finalize(self, _close, self._transport, self._owner, self._id)

    def post(self, body: Mapping[str, Any], wait_s: float, again: bool) -> httpx.Response:
        """Send a query; the session is opened again where the server has closed an idle one."""
        session = self.id
        try:
            return self._send(body, session, wait_s, again)
        except NotKnown as error:
            self._renew(session, error)
        return self._send(body, self._id, wait_s, again)

    def _send(
        self, body: Mapping[str, Any], session: str, wait_s: float, again: bool
    ) -> httpx.Response:
        return self._transport.begin(
            "POST",
            "/v1/queries",
            body={**body, "session": session},
            params={"wait": wait_s} if wait_s else None,
            accept=ARROW if wait_s else "application/json",
            again=again,
            wait_s=wait_s,
        )

    def _renew(self, session: str, error: NotKnown) -> None:
        with self._lock:
            if self._id != session:
                return  # another thread has
            if self.has_state:
                raise QueryardError(
                    f"{self._transport.url}: the session has ended on the server, as it was idle "
                    "for long or the server has restarted. Its settings, temporary tables and "
                    "transactions are gone; open another with queryard.connect"
                ) from error
            self._id = self._opened()
            self._finalizer.detach()
            self._finalizer = self._closing()

    def close(self) -> None:
        """Cancel what runs in the session, and close the transport."""
        self._finalizer()

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive


def _close(transport: Transport, owner: Owner, session: str) -> None:
    """A finalizer: it must not keep a reference to the session."""
    if owner.is_here:
        transport.later("DELETE", f"/v1/sessions/{session}")
        transport.close()
