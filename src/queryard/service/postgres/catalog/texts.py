"""Texts as PostgreSQL writes them: names in quotes where they need them, definitions of keys."""

from __future__ import annotations

import csv
import re
from functools import cache

from .objects import ConstraintObject
from .types import read_data

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*\Z")


@cache
def keyword_rows() -> tuple[dict[str, str], ...]:
    return tuple(csv.DictReader(read_data("keywords.csv").splitlines()))


@cache
def _reserved() -> frozenset[str]:
    return frozenset(row["word"] for row in keyword_rows() if row["catcode"] != "U")


def quote_ident(name: str) -> str:
    """A name as it must be written in SQL.

    >>> quote_ident("orders"), quote_ident("Orders"), quote_ident("select"), quote_ident('a"b')
    ('orders', '"Orders"', '"select"', '"a""b"')
    """
    if _PLAIN.match(name) and name not in _reserved():
        return name
    return '"' + name.replace('"', '""') + '"'


def quote_literal(text: str) -> str:
    """
    >>> quote_literal("it's")
    "'it''s'"
    """
    quoted = "'" + text.replace("'", "''") + "'"
    return "E" + quoted.replace("\\", "\\\\") if "\\" in text else quoted


def parse_ident(text: str) -> tuple[str, ...]:
    """The parts of a name, in lower case unless they are quoted.

    >>> parse_ident('Sales."Orders"'), parse_ident("a.b.c")
    (('sales', 'Orders'), ('a', 'b', 'c'))
    >>> parse_ident("a b")
    ()
    """
    parts = []
    rest = text.strip()
    while rest:
        found = _PART.match(rest)
        if found is None:
            return ()
        quoted, bare = found.groups()
        parts.append(bare.lower() if bare else quoted[1:-1].replace('""', '"'))
        rest = rest[found.end() :]
        if not rest:
            return tuple(parts)
        if not rest.startswith("."):
            return ()
        rest = rest[1:].lstrip()
    return ()


_PART = re.compile(r'\s*(?:("(?:[^"]|"")+")|([^\W\d][\w$]*))\s*')


def names(columns: tuple[str, ...]) -> str:
    return ", ".join(quote_ident(name) for name in columns)


def constraint_definition(found: ConstraintObject, target: str, pretty: bool) -> str:
    """What `pg_get_constraintdef` says; a table of another schema is named with it."""
    key = found.key
    if key.kind == "primary":
        return f"PRIMARY KEY ({names(key.columns)})"
    if key.kind == "unique":
        return f"UNIQUE ({names(key.columns)})"
    if key.kind == "check":
        return (
            f"CHECK {key.condition}"
            if pretty and _is_enclosed(key.condition)
            else (f"CHECK ({key.condition})")
        )
    return f"FOREIGN KEY ({names(key.columns)}) REFERENCES {target}({names(key.referenced)})"


def index_definition(found: ConstraintObject, table: str = "") -> str:
    """What `pg_get_indexdef` says of the index of a key; `table` is how its table is called."""
    facts = found.table.facts
    table = table or f"{quote_ident(facts.schema)}.{quote_ident(facts.name)}"
    return (
        f"CREATE UNIQUE INDEX {quote_ident(found.index_name)} ON {table} "
        f"USING btree ({names(found.key.columns)})"
    )


def _is_enclosed(text: str) -> bool:
    """Whether one pair of parentheses holds all of it.

    >>> _is_enclosed("(a > (0))"), _is_enclosed("(a) > (b)")
    (True, False)
    """
    depth = 0
    for place, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0 and place < len(text) - 1:
            return False
    return depth == 0 and text.startswith("(")
