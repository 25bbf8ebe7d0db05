"""The rows of `pg_proc`: functions of types, as PostgreSQL has them, and those of DuckDB."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator
from functools import cache

from queryard.engine.sealing.callable_functions import EngineFunction, callable_functions

from .types import column_type, format_type, oid_of, read_data

_FIRST, _SPAN = 2**30, 2**30  # where PostgreSQL has no OIDs of its own
_KINDS = {"scalar": "f", "macro": "f", "aggregate": "a", "window": "w"}
_VOLATILE = {"CONSISTENT": "i", "CONSISTENT_WITHIN_QUERY": "s"}
# What stands for a type that a call decides.
_OPEN = ("ANY", "T", "K", "V")


@cache
def function_rows() -> tuple[dict[str, str], ...]:
    """All functions with their columns as texts; the same function has the same OID always."""
    own = tuple(csv.DictReader(read_data("functions.csv").splitlines()))
    return (*({"provariadic": "0", **row} for row in own), *_of_duckdb())


def _of_duckdb() -> Iterator[dict[str, str]]:
    seen: set[tuple[str, str]] = set()
    taken: set[int] = set()
    for function in callable_functions():
        row = _row(function)
        # Several types of DuckDB are one of PostgreSQL's.
        key = row["proname"], row["proargtypes"]
        if key not in seen:
            seen.add(key)
            yield {"oid": str(_oid(key, taken)), **row}


def _row(function: EngineFunction) -> dict[str, str]:
    given = [_type_oid(kind, "any") for kind in function.parameters]
    texts = [str(format_type(oid, None)) for oid in given]
    variadic = 0
    if function.more is not None:
        variadic = oid_of("any")
        given.append(variadic)
        texts.append(f"VARIADIC {format_type(variadic, None)}")
    result = _type_oid(function.result, "anyelement")
    return {
        "proname": function.name,
        "prolang": "12",
        "procost": "1.0",
        "prorows": "0.0",
        "provariadic": str(variadic),
        "prokind": _KINDS[function.kind],
        "prosecdef": "False",
        "proleakproof": "False",
        "proisstrict": "False",
        "proretset": "False",
        "provolatile": _VOLATILE.get(function.stability, "v"),
        "proparallel": "s",
        "pronargs": str(len(given)),
        "prorettype": str(result),
        "proargtypes": " ".join(map(str, given)),
        "prosrc": function.name,
        "result": str(format_type(result, None)),
        "arguments": ", ".join(texts),
    }


def _type_oid(duckdb: str | None, unknown: str) -> int:
    """The type of an argument or a result; `unknown` is what is said where a call decides it.

    >>> _type_oid("VARCHAR", "any"), _type_oid("T[]", "any"), _type_oid("ANY", "any")
    (25, 2277, 2276)
    """
    if duckdb is None or duckdb in _OPEN or duckdb == "LAMBDA":
        return oid_of(unknown)
    if duckdb.removesuffix("[]") in _OPEN or duckdb in ("LIST", "ARRAY"):
        return oid_of("anyarray")
    if duckdb == "DECIMAL":
        return oid_of("numeric")
    if duckdb in ("STRUCT", "MAP", "UNION", "TUPLE", "VARIANT"):
        return oid_of("json")
    return column_type(duckdb.replace("DECIMAL[]", "DECIMAL(18,3)[]")).oid


def _oid(key: tuple[str, str], taken: set[int]) -> int:
    digest = hashlib.blake2b("\0".join(key).encode())
    oid = _FIRST + int.from_bytes(digest.digest()[:8], "big") % _SPAN
    while oid in taken:
        oid = _FIRST + (oid + 1 - _FIRST) % _SPAN
    taken.add(oid)
    return oid
