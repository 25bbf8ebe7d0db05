"""A session follows changes beside the file of settings, and each change is recorded.

Changes hold beside the file, whose later word counts (`overlay`); after a restart they are made
again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from queryard.core.errors import QueryardError
from queryard.live.admission.tenants import Tenants
from queryard.live.session import Session

from ..logs import log
from .overlay import Overlay, Setting
from .record import FILE, RESET, Change, Record, holds_reset
from .resets import Resets
from .steered import DRAINING, PAUSED, PROFILE, FromFile, Key, plain, tenants_with
from .texts import settings_text, word_of

# What has made a change, where no token has.
BY_FILE, BY_START = "the settings", "the start"
# The settings that a session follows through its policy and limits.
_FOLLOWED = ("profile", "tenant")


class Steering:
    """The session, what the file says, and the changes beside it; its caller has a lock."""

    def __init__(self, session: Session, file: Path | None) -> None:
        """`file` is the record of changes; None keeps none. Changes of the past are made again."""
        self._session = session
        self.resets = Resets(session)
        tenants = Tenants(session.tenants, session.tenant_limits)
        self._file = FromFile(session.chosen_profile, tenants, session.limits)
        self.record = Record(file)
        self.overlay = _replayed(self.record.changes)
        if self.record.unkept:
            log("changes by controls are not kept", logging.WARNING, reason=self.record.unkept)
        self._begin()

    @property
    def file(self) -> FromFile:
        """What the file of settings says."""
        return self._file

    def set(
        self, by: str, what: str, values: Sequence[tuple[Key, Any]], reason: str = ""
    ) -> Change:
        """Set settings to other values."""
        after = self.overlay.copy()
        settings = [Setting(key, plain(value), self._file.value(key)) for key, value in values]
        after.change(self.record.last + 1, settings)
        moved = self._moved([key for key, _ in values], after)
        return self._make(by, what, settings_text(moved), moved, after, settings, reason)

    def undo(self, by: str, what: str, change: Change, reason: str) -> Change:
        """Take a change back that is on top."""
        after = self.overlay.copy()
        after.undo(change.id)
        moved = self._moved([setting.key for setting in change.settings], after)
        text = f"undid change {change.id}: {settings_text(moved)}"
        return self._make(by, what, text, moved, after, reason=reason, undoes=change.id)

    def _moved(self, keys: Iterable[Key], after: Overlay) -> list[tuple[Key, Any, Any]]:
        """What settings are, and would be after a change."""
        return [(key, self._value(key, self.overlay), self._value(key, after)) for key in keys]

    def _value(self, key: Key, overlay: Overlay) -> Any:
        """What a setting is: as a change has set it, else as the file has it."""
        values = overlay.values()
        return values[key] if key in values else self._file.value(key)

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
        before, self.overlay = self.overlay, after
        keys = [key for key, _, _ in moved]
        try:
            self._follow(keys, by, text)
        except BaseException:
            self.overlay = before
            raise
        try:
            return self.note(
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
            self.overlay = before
            self._follow(keys, by, f"not made: {text}")
            raise

    def _follow(self, keys: Sequence[Key], by: str, reason: str) -> None:
        """Let the session follow the overlay in some settings; if that fails, nothing changes."""
        if any(key[0] in _FOLLOWED for key in keys):
            values = self.overlay.values()
            self._session.use_tenants(
                tenants_with(self._file, values),
                self._file.limits,
                values.get(PROFILE, self._file.profile),
                by=by,
                reason=reason,
            )
        if PAUSED in keys:
            paused = self.overlay.get(PAUSED)
            if paused is None:
                self._session.resume()
            else:
                self._session.pause(word_of(paused))

    def note(
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
        """Record a change."""
        number = self.record.last + 1
        change = Change(
            number, time.time(), by, what, text, before, after, reason, settings, undoes
        )
        self.record.add(change)
        log("control", id=number, by=by, what=what, text=text, reason=reason or None)
        return change

    # --- the file of settings --------------------------------------------------------------------

    def use_file(self, said: FromFile) -> None:
        """Follow what the file of settings says now, and changes where it says nothing new."""
        before, overlay = self._file, self.overlay
        self._file = said
        outdated = overlay.outdated(said.value)
        self.overlay = overlay.copy()
        self.overlay.forget(outdated)
        try:
            self._follow([PROFILE], BY_FILE, "the settings were read again")
        except BaseException:
            self._file, self.overlay = before, overlay
            raise
        self._give_way(outdated, overlay)

    def _give_way(self, keys: Sequence[Key], before: Overlay) -> None:
        """Record that the file counts again for some settings."""
        if keys:
            moved = [(key, self._value(key, before), self._file.value(key)) for key in keys]
            self.note(
                BY_FILE,
                FILE,
                f"the settings say otherwise by now: {settings_text(moved)}",
                _document((key, value) for key, value, _ in moved),
                _document((key, value) for key, _, value in moved),
                settings=tuple(Setting(key, None, None) for key in keys),
            )

    def _begin(self) -> None:
        """Make the changes of the past again, where they hold; a server that starts is open."""
        before = self.overlay
        outdated = before.outdated(self._file.value)
        self.overlay = before.copy()
        self.overlay.forget(outdated)
        followed = [key for key in self.overlay.values() if key[0] in _FOLLOWED]
        if self.overlay.get(PAUSED) is not None:
            self._follow([PAUSED], BY_START, "")
        try:
            self._follow(followed, BY_START, "changes of the past are made again")
        except QueryardError as error:
            log("changes of the past do not fit any more", logging.WARNING, error=error)
            self.overlay.forget(followed)
            outdated = [*outdated, *followed]
        self._give_way(outdated, before)
        if self.overlay.get(DRAINING) is not None:
            self.set(BY_START, "open", [(DRAINING, None)], "a server that starts takes queries")
        for change in self.record.changes:
            if holds_reset(change):
                self.resets.make(change)


def _replayed(changes: Sequence[Change]) -> Overlay:
    """What holds after all changes of a record."""
    overlay = Overlay()
    resets = {change.id for change in changes if change.what == RESET}  # they set nothing
    for change in changes:
        if change.what == FILE:
            overlay.forget(setting.key for setting in change.settings)
        elif change.undoes is not None and change.undoes not in resets:
            overlay.undo(change.undoes)
        elif change.settings:
            overlay.change(change.id, change.settings)
    return overlay


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
