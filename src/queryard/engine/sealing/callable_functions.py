"""The functions of DuckDB that a client of a server may call."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

import duckdb

from .refused import is_refused

_NAME = re.compile(r"[a-z][a-z0-9_]*")


class EngineFunction(NamedTuple):
    """One form of a function; types are in DuckDB's words, and None where any will do."""

    name: str
    kind: str  # scalar, aggregate, window, macro
    parameters: tuple[str | None, ...]
    # The type of further arguments, if it takes any number of them.
    more: str | None
    result: str | None
    stability: str


@cache
def callable_functions() -> tuple[EngineFunction, ...]:
    """All forms of all functions, without operators, table functions, and those of DuckDB's own."""
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        rows = connection.execute(
            "SELECT lower(function_name), function_type, parameter_types, varargs, return_type, "
            "coalesce(stability, 'VOLATILE') FROM duckdb_functions() "
            "WHERE function_type IN ('scalar', 'aggregate', 'window', 'macro') "
            "ORDER BY ALL"
        ).fetchall()
    found = (EngineFunction(name, kind, tuple(given), *rest) for name, kind, given, *rest in rows)
    return tuple(each for each in found if _NAME.fullmatch(each.name) and not is_refused(each.name))
