"""Settings of one session, as SET, SHOW and RESET see them. No I/O.

Some are Queryard's and reach the scheduler (`queryard.deadline` …), some say how values look, and
many are PostgreSQL's own that clients set out of habit: these are kept and shown, and do nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from .errors import PostgresError, not_supported
from .setting_values import CHECKS, FIXED, REPORTED, USUAL, seconds_of

# What a transaction has of its own from its beginning on; outside of one the defaults hold.
_OF_TRANSACTIONS = ("transaction_isolation", "transaction_read_only", "transaction_deferrable")
_OPTION = re.compile(r"(?:-c\s*|--)([\w.\-]+)\s*=\s*((?:\\.|[^\s\\])*)")


class UnknownSetting(PostgresError):
    """A name that is no setting of PostgreSQL's or Queryard's; it may be one of DuckDB's."""

    def __init__(self, name: str) -> None:
        own = [known for known in USUAL if known.startswith("queryard.")]
        hint = f"there are {', '.join(own)}" if name.lower().startswith("queryard.") else ""
        super().__init__("42704", f'unrecognized configuration parameter "{name}"', hint=hint)


class Settings:
    """The settings of a session; names are not case-sensitive.

    >>> settings = Settings({"application_name": "psql"}, user="ann")
    >>> settings.set("Queryard.Deadline", "10 s")
    >>> settings["queryard.deadline"], settings["application_name"]
    ('10 s', 'psql')
    >>> settings.reset_all(); settings["queryard.deadline"]
    ''
    """

    def __init__(
        self,
        startup: Mapping[str, str] = {},
        *,
        user: str = "",
        zone: str = "UTC",
        may_set: Callable[[str, str], None] = lambda name, value: None,
    ) -> None:
        """`may_set` raises an error for a value that this client may not choose."""
        self._may_set = may_set
        # What a ROLLBACK brings back, what ends with the transaction, and the modes of that.
        self._before: dict[str, str] | None = None
        self._local: dict[str, str] = {}
        self._modes: dict[str, str] = {}
        self._start = {**USUAL, "session_authorization": user, "timezone": zone}
        self._now = dict(self._start)
        for name, value in startup.items():
            self.set(name, value)
        self._start = dict(self._now)

    def __getitem__(self, name: str) -> str:
        key = name.lower()
        if key in _OF_TRANSACTIONS:
            return self._modes[key] if key in self._modes else self[f"default_{key}"]
        for place in (FIXED, self._local, self._now):
            if key in place:
                return place[key]
        raise UnknownSetting(name)

    def __contains__(self, name: str) -> bool:
        return name.lower() in FIXED or name.lower() in self._now

    def set(self, name: str, value: str, *, local: bool = False) -> None:
        """Check and keep a value; a dotted name is always taken, as by PostgreSQL."""
        key = name.lower()
        if key in FIXED:
            raise PostgresError("55P02", f'parameter "{name}" cannot be changed')
        known = key in self._now
        if not known and ("." not in key or key.startswith("queryard.")):
            raise UnknownSetting(name)
        check = CHECKS.get(key)
        value = check(name, value) if check is not None else value
        self._may_set(key, value)
        if key in _OF_TRANSACTIONS:
            self._modes[key] = value
        elif local:
            self._local[key] = value
        else:
            self._now[key] = value
            self._local.pop(key, None)

    def reset(self, name: str, *, local: bool = False) -> None:
        """Back to the value at the start of the session."""
        key = name.lower()
        if key not in self._now:
            raise UnknownSetting(name)
        self.set(key, self._start.get(key, ""), local=local)

    def reset_all(self) -> None:
        self._now = dict(self._start)
        self._local.clear()

    def end_series(self) -> None:
        """What was set for a transaction outside of one holds for one series of messages."""
        self._local.clear()
        self._modes.clear()

    # --- transactions ----------------------------------------------------------------------------

    def begin(self, modes: Mapping[str, str] = {}) -> None:
        """What is set from here on is undone by a rollback. Without `modes` the defaults hold."""
        self._before = dict(self._now)
        self._modes = dict(modes) or {name: self[f"default_{name}"] for name in _OF_TRANSACTIONS}

    @property
    def modes(self) -> dict[str, str]:
        """The modes of the transaction."""
        return {name: self[name] for name in _OF_TRANSACTIONS}

    def end(self, *, committed: bool) -> None:
        if not committed and self._before is not None:
            self._now = self._before
        self._before = None
        self._local.clear()
        self._modes.clear()

    # --- looking on ------------------------------------------------------------------------------

    def all(self) -> dict[str, str]:
        """All settings by name."""
        return dict(sorted({**self._now, **self._local, **self.modes, **FIXED}.items()))

    def reported(self) -> dict[str, str]:
        return {name: self[name] for name in REPORTED}

    def is_on(self, name: str) -> bool:
        return self[name] == "on"

    def query_options(self) -> dict[str, Any]:
        """The options of `submit`."""
        options: dict[str, Any] = {"priority": float(self["queryard.priority"] or 0)}
        if limit_s := seconds_of("statement_timeout", self["statement_timeout"]):
            options["time_limit"] = limit_s
        if deadline := self["queryard.deadline"]:
            options["deadline"] = deadline
        if plan := self["queryard.plan"]:
            options["plan"] = plan
        return options


def startup_settings(parameters: Mapping[str, str]) -> dict[str, str]:
    """The settings in a start-up packet: by their names, and in `options` as psql has them.

    >>> startup_settings({"user": "ann", "options": "-c statement_timeout=5s -c a.b=x\\\\ y"})
    {'statement_timeout': '5s', 'a.b': 'x y'}
    """
    named = {
        name: value
        for name, value in parameters.items()
        if name not in ("user", "database", "options", "replication")
    }
    options = parameters.get("options", "")
    found = {}
    for match in _OPTION.finditer(options):
        found[match.group(1).replace("-", "_")] = re.sub(r"\\(.)", r"\1", match.group(2))
    left = _OPTION.sub("", options).strip()
    if left:
        raise not_supported(f"options: {left!r} is not understood", hint="write -c name=value")
    return {**named, **found}
