"""The functions that catalog queries may call, each with its types and its meaning in DuckDB.

What is not here is refused: DuckDB has functions of the same name with another meaning, and a
wrong answer about a catalog is worse than none.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from .types import read_data


class Function(NamedTuple):
    """A function of PostgreSQL.

    `arguments` are types; `any` is left as it is, `relation` takes an OID or a name. `result` is a
    type, or `$0` for the type of the first argument, `[$0]` for an array of it, `*$0` for that of
    its elements. In `meaning`, `{0}` is the first argument, and `{user}`, `{database}` …  are
    values of the session.
    """

    name: str
    arguments: tuple[str, ...]
    result: str
    meaning: str


AGGREGATES = frozenset(
    {
        "array_agg",
        "avg",
        "bool_and",
        "bool_or",
        "count",
        "dense_rank",
        "every",
        "json_agg",
        "jsonb_agg",
        "max",
        "min",
        "rank",
        "row_number",
        "string_agg",
        "sum",
    }
)
"""Functions over many rows: only these take DISTINCT, ORDER BY, FILTER and OVER."""

_LINE = re.compile(r"(\w+)\((.*?)\) (\S+) = (.*)")


@cache
def functions() -> dict[str, dict[int, Function]]:
    """All functions, by name and by the number of their arguments."""
    found: dict[str, dict[int, Function]] = {}
    for line in read_data("meanings.txt").splitlines():
        if line.startswith("--"):
            continue
        parsed = _LINE.fullmatch(line)
        if parsed is None:
            raise ValueError(f"no function: {line!r}")
        name, arguments, result, meaning = parsed.groups()
        types = tuple(arguments.split(", ")) if arguments else ()
        found.setdefault(name, {})[len(types)] = Function(name, types, result, meaning)
    return found
