"""Names, texts and paths as DuckDB's SQL wants them written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

import duckdb

_MAGIC = re.compile(r"[*?\[]")
_ESCAPED = re.compile(r"\[([*?[])\]")


def identifier(name: str) -> str:
    """A name, always in quotes.

    >>> identifier('my "own" table')
    '"my ""own"" table"'
    """
    return '"' + name.replace('"', '""') + '"'


def plain_identifier(name: str) -> str:
    """A name as people write it: in quotes only if DuckDB needs them.

    >>> plain_identifier("orders"), plain_identifier("2024 orders"), plain_identifier("order")
    ('orders', '"2024 orders"', '"order"')
    """
    plain = name.isidentifier() and name.lower() not in _keywords()
    return name if plain else identifier(name)


def written_name(key: str) -> str:
    """A name with dots, as `Table.key`, as people write it in SQL.

    >>> written_name("sales.my orders")
    'sales."my orders"'
    """
    return ".".join(plain_identifier(part) for part in split_name(key))


@cache
def _keywords() -> frozenset[str]:
    """Words that mean something in SQL, except those that are names as well."""
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        found = connection.execute(
            "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category <> 'unreserved'"
        )
        return frozenset(row[0] for row in found.fetchall())


def literal(text: str) -> str:
    """A string.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def has_magic(path: str) -> bool:
    """Whether DuckDB and the shell would take the path for a pattern."""
    return _MAGIC.search(path) is not None


def path_pattern(path: str) -> str:
    """The pattern that means one file: DuckDB takes every path for one, so signs are escaped.

    >>> path_pattern("/data/[new]?.csv")
    '/data/[[]new][?].csv'
    """
    return _MAGIC.sub(lambda sign: f"[{sign[0]}]", path)


def pattern_path(pattern: str) -> str:
    """The one file that a pattern of `path_pattern` means.

    >>> pattern_path("/data/[[]new][?].csv")
    '/data/[new]?.csv'
    """
    return _ESCAPED.sub(lambda sign: sign[1], pattern)


def path_literal(path: str) -> str:
    """The path of one file.

    >>> path_literal("/data/what's [new]?.csv")
    "'/data/what''s [[]new][?].csv'"
    """
    return literal(path_pattern(path))


def path_list(paths: Iterable[str]) -> str:
    """Several paths.

    >>> path_list(["a.csv", "b.csv"])
    "['a.csv', 'b.csv']"
    """
    return "[" + ", ".join(path_literal(path) for path in paths) + "]"


def struct(fields: Mapping[str, str]) -> str:
    """Names with texts, as options such as `columns` take them.

    >>> struct({"id": "BIGINT", "it's": "VARCHAR"})
    "{'id': 'BIGINT', 'it''s': 'VARCHAR'}"
    """
    inner = ", ".join(f"{literal(name)}: {literal(text)}" for name, text in fields.items())
    return "{" + inner + "}"


def option(value: object) -> str:
    """The value of an option of a table function.

    >>> option(True), option(3), option("|"), option(["", "NA"])
    ('true', '3', "'|'", "['', 'NA']")
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return struct({str(name): str(text) for name, text in value.items()})
    if isinstance(value, list | tuple):
        return "[" + ", ".join(option(item) for item in value) + "]"
    return literal(str(value))


def call(function: str, paths: Iterable[str], options: Mapping[str, object]) -> str:
    """A table function over files.

    >>> call("read_csv", ["a.csv"], {"header": True, "delim": "|"})
    "read_csv(['a.csv'], header=true, delim='|')"
    """
    given = [path_list(paths), *(f"{name}={option(value)}" for name, value in options.items())]
    return f"{function}({', '.join(given)})"


def select(columns: Iterable[str], source: str, where: str = "") -> str:
    """Named columns of a source, in parentheses, as a relation.

    >>> select(["a", "b"], "t")
    '(SELECT "a", "b" FROM t)'
    """
    names = ", ".join(identifier(column) for column in columns)
    return f"(SELECT {names} FROM {source}{f' WHERE {where}' if where else ''})"


def split_name(text: str) -> tuple[str, ...]:
    """The parts of a name with dots; a part in double quotes may hold dots itself.

    >>> split_name('sales."2024.orders"')
    ('sales', '2024.orders')
    >>> split_name("orders")
    ('orders',)
    """
    parts, rest = [], text
    while True:
        if rest.startswith('"'):
            quoted = re.match(r'"((?:[^"]|"")*)"', rest)
            if quoted is None:
                return (text,)
            parts.append(quoted[1].replace('""', '"'))
            rest = rest[quoted.end() :]
            if rest and not rest.startswith("."):
                return (text,)
        else:
            part, _, _ = rest.partition(".")
            parts.append(part)
            rest = rest[len(part) :]
        if not rest:
            return tuple(parts)
        rest = rest[1:]
