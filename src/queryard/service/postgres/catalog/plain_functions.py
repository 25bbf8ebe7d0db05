"""Functions of PostgreSQL that need nothing but what they are given."""

from __future__ import annotations

import re

from .answers import UnknownCatalogQuery
from .texts import parse_ident, quote_ident, quote_literal

_LETTERS = {
    "r": "SELECT",
    "a": "INSERT",
    "w": "UPDATE",
    "d": "DELETE",
    "D": "TRUNCATE",
    "x": "REFERENCES",
    "t": "TRIGGER",
    "U": "USAGE",
    "C": "CREATE",
    "c": "CONNECT",
    "T": "TEMPORARY",
}


def privileges_in(acl: list[str | None] | None) -> list[str]:
    """The privileges that a list of access rights gives.

    >>> privileges_in(["ann=rw/ann"]), privileges_in(None)
    (['SELECT', 'UPDATE'], [])
    """
    letters = (item.rpartition("=")[2].partition("/")[0] for item in acl or () if item)
    return [_LETTERS[letter] for found in letters for letter in found if letter in _LETTERS]


def pretty_size(size: int) -> str:
    """As PostgreSQL's `pg_size_pretty`.

    >>> pretty_size(100), pretty_size(123_456), pretty_size(10**9)
    ('100 bytes', '121 kB', '954 MB')
    """
    limit = 10 * 1024
    if abs(size) < limit:
        return f"{size} bytes"
    value = float(size)
    for unit in ("kB", "MB", "GB", "TB", "PB"):
        value /= 1024
        if abs(value) < limit - 0.5 or unit == "PB":
            return f"{int(value + 0.5)} {unit}"
    raise AssertionError("the last unit fits all")


def formatted(pattern: str | None, arguments: list[str | None] | None) -> str | None:
    """PostgreSQL's `format`: %s, %I, %L, %%, and %1$s by position.

    >>> formatted("%I.%I: %s", ["Sales", "orders", "x"])
    '"Sales".orders: x'
    """
    if pattern is None:
        return None
    values = arguments or []
    following = iter(range(len(values)))

    def one(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        place = int(found[1][:-1]) - 1 if found[1] else next(following, len(values))
        if place >= len(values):
            raise UnknownCatalogQuery("too few arguments for format()", "22023")
        value = values[place]
        if found[2] == "s":
            return value or ""
        if found[2] == "L":
            return "NULL" if value is None else quote_literal(value)
        if value is None:
            raise UnknownCatalogQuery("null values cannot be formatted as an SQL name", "22004")
        return quote_ident(value)

    return re.sub(r"%(?:%|(\d+\$)?([sIL]))", one, pattern)


def setting_of(
    names: list[str] | None, values: list[str] | None, name: str | None, missing_ok: bool | None
) -> str | None:
    """The value of a setting of the session; an unknown one is an error, unless it may be."""
    if name is None:
        return None
    known = dict(zip(names or (), values or (), strict=True))
    if name.lower() not in known and not missing_ok:
        raise UnknownCatalogQuery(f'unrecognized configuration parameter "{name}"', "42704")
    return known.get(name.lower())


def parts_of_name(text: str | None) -> list[str] | None:
    if text is None:
        return None
    parts = parse_ident(text)
    if not parts:
        raise UnknownCatalogQuery(f'string is not a valid identifier: "{text}"', "22023")
    return list(parts)


def select_of(definition: str) -> str:
    """The query of a view, without CREATE VIEW in front.

    >>> select_of("CREATE VIEW v AS SELECT 1;")
    ' SELECT 1;'
    """
    found = re.match(
        r'CREATE\s+(?:\w+\s+)*?VIEW\s+(?:"(?:[^"]|"")+"|[\w.])+\s*(?:\([^)]*\)\s*)?AS\s+',
        definition,
        re.IGNORECASE,
    )
    query = definition[found.end() :] if found else definition
    return f" {query.rstrip().rstrip(';')};"
