"""Settings of a session as PostgreSQL's clients ask for them, and the values they have unless the
session says otherwise."""

from __future__ import annotations

from typing import Final

VERSION: Final = "15.0"
"""The version of PostgreSQL whose catalogs these are."""

DEFAULTS: Final = {
    "application_name": "",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "datestyle": "ISO, MDY",
    "default_table_access_method": "heap",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "extra_float_digits": "1",
    "in_hot_standby": "off",
    "integer_datetimes": "on",
    "intervalstyle": "postgres",
    "is_superuser": "off",
    "jit": "off",
    "lc_collate": "C.UTF-8",
    "lc_ctype": "C.UTF-8",
    "lc_messages": "C.UTF-8",
    "lc_monetary": "C.UTF-8",
    "lc_numeric": "C.UTF-8",
    "lc_time": "C.UTF-8",
    "lock_timeout": "0",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "role": "none",
    "search_path": "main",
    "server_encoding": "UTF8",
    "server_version": VERSION,
    "server_version_num": "150000",
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "timezone": "UTC",
    "transaction_isolation": "read committed",
    "transaction_read_only": "off",
}

NOT_SETTINGS: Final = frozenset({"user", "database", "pid", "version"})
"""What a session says of itself beside its settings."""

_INTEGERS = (
    "'extra_float_digits', 'max_identifier_length', 'max_index_keys', 'server_version_num', "
    "'statement_timeout', 'lock_timeout'"
)

SETTINGS_ROWS: Final = (
    "SELECT name, setting, CAST(NULL AS VARCHAR) AS unit, 'Queryard' AS category, "
    "'' AS short_desc, CAST(NULL AS VARCHAR) AS extra_desc, 'user' AS context, "
    f"CASE WHEN name IN ({_INTEGERS}) THEN 'integer' WHEN setting IN ('on', 'off') THEN 'bool' "
    "ELSE 'string' END AS vartype, 'default' AS source, CAST(NULL AS VARCHAR) AS min_val, "
    "CAST(NULL AS VARCHAR) AS max_val, CAST(NULL AS VARCHAR[]) AS enumvals, "
    "setting AS boot_val, setting AS reset_val, CAST(NULL AS VARCHAR) AS sourcefile, "
    "CAST(NULL AS INTEGER) AS sourceline, false AS pending_restart "
    "FROM (SELECT unnest({names}) AS name, unnest({values}) AS setting)"
)
"""The rows of `pg_settings`, in the order of its columns."""
