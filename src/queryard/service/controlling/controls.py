"""What an admin changes while a server runs: policy, tenants, pause, draining, models.

Every change is made on the live session, recorded with its time and the name of the token, and can
be undone unless its effect cannot be taken back. Changes hold beside the file of settings, whose
later word counts (`overlay`); after a restart they are made again.
"""

from __future__ import annotations

import getpass
import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from queryard.core.errors import QueryardError, unknown_name
from queryard.core.model import Tenant
from queryard.core.tenants import SHARES
from queryard.live.admission.limits import Limits, read_limits
from queryard.live.admission.tenants import Tenants, read_tenants
from queryard.live.session import Session
from queryard.results.errors import QueryCancelled

from ..logs import log
from ..problems import Conflict, InvalidRequest, UnknownName
from ..tokens import TokenStore
from .asked import Asked, read_asked
from .overlay import Overlay, Setting
from .record import CANCEL, FILE, RESET, UNDO, Change, Record
from .steered import (
    DRAINING,
    LIMITS,
    PAUSED,
    PROFILE,
    FromFile,
    Key,
    plain,
    tenants_with,
)
from .texts import cancelled_text, settings_text, word_of

State = Literal["open", "paused", "draining"]
# What has made a change, where no token has.
BY_FILE, BY_START = "the settings", "the start"
# The settings that a session follows through its policy and limits.
_FOLLOWED = ("profile", "tenant")


class Controls:
    """The controls of one server; calls come from any thread, and may take a moment."""

    def __init__(self, session: Session, file: Path | None, tokens: TokenStore) -> None:
        """`file` is the record of changes; None keeps none. Changes of the past are made again."""
        self._session = session
        self._tokens = tokens
        self._lock = threading.RLock()
        tenants = Tenants(session.tenants, session.tenant_limits)
        self._file = FromFile(session.chosen_profile, tenants, session.limits)
        self._record = Record(file)
        self._overlay = _replayed(self._record.changes)
        if self._record.unkept:
            log("changes by controls are not kept", logging.WARNING, reason=self._record.unkept)
        self._begin()
        session.steering = self.answer

    # --- what is ---------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """Whether queries are taken and start."""
        if self._overlay.get(DRAINING) is not None:
            return "draining"
        return "paused" if self.paused else "open"

    @property
    def paused(self) -> bool:
        """Whether no waiting query starts."""
        return self._overlay.get(PAUSED) is not None

    @property
    def closed(self) -> str:
        """Why no further queries are taken; empty while they are."""
        drained = self._overlay.get(DRAINING)
        return "" if drained is None else f"the server was set to drain by {word_of(drained)}"

    def show(self, limit: int = 100) -> dict[str, Any]:
        """All that can be changed, as it is, and the last changes, the latest first."""
        with self._lock:
            values, last = self._overlay.values(), self._record.last
            changes = [self._told(change) for change in self._record.changes[-limit:][::-1]]
        return {
            "profile": plain(self._session.chosen_profile),
            "portfolio": plain(self._session.policy_state().portfolio),
            "tenants": [self._tenant(name) for name in sorted(self._names())],
            "limits": _limits(self._session.limits),
            "state": self.state,
            "paused": values.get(PAUSED),
            "draining": values.get(DRAINING),
            "models_reset_at": self._reset_at(),
            "last": last,
            "kept": not self._record.unkept,
            "changes": changes,
        }

    def _tenant(self, name: str) -> dict[str, Any]:
        usual = Tenant(name)
        found = next((each for each in self._session.tenants if each.name == name), usual)
        limits = self._session.tenant_limits.get(name, Limits())
        shares = {field: getattr(found, field) for field in SHARES}
        return {"name": name, **shares, "limits": _limits(limits)}

    def _names(self) -> set[str]:
        """Tenants that are named anywhere."""
        return {
            *(tenant.name for tenant in self._session.tenants),
            *(info.tenant for info in self._tokens.list()),
            *(view.tenant for view in self._session.queries()),
        }

    def _told(self, change: Change) -> dict[str, Any]:
        return {
            "id": change.id,
            "at": change.at,
            "by": change.by,
            "what": change.what,
            "text": change.text,
            "reason": change.reason,
            "before": change.before,
            "after": change.after,
            "undoable": self._overlay.on_top(change.id),
            "undoes": change.undoes,
            "undone_by": change.undone_by,
        }

    def _reset_at(self) -> float | None:
        times = [change.at for change in self._record.changes if change.what == RESET]
        return times[-1] if times else None

    # --- changes ---------------------------------------------------------------------------------

    def change(self, by: str, given: object) -> dict[str, Any]:
        """Make a change that a token asks for, as `{"change": "pause"}`; the record of it."""
        asked = read_asked(given)
        with self._lock:
            self._check_seen(asked.seen)
            match asked.what:
                case "cancel-tenant":
                    change = self._cancel(by, asked)
                case "reset-models":
                    change = self._reset(by, asked)
                case _:
                    change = self._set(by, asked)
            return self._told(change)

    def undo(self, by: str, number: int, reason: str = "") -> dict[str, Any]:
        """Take a change back; it must be the last one of what it has set."""
        with self._lock:
            change = self._record.find(number)
            if change is None:
                raise UnknownName(f"unknown change {number}; GET /v1/controls lists all")
            self._check_undoable(change)
            after = self._overlay.copy()
            after.undo(number)
            keys = [setting.key for setting in change.settings]
            moved = [(key, self._value(key), self._value(key, after)) for key in keys]
            text = f"undid change {number}: {settings_text(moved)}"
            return self._told(
                self._make(by, UNDO, text, moved, after, reason=reason, undoes=number)
            )

    def _check_seen(self, seen: int | None) -> None:
        if seen is not None and seen != self._record.last:
            found = self._record.changes[-1] if self._record.changes else None
            latest = "there is none" if found is None else f"{found.id} by {found.by}: {found.text}"
            raise Conflict(f"seen: {seen} is not the last change; the last one is {latest}")

    def _check_undoable(self, change: Change) -> None:
        number = change.id
        if change.undone_by is not None:
            raise Conflict(f"change {number} was undone already, by change {change.undone_by}")
        if change.undoes is not None:
            raise Conflict(
                f"change {number} undid change {change.undoes}; make that change again instead"
            )
        if not change.settings or change.what == FILE:
            raise Conflict(f"change {number} cannot be undone: {change.text}")
        above = self._overlay.above(number)
        if above is not None:
            found = self._record.find(above)
            by = "" if found is None else f" (by {found.by}: {found.text})"
            raise Conflict(
                f"change {number} cannot be undone: change {above}{by} came later; undo that first"
            )
        if not self._overlay.on_top(number):
            raise Conflict(f"change {number} holds no more: the settings have changed since")

    def _set(self, by: str, asked: Asked) -> Change:
        """Set settings to other values."""
        values = self._wanted(by, asked)
        number = self._record.last + 1
        after = self._overlay.copy()
        settings = [Setting(key, plain(value), self._file.value(key)) for key, value in values]
        after.change(number, settings)
        moved = [(key, self._value(key), self._value(key, after)) for key, _ in values]
        text = settings_text(moved)
        return self._make(by, asked.what, text, moved, after, settings, asked.reason)

    def _wanted(self, by: str, asked: Asked) -> Sequence[tuple[Key, Any]]:
        """The settings that a change sets."""
        word = {"by": by, "at": time.time(), "reason": asked.reason}
        paused, drained = self._overlay.get(PAUSED), self._overlay.get(DRAINING)
        match asked.what:
            case "profile":
                return [(PROFILE, asked.profile)]
            case "tenant":
                return asked.values
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

    def _make(
        self,
        by: str,
        what: str,
        text: str,
        moved: Sequence[tuple[Key, Any, Any]],
        after: Overlay,
        settings: Sequence[Setting] = (),
        reason: str = "",
        undoes: int | None = None,
    ) -> Change:
        """Let the session follow an overlay, and record the change that led to it."""
        before, self._overlay = self._overlay, after
        keys = [key for key, _, _ in moved]
        try:
            self._follow(keys, by, text)
        except BaseException:
            self._overlay = before
            raise
        try:
            return self._note(
                by,
                what,
                text,
                _document((key, value) for key, value, _ in moved),
                _document((key, value) for key, _, value in moved),
                reason,
                tuple(settings),
                undoes,
            )
        except BaseException:
            self._overlay = before
            self._follow(keys, by, f"not made: {text}")
            raise

    def _follow(self, keys: Sequence[Key], by: str, reason: str) -> None:
        """Let the session follow the overlay in some settings; if that fails, nothing changes."""
        if any(key[0] in _FOLLOWED for key in keys):
            values = self._overlay.values()
            self._session.use_tenants(
                tenants_with(self._file, values),
                self._file.limits,
                values.get(PROFILE, self._file.profile),
                by=by,
                reason=reason,
            )
        if PAUSED in keys:
            paused = self._overlay.get(PAUSED)
            if paused is None:
                self._session.resume()
            else:
                self._session.pause(word_of(paused))

    def _value(self, key: Key, overlay: Overlay | None = None) -> Any:
        """What a setting is: as a change has set it, else as the file has it."""
        values = (overlay or self._overlay).values()
        return values[key] if key in values else self._file.value(key)

    def _cancel(self, by: str, asked: Asked) -> Change:
        """Cancel all queries of a tenant and those below it."""
        tenant = asked.tenant
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
        return self._note(by, CANCEL, text, None, {"cancelled": len(found)}, asked.reason)

    def _reset(self, by: str, asked: Asked) -> Change:
        """Forget what was learnt; that cannot be taken back, since it is learnt anew at once."""
        text = f"reset what was learnt: {' and '.join(asked.models)}"
        change = self._note(by, RESET, text, None, {"models": list(asked.models)}, asked.reason)
        self._session.reset_models(asked.models, before=change.at)
        return change

    def _note(
        self,
        by: str,
        what: str,
        text: str,
        before: Any = None,
        after: Any = None,
        reason: str = "",
        settings: tuple[Setting, ...] = (),
        undoes: int | None = None,
    ) -> Change:
        number = self._record.last + 1
        change = Change(
            number, time.time(), by, what, text, before, after, reason, settings, undoes
        )
        self._record.add(change)
        log("control", id=number, by=by, what=what, text=text, reason=reason or None)
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

    def refresh(self) -> tuple[str, ...]:
        """Look at the files again; the names of tables that have changed."""
        return self._session.refresh()

    def use_tenants(
        self,
        tenants: Mapping[str, Any] | None,
        limits: Mapping[str, Any] | None = None,
        profile: str | Mapping[str, Any] | None = None,
    ) -> None:
        """Follow what the file of settings says now, and changes where it says nothing new."""
        with self._lock:
            before, overlay = self._file, self._overlay
            given = self._file.profile if profile is None else profile
            self._file = FromFile(given, read_tenants(tenants), read_limits(limits or {}, "limits"))
            outdated = overlay.outdated(self._file.value)
            self._overlay = overlay.copy()
            self._overlay.forget(outdated)
            try:
                self._follow([PROFILE], BY_FILE, "the settings were read again")
            except BaseException:
                self._file, self._overlay = before, overlay
                raise
            self._give_way(outdated, overlay)

    def _give_way(self, keys: Sequence[Key], before: Overlay) -> None:
        """Record that the file counts again for some settings."""
        if keys:
            moved = [(key, self._value(key, before), self._file.value(key)) for key in keys]
            self._note(
                BY_FILE,
                FILE,
                f"the settings say otherwise by now: {settings_text(moved)}",
                _document((key, value) for key, value, _ in moved),
                _document((key, value) for key, _, value in moved),
                settings=tuple(Setting(key, None, None) for key in keys),
            )

    # --- the start and the end -------------------------------------------------------------------

    def _begin(self) -> None:
        """Make the changes of the past again, where they hold; a server that starts is open."""
        before = self._overlay
        outdated = before.outdated(self._file.value)
        self._overlay = before.copy()
        self._overlay.forget(outdated)
        followed = [key for key in self._overlay.values() if key[0] in _FOLLOWED]
        if self._overlay.get(PAUSED) is not None:
            self._follow([PAUSED], BY_START, "")
        try:
            self._follow(followed, BY_START, "changes of the past are made again")
        except QueryardError as error:
            log("changes of the past do not fit any more", logging.WARNING, error=error)
            self._overlay.forget(followed)
            outdated = [*outdated, *followed]
        self._give_way(outdated, before)
        if self._overlay.get(DRAINING) is not None:
            self._set(BY_START, Asked("open", "a server that starts takes queries"))
        for change in self._record.changes:
            if change.what == RESET:
                self._session.reset_models(change.after["models"], before=change.at)

    def close(self) -> None:
        """Let another server on the same data keep its changes."""
        self._record.close()


def _replayed(changes: Sequence[Change]) -> Overlay:
    """What holds after all changes of a record."""
    overlay = Overlay()
    for change in changes:
        if change.what == FILE:
            overlay.forget(setting.key for setting in change.settings)
        elif change.undoes is not None:
            overlay.undo(change.undoes)
        elif change.settings:
            overlay.change(change.id, change.settings)
    return overlay


def _refuse_twice(word: Mapping[str, Any] | None, problem: str) -> None:
    if word is not None:
        raise Conflict(f"{problem}, by {word_of(word)}")


def _document(values: Iterable[tuple[Key, Any]]) -> Any:
    """Values of settings as the record shows them.

    >>> _document([(("tenant", "web", "weight"), 2), (("tenant", "web", "cap"), 0.5)])
    {'tenant': 'web', 'weight': 2, 'cap': 0.5}
    """
    single: dict[str, Any] = {}
    tenants: dict[str, dict[str, Any]] = {}
    for key, value in values:
        if key[0] == "tenant":
            tenants.setdefault(key[1], {})[key[2]] = value
        else:
            single[key[0]] = value
    if len(tenants) == 1 and not single:
        (name, fields), *_ = tenants.items()
        return {"tenant": name, **fields}
    if len(single) == 1 and not tenants:
        return next(iter(single.values()))
    return {**single, "tenants": tenants}


def _limits(limits: Limits) -> dict[str, Any]:
    return {field: getattr(limits, field) for field in LIMITS}
