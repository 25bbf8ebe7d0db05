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
        self._start = {**USUAL, "session_authorization": user, "timezone": zone}
        self._now = dict(self._start)
        for name, value in startup.items():
            self.set(name, value)
        self._start = dict(self._now)
        # What a ROLLBACK brings back, and what lasts until the end of the transaction only.
        self._before: dict[str, str] | None = None
        self._local: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        key = name.lower()
        for place in (FIXED, self._local if hasattr(self, "_local") else {}, self._now):
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
        if local:
            self._local[key] = value
        else:
            self._now[key] = value
            if hasattr(self, "_local"):
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

    # --- transactions ----------------------------------------------------------------------------

    def begin(self) -> None:
        """What is set from here on is undone by a rollback."""
        self._before = dict(self._now)

    def end(self, *, committed: bool) -> None:
        if not committed and self._before is not None:
            self._now = self._before
        self._before = None
        self._local.clear()
        for name in ("isolation", "read_only", "deferrable"):
            self._now[f"transaction_{name}"] = self[f"default_transaction_{name}"]

    # --- looking on ------------------------------------------------------------------------------

    def all(self) -> dict[str, str]:
        """All settings by name."""
        return dict(sorted({**self._now, **self._local, **FIXED}.items()))

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
