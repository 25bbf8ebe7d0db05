"""Which of DuckDB's types Arrow carries as they are."""

from __future__ import annotations

import re

PLAIN = frozenset(
    [
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
        "DOUBLE",
        "FLOAT",
        "VARCHAR",
        "BLOB",
        "DATE",
        "TIME",
        "TIMESTAMP",
        "TIMESTAMP_S",
        "TIMESTAMP_MS",
        "TIMESTAMP_NS",
        "TIMESTAMP WITH TIME ZONE",
    ]
)
"""Written to Arrow and read back as the very same type and value; so are decimals."""

_DECIMAL = re.compile(r"^DECIMAL\(\d+,\d+\)$")
_NAME = re.compile(r'^("([^"]|"")*"|\S+) ')
_LIST = re.compile(r"^(.*)\[\d*\]$")


def is_decimal(found: str) -> bool:
    return _DECIMAL.match(found) is not None


def travels(found: str) -> bool:
    """Whether Arrow carries the type as it is.

    >>> travels('STRUCT(a INTEGER[], "b, c" DECIMAL(9,2))'), travels("MAP(VARCHAR, UUID)")
    (True, False)
    """
    if found in PLAIN or is_decimal(found):
        return True
    nested = _LIST.match(found)
    if nested:
        return travels(nested[1])
    if found.startswith("STRUCT(") and found.endswith(")"):
        parts = _split(found[len("STRUCT(") : -1])
        return all(travels(_NAME.sub("", part, count=1)) for part in parts)
    if found.startswith("MAP(") and found.endswith(")"):
        return all(travels(part) for part in _split(found[len("MAP(") : -1]))
    return False


def _split(parts: str) -> list[str]:
    """The parts of a list in a type, which may be lists and quoted names themselves.

    >>> _split('a INTEGER, "b, c" DECIMAL(9,2), d MAP(VARCHAR, DATE)')
    ['a INTEGER', '"b, c" DECIMAL(9,2)', 'd MAP(VARCHAR, DATE)']
    """
    found, depth, quoted, start = [], 0, False, 0
    for place, sign in enumerate(parts):
        if sign == '"':
            quoted = not quoted
        elif not quoted:
            depth += {"(": 1, ")": -1}.get(sign, 0)
            if sign == "," and not depth:
                found.append(parts[start:place].strip())
                start = place + 1
    return [*found, parts[start:].strip()]
