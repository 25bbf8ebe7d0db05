"""What an admin changes while a server runs: policy, tenants, pause, draining, models.

Every change is made on the live session, recorded with its time and the name of the token
(`steering`), and can be undone unless its effect cannot be taken back (`undoing`).
"""

from __future__ import annotations

import getpass
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from queryard.core.errors import unknown_name
from queryard.core.tenants import SHARES
from queryard.live.admission.limits import read_limits
from queryard.live.admission.tenants import read_tenants
from queryard.live.session import Session
from queryard.results.errors import QueryCancelled

from ..problems import Conflict, InvalidRequest, UnknownName
from ..tokens import TokenStore
from .control_request import ControlRequest, read_control
from .record import CANCEL, RESET, UNDO, Change
from .showing import shown_changes, shown_policy, tenants_named, told
from .steered import DRAINING, PAUSED, PROFILE, FromFile, Key
from .steering import Steering
from .texts import cancelled_text, word_of
from .undoing import undoable

State = Literal["open", "paused", "draining"]


class Controls:
    """The controls of one server; calls come from any thread, and may take a moment."""

    def __init__(self, session: Session, file: Path | None, tokens: TokenStore) -> None:
        """`file` is the record of changes; None keeps none. Changes of the past are made again."""
        self._session = session
        self._tokens = tokens
        self._lock = threading.RLock()
        self._steering = Steering(session, file)
        session.steering = self.answer

    # --- what is ---------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """Whether queries are taken and start."""
        if self._steering.overlay.get(DRAINING) is not None:
            return "draining"
        return "paused" if self.paused else "open"

    @property
    def paused(self) -> bool:
        """Whether no waiting query starts."""
        return self._steering.overlay.get(PAUSED) is not None

    @property
    def closed(self) -> str:
        """Why no further queries are taken; empty while they are."""
        drained = self._steering.overlay.get(DRAINING)
        return "" if drained is None else f"the server was set to drain by {word_of(drained)}"

    def show(self, limit: int = 100) -> dict[str, Any]:
        """All that can be changed, as it is, and the last changes, the latest first."""
        with self._lock:
            overlay = self._steering.overlay
            values = overlay.values()
            changes = shown_changes(
                self._steering.record, overlay, limit, self._steering.resets.last
            )
        return {
            **shown_policy(self._session, self._names()),
            "state": self.state,
            "paused": values.get(PAUSED),
            "draining": values.get(DRAINING),
            **changes,
        }

    def _names(self) -> set[str]:
        return tenants_named(self._session, self._tokens)

    # --- changes ---------------------------------------------------------------------------------

    def change(self, by: str, given: object) -> dict[str, Any]:
        """Make a change that a token asks for, as `{"change": "pause"}`; the record of it."""
        request = read_control(given)
        with self._lock:
            self._check_seen(request.seen)
            match request.what:
                case "cancel-tenant":
                    change = self._cancel(by, request)
                case "reset-models":
                    change = self._reset(by, request)
                case _:
                    values = self._wanted(by, request)
                    change = self._steering.set(by, request.what, values, request.reason)
            return self._told(change)

    def undo(self, by: str, number: int, reason: str = "") -> dict[str, Any]:
        """Take a change back; it must be the last one of what it has set."""
        with self._lock:
            if number == self._steering.resets.last:
                return self._told(self._give_back(by, number, reason))
            change = undoable(number, self._steering.record, self._steering.overlay)
            return self._told(self._steering.undo(by, UNDO, change, reason))

    def _told(self, change: Change) -> dict[str, Any]:
        return told(change, self._steering.overlay, self._steering.resets.last)

    def _check_seen(self, seen: int | None) -> None:
        record = self._steering.record
        if seen is not None and seen != record.last:
            found = record.changes[-1] if record.changes else None
            latest = "there is none" if found is None else f"{found.id} by {found.by}: {found.text}"
            raise Conflict(f"seen: {seen} is not the last change; the last one is {latest}")

    def _wanted(self, by: str, request: ControlRequest) -> Sequence[tuple[Key, Any]]:
        """The settings that a change sets."""
        word = {"by": by, "at": time.time(), "reason": request.reason}
        paused, drained = self._steering.overlay.get(PAUSED), self._steering.overlay.get(DRAINING)
        match request.what:
            case "profile":
                return [(PROFILE, request.profile)]
            case "tenant":
                return [(key, self._given(key, value)) for key, value in request.values]
            case "pause":
                _refuse_twice(paused, "it is paused already")
                return [(PAUSED, word)]
            case "drain":
                _refuse_twice(drained, "it is draining already")
                return [(DRAINING, word)]
            case "resume" if paused is None:
                raise Conflict("resume: it is not paused")
            case "resume":
                return [(PAUSED, None)]
            case "open" if drained is None:
                raise Conflict("open: it is not draining")
        return [(DRAINING, None)]

    def _given(self, key: Key, value: Any) -> Any:
        """A value that is asked for; a share that is taken away is the file's, or the usual one."""
        is_cleared = value is None and key[-1] in SHARES
        return self._steering.file.value(key) if is_cleared else value

    def _cancel(self, by: str, request: ControlRequest) -> Change:
        """Cancel all queries of a tenant and those below it."""
        tenant = request.tenant
        if tenant not in self._names():
            known = ", ".join(sorted(self._names())) or "none"
            raise UnknownName(f"unknown tenant {tenant!r}; there are {known}")
        error = QueryCancelled(f"all queries of tenant {tenant!r} were cancelled by {by}")
        found = [
            view.id
            for view in self._session.queries()
            if view.tenant == tenant or view.tenant.startswith(f"{tenant}/")
        ]
        for query in found:
            self._session.host.cancel(query, error)
        text = cancelled_text(tenant, len(found))
        return self._steering.note(
            by, CANCEL, text, None, {"cancelled": len(found)}, request.reason
        )

    def _reset(self, by: str, request: ControlRequest) -> Change:
        """Forget what was learnt; it is kept, to be given back, until the next reset."""
        text = f"reset what was learnt: {', '.join(request.models)}"
        change = self._steering.note(
            by, RESET, text, None, {"models": list(request.models)}, request.reason
        )
        self._steering.resets.make(change)
        return change

    def _give_back(self, by: str, reset: int, reason: str) -> Change:
        """Undo the last reset."""
        text = f"undid change {reset}: what was learnt before it is back"
        change = self._steering.note(by, UNDO, text, reason=reason, undoes=reset)
        self._steering.resets.give_back()
        return change

    def answer(self, request: Mapping[str, Any]) -> Any:
        """What another process of the server's own user asks on this machine."""
        by = f"{getpass.getuser()} (on this machine)"
        match request.get("do", "show"):
            case "show":
                return self.show(int(request.get("limit", 100)))
            case "change":
                return self.change(by, request.get("body"))
            case "undo":
                return self.undo(by, int(request["id"]), str(request.get("reason") or ""))
        raise InvalidRequest(unknown_name("request", str(request["do"]), ("change", "undo")))

    # --- the file of settings --------------------------------------------------------------------

    def use_tenants(
        self,
        tenants: Mapping[str, Any] | None,
        limits: Mapping[str, Any] | None = None,
        profile: str | Mapping[str, Any] | None = None,
    ) -> None:
        """Follow what the file of settings says now, and changes where it says nothing new."""
        with self._lock:
            given = self._steering.file.profile if profile is None else profile
            self._steering.use_file(
                FromFile(given, read_tenants(tenants), read_limits(limits or {}, "limits"))
            )

    def close(self) -> None:
        """Let another server on the same data keep its changes."""
        self._steering.record.close()


def _refuse_twice(word: Mapping[str, Any] | None, problem: str) -> None:
    if word is not None:
        raise Conflict(f"{problem}, by {word_of(word)}")
