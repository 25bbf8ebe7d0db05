"""Settings that PostgreSQL's clients know: their usual values, and which values are possible."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Callable, Mapping

from queryard.core.errors import QueryardError

from ..query_settings import QUERY_SETTINGS
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
FIXED = {
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
USUAL = {
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
    "search_path": "main",
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
ISOLATION = ("serializable", "repeatable read", "read committed", "read uncommitted")
_TRUE, _FALSE = ("on", "true", "yes", "1", "t", "y"), ("off", "false", "no", "0", "f", "n")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "": 1e-3}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*")


def _switch(name: str, value: str) -> str:
    if value.lower() not in (*_TRUE, *_FALSE):
        raise PostgresError(
            "22023",
            f'parameter "{name}" requires a Boolean value, got "{value}"',
            hint="write on or off",
        )
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


def _schemas(name: str, value: str) -> str:
    if "information_schema" in (part.strip(' "').lower() for part in value.split(",")):
        raise not_supported(
            f"{name}: information_schema is not searched",
            hint="write it before the names of its views",
        )
    return value


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


def _asked(check: Callable[[str], object], allowed: str) -> Callable[[str, str], str]:
    """A check of Queryard's own, and what is allowed; an empty text means: not set.

    >>> _asked(float, "a number, as 2.5")("queryard.priority", "x")
    Traceback (most recent call last):
    queryard.service.postgres.errors.PostgresError: invalid value for parameter \
"queryard.priority": "x"; allowed is a number, as 2.5
    """

    def checked(name: str, value: str) -> str:
        try:
            if value:
                check(value)
        except (QueryardError, ValueError):
            words = f'invalid value for parameter "{name}": "{value}"; allowed is {allowed}'
            raise PostgresError("22023", words) from None
        return value

    return checked


CHECKS: Mapping[str, Callable[[str, str], str]] = {
    "client_encoding": _encoding,
    "datestyle": _dates,
    "intervalstyle": _only("postgres"),
    "bytea_output": _only("hex"),
    "standard_conforming_strings": _only("on"),
    "timezone": _zone,
    "search_path": _schemas,
    "statement_timeout": _duration,
    "idle_in_transaction_session_timeout": _duration,
    "lock_timeout": _duration,
    "idle_session_timeout": _duration,
    "transaction_isolation": _only(*ISOLATION),
    "default_transaction_isolation": _only(*ISOLATION),
    "transaction_read_only": _switch,
    "default_transaction_read_only": _switch,
    "role": _only("none"),
    "queryard.progress": _switch,
    **{name: _asked(*expected) for name, expected in QUERY_SETTINGS.items()},
}
