"""Settings of one session, as SET, SHOW and RESET see them. No I/O.

Some are Queryard's and reach the scheduler (`queryard.deadline` …), some say how values look, and
many are PostgreSQL's own that clients set out of habit: these are kept and shown, and do nothing.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Callable, Mapping
from typing import Any

from queryard.core.errors import QueryardError
from queryard.live.amounts import as_time_left
from queryard.live.request import checked_plan, checked_priority, checked_tenant

from .errors import PostgresError, not_supported

SERVER_VERSION = "15.0"
# Clients are told of these at the start and when they change.
REPORTED = (
    "application_name",
    "client_encoding",
    "DateStyle",
    "default_transaction_read_only",
    "in_hot_standby",
    "integer_datetimes",
    "IntervalStyle",
    "is_superuser",
    "server_encoding",
    "server_version",
    "session_authorization",
    "standard_conforming_strings",
    "TimeZone",
)
_FIXED = {
    "server_version": SERVER_VERSION,
    "server_version_num": "150000",
    "server_encoding": "UTF8",
    "integer_datetimes": "on",
    "in_hot_standby": "off",
    "is_superuser": "off",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "block_size": "8192",
    "lc_collate": "C",
    "lc_ctype": "C",
    "data_directory_mode": "0700",
    "max_function_args": "100",
    "ssl": "off",
}
# Those that a session may set, with their values at the start.
_USUAL = {
    "application_name": "",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "constraint_exclusion": "partition",
    "cursor_tuple_fraction": "0.1",
    "datestyle": "ISO, MDY",
    "deadlock_timeout": "1s",
    "default_table_access_method": "heap",
    "default_tablespace": "",
    "default_text_search_config": "pg_catalog.simple",
    "default_transaction_deferrable": "off",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "enable_bitmapscan": "on",
    "enable_hashagg": "on",
    "enable_hashjoin": "on",
    "enable_indexscan": "on",
    "enable_mergejoin": "on",
    "enable_nestloop": "on",
    "enable_seqscan": "on",
    "escape_string_warning": "on",
    "extra_float_digits": "1",
    "geqo": "on",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "intervalstyle": "postgres",
    "jit": "off",
    "lc_messages": "C",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "lock_timeout": "0",
    "maintenance_work_mem": "64MB",
    "max_parallel_workers_per_gather": "2",
    "password_encryption": "scram-sha-256",
    "plan_cache_mode": "auto",
    "quote_all_identifiers": "off",
    "random_page_cost": "4",
    "role": "none",
    "row_security": "on",
    "search_path": '"$user", main',
    "session_authorization": "",
    "session_replication_role": "origin",
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "synchronize_seqscans": "on",
    "synchronous_commit": "on",
    "tcp_keepalives_idle": "0",
    "tcp_keepalives_interval": "0",
    "temp_buffers": "8MB",
    "timezone": "UTC",
    "transaction_deferrable": "off",
    "transaction_isolation": "read committed",
    "transaction_read_only": "off",
    "work_mem": "4MB",
    "xmloption": "content",
    "queryard.deadline": "",
    "queryard.plan": "",
    "queryard.priority": "0",
    "queryard.progress": "off",
    "queryard.tenant": "",
}
_TRUE, _FALSE = ("on", "true", "yes", "1", "t", "y"), ("off", "false", "no", "0", "f", "n")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "": 1e-3}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*")
_OPTION = re.compile(r"(?:-c\s*|--)([\w.\-]+)\s*=\s*((?:\\.|[^\s\\])*)")


def _switch(name: str, value: str) -> str:
    if value.lower() not in (*_TRUE, *_FALSE):
        raise PostgresError("22023", f'parameter "{name}" requires a Boolean value')
    return "on" if value.lower() in _TRUE else "off"


def _encoding(name: str, value: str) -> str:
    plain = re.sub(r"[^a-z0-9]", "", value.lower())
    if plain in ("utf8", "unicode"):
        return "UTF8"
    if plain == "sqlascii":
        return "SQL_ASCII"
    raise PostgresError(
        "22023", f'invalid value for parameter "{name}": "{value}"', hint="this server speaks UTF8"
    )


def _dates(name: str, value: str) -> str:
    words = [word.strip().upper() for word in value.split(",")]
    orders = [word for word in words if word in ("MDY", "DMY", "YMD")]
    if set(words) - {"ISO", *orders}:
        raise PostgresError(
            "22023", f'invalid value for parameter "{name}": "{value}"', hint="only ISO is known"
        )
    return f"ISO, {orders[0] if orders else 'MDY'}"


def _only(*allowed: str) -> Callable[[str, str], str]:
    def check(name: str, value: str) -> str:
        if value.lower() not in allowed:
            raise PostgresError(
                "22023",
                f'invalid value for parameter "{name}": "{value}"',
                hint=f"this server has {', '.join(allowed)} only",
            )
        return value.lower()

    return check


def _zone(name: str, value: str) -> str:
    known = {zone.lower(): zone for zone in zoneinfo.available_timezones()}
    found = known.get(value.lower())
    if found is None:
        raise PostgresError(
            "22023",
            f'invalid value for parameter "{name}": "{value}"',
            hint="name a zone of the IANA list, such as 'Europe/Berlin'",
        )
    return found


def _duration(name: str, value: str) -> str:
    seconds_of(name, value)
    return value


def seconds_of(name: str, value: str) -> float:
    """A duration as PostgreSQL writes it; milliseconds where it has no unit.

    >>> seconds_of("statement_timeout", "1500"), seconds_of("statement_timeout", "2min")
    (1.5, 120.0)
    """
    found = _DURATION.fullmatch(value)
    if found is None or found.group(2) not in _UNITS:
        raise PostgresError(
            "22023",
            f'invalid value for parameter "{name}": "{value}"',
            hint='Valid units for this parameter are "us", "ms", "s", "min", "h", and "d".',
        )
    return float(found.group(1)) * _UNITS[found.group(2)]


def _asked(check: Callable[[str], object]) -> Callable[[str, str], str]:
    """A check of Queryard's own; an empty text means: not set."""

    def checked(name: str, value: str) -> str:
        try:
            if value:
                check(value)
        except (QueryardError, ValueError) as error:
            raise PostgresError("22023", f'invalid value for parameter "{name}": {error}') from None
        return value

    return checked


_CHECKS: Mapping[str, Callable[[str, str], str]] = {
    "client_encoding": _encoding,
    "datestyle": _dates,
    "intervalstyle": _only("postgres"),
    "bytea_output": _only("hex"),
    "standard_conforming_strings": _only("on"),
    "timezone": _zone,
    "statement_timeout": _duration,
    "idle_in_transaction_session_timeout": _duration,
    "lock_timeout": _duration,
    "transaction_read_only": _switch,
    "default_transaction_read_only": _switch,
    "role": _only("none"),
    "queryard.progress": _switch,
    "queryard.deadline": _asked(lambda value: as_time_left(value, "deadline")),
    "queryard.plan": _asked(checked_plan),
    "queryard.priority": _asked(lambda value: checked_priority(float(value))),
    "queryard.tenant": _asked(checked_tenant),
}


class UnknownSetting(PostgresError):
    """A name that is no setting of PostgreSQL's or Queryard's; it may be one of DuckDB's."""

    def __init__(self, name: str) -> None:
        super().__init__("42704", f'unrecognized configuration parameter "{name}"')


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
        self._start = {**_USUAL, "session_authorization": user, "timezone": zone}
        self._now = dict(self._start)
        for name, value in startup.items():
            self.set(name, value)
        self._start = dict(self._now)
        # What a ROLLBACK brings back, and what lasts until the end of the transaction only.
        self._before: dict[str, str] | None = None
        self._local: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        key = name.lower()
        for place in (_FIXED, self._local if hasattr(self, "_local") else {}, self._now):
            if key in place:
                return place[key]
        raise UnknownSetting(name)

    def __contains__(self, name: str) -> bool:
        return name.lower() in _FIXED or name.lower() in self._now

    def set(self, name: str, value: str, *, local: bool = False) -> None:
        """Check and keep a value; a dotted name is always taken, as by PostgreSQL."""
        key = name.lower()
        if key in _FIXED:
            raise PostgresError("55P02", f'parameter "{name}" cannot be changed')
        known = key in self._now
        if not known and ("." not in key or key.startswith("queryard.")):
            raise UnknownSetting(name)
        check = _CHECKS.get(key)
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
        return dict(sorted({**self._now, **self._local, **_FIXED}.items()))

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
