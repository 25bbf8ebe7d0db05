"""The values of parameters, written into a statement as literals of the types that DuckDB binds.

For plans that are made of parts of a statement: parts have no parameters. DuckDB compares texts
that are parameters as it compares texts that are written; numbers keep their types by a CAST.
"""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from queryard.core.errors import QueryardError
from queryard.sql.catalog.quoting import literal

from .parameters import shape_of, unwrapped
from .syntax.classify import Classified


class NotWritten(QueryardError):
    """A value, or a place for one, that cannot be written; DuckDB binds it, or says what is wrong.

    >>> str(NotWritten("a list"))
    'a list: bound by DuckDB'
    """

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: bound by DuckDB")


def with_values(statement: Classified, parameters: Sequence[Any] | Mapping[str, Any]) -> str:
    """The text of a statement with its parameters written into it.

    >>> from .syntax.classify import classify
    >>> with_values(classify("SELECT a + ? FROM t WHERE b = ? -- ?")[0], [3, "x"])
    "SELECT a + CAST(3 AS INTEGER) FROM t WHERE b = 'x' -- ?"
    >>> with_values(classify("FROM t WHERE $n > a")[0], {"n": 0.5})
    "FROM t WHERE CAST('0.5' AS DOUBLE) > a"
    """
    if not parameters:
        return statement.sql
    found, raw = statement.tokens, statement.sql.encode()
    texts = found.texts
    pieces: list[bytes] = []
    used: set[object] = set()
    written = place = 0
    while place < len(texts):
        if texts[place] not in ("?", "$"):
            place += 1
            continue
        # A name or a number directly behind the sign belongs to it.
        begin, last = found.offsets[place], place
        is_named = place + 1 < len(texts) and (texts[place] == "$" or texts[place + 1].isdigit())
        if is_named and found.offsets[place + 1] == begin + 1:
            last += 1
        name: object = texts[last] if last > place else len(used) + 1
        key, value = _value(name, parameters)
        used.add(key)
        pieces += [raw[written:begin], _written(value).encode()]
        written = begin + len("".join(texts[place : last + 1]).encode())
        place = last + 1
    if len(used) != len(parameters):
        raise NotWritten(f"{len(parameters)} parameters for {len(used)} places")
    return b"".join([*pieces, raw[written:]]).decode()


def _value(name: object, parameters: Sequence[Any] | Mapping[str, Any]) -> tuple[object, Any]:
    """What a place is given, and under which key."""
    if isinstance(parameters, Mapping):
        if name in parameters:
            return name, parameters[name]  # type: ignore[index]
    elif str(name).isdigit() and 0 < int(str(name)) <= len(parameters):
        return int(str(name)), parameters[int(str(name)) - 1]
    raise NotWritten(f"no parameter {name}")


def _written(given: Any) -> str:
    value = unwrapped(given)
    shape = shape_of(value)
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int():
            number = literal(str(int(value))) if shape == "HUGEINT" else str(int(value))
            return f"CAST({number} AS {shape})"
        case float():
            return f"CAST({literal(repr(float(value)))} AS DOUBLE)"
        case str() | uuid.UUID() if "\0" not in str(value):
            return literal(str(value))
        case dt.datetime() if shape == "TIMESTAMP":
            return f"CAST({literal(value.isoformat(' '))} AS TIMESTAMP)"
        case dt.date() if shape == "DATE":
            return f"CAST({literal(value.isoformat())} AS DATE)"
        case decimal.Decimal() if isinstance(shape, tuple):
            _, width, scale = shape
            return f"CAST({literal(format(value, 'f'))} AS DECIMAL({width}, {scale}))"
    raise NotWritten(f"a {type(value).__name__}")
