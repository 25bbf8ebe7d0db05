"""In which form the values of a column are kept in Parquet, so that they come back as they were.

Most types of DuckDB are the same after a round trip through Parquet. Some are kept as text, since
Parquet has no such type (HUGEINT becomes DOUBLE there, INTERVAL loses microseconds). Types with
such a type inside them are not kept: their columns are parsed by each query.
"""

from __future__ import annotations

import re

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT"}
_UNSIGNED = {"UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
_TIMES = {"DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"}
_SAME = _INTEGERS | _UNSIGNED | _TIMES | {"BOOLEAN", "FLOAT", "DOUBLE", "VARCHAR", "BLOB", "UUID"}
_CAST_BACK = frozenset({"JSON", "TIMESTAMP_S", "TIMESTAMP_MS"})
_AS_TEXT = frozenset({"HUGEINT", "UHUGEINT", "INTERVAL", "BIT", "TIME WITH TIME ZONE"})
_DECIMAL = re.compile(r"DECIMAL\(\d+,\s*\d+\)")


def kept_form(type_name: str, expression: str) -> str | None:
    """SQL for what is kept of a value; None if values of the type are not kept.

    >>> kept_form("DATE", "d"), kept_form("HUGEINT", "n"), kept_form("INTERVAL[]", "a")
    ('d', 'CAST(n AS VARCHAR)', None)
    """
    plain = _element(type_name)
    if plain in _AS_TEXT:
        return f"CAST({expression} AS VARCHAR)" if plain == type_name else None
    if plain in _SAME or _DECIMAL.fullmatch(plain):
        return expression
    if plain in _CAST_BACK or plain.startswith("ENUM("):
        return expression if plain == type_name else None
    return None


def given_back(type_name: str, expression: str) -> str:
    """SQL for the value from what is kept of it.

    >>> given_back("DATE", "d"), given_back("HUGEINT", "n")
    ('d', 'CAST(n AS HUGEINT)')
    """
    plain = _element(type_name)
    if plain in _SAME or _DECIMAL.fullmatch(plain):
        return expression
    return f"CAST({expression} AS {type_name})"


def _element(type_name: str) -> str:
    """The type inside of lists."""
    while type_name.endswith("[]"):
        type_name = type_name[:-2]
    return type_name
